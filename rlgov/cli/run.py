"""``rlgov run``: govern a training job."""

from __future__ import annotations

from rlgov.cli.command import SEED, Command, Key, later

COMMAND = Command(
    name="run",
    summary="govern a training job: rlgov run -- python finetune.py",
    help="""
    Starts the command after -- as it is, follows its optimizer steps through a hook in its Python,
    and moves the board's clocks between windows of steps so that a mini-batch costs less energy
    without running slower than the budget allows. The job's output, exit code and numbers stay its
    own; it goes on when the governor fails. The first windows run as found: they are the reference.

    board=NAME of a twin emulates that board: the job really trains, and the work counted in it
    drives a model. No clock changes and nothing is metered then. board=jetson, nvml or linux sets
    and meters this machine; board=auto finds out which of them it is.
    """,
    examples=(
        ("rlgov run -- python finetune.py", "govern with the packaged policy, at most 5 % slower"),
        ("rlgov run budget=0.2 out=runs/night -- bash train.sh", "allow 20 %, name the run folder"),
        (
            "rlgov run policy=fixed policy_args.fixed.gpu_mhz=816 -- python finetune.py",
            "pin the GPU and leave the other knobs as found",
        ),
    ),
    config="run",
    run=later("rlgov.cli.run_job:run"),
    keys={
        "job": Key(kind="path"),
        "policy": Key(kind="name_or_path", choices=()),
        "objective": Key(choices=("energy", "edp", "ed2p", "power_cap")),
        "budget": Key(minimum=0.0),
        "power_cap": Key(type=float, above=0.0),
        "audit_share": Key(minimum=0.0),
        "settle_s": Key(minimum=0.0),
        "emulation.scale": Key(above=0.0),
        "emulation.host_ghz": Key(above=0.0),
        "policy_args.fixed.gpu_mhz": Key(type=float, above=0.0),
        "policy_args.fixed.cpu_mhz": Key(type=float, above=0.0),
        "policy_args.fixed.emc_mhz": Key(type=float, above=0.0),
        "board.require": Key(choices=("any", "real")),
        "board.settle_s": Key(minimum=0.0),
        "board.period_s": Key(above=0.0),
        "seed": SEED,
    },
    job_rule="required",
    sweep_columns=("saving", "slowdown", "j_per_step", "budget", "job_exit_code"),
    exit_codes=(
        ("the job's own", "once the job has started"),
        ("126, 127", "the job's command cannot be run, or was not found"),
    ),
)
