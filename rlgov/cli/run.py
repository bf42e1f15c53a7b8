"""``rlgov run``: govern a training job."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from rich.console import Console

from rlgov.boards.twin import TwinSpec
from rlgov.boards.twin.board import TwinBoard
from rlgov.cli.command import Command, Invocation, Key
from rlgov.cli.instantiate import instantiate_group
from rlgov.governor.emulated import EmulatedJob
from rlgov.governor.session import Session, SessionSpec
from rlgov.governor.summary import summarise
from rlgov.jobs.attach import AttachedJob
from rlgov.policies.base import Policy
from rlgov.policies.registry import load_policy
from rlgov.reports.terminal import print_run
from rlgov.reward import OBJECTIVES
from rlgov.work import FloatArray


def run(invocation: Invocation) -> int:
    """Govern the command after ``--`` and end with its exit code."""
    config = invocation.config
    console = Console(stderr=True, highlight=False)
    spec = TwinSpec.from_dict(config["board"])
    board = TwinBoard(spec, seed=config["seed"])
    session = _session_spec(config)
    policy, best = _policy(config, board)
    console.print(_opening(config, board, policy))
    attached = AttachedJob(invocation.job, host_ghz=config["emulation"]["host_ghz"])
    job = EmulatedJob(attached, board, config["emulation"]["scale"])
    best.source = partial(job.best_targets, budget=session.budget)
    folder = invocation.folder.path
    result = Session(session, board, job, policy, spec.rail_roles, board.drain, folder).run()
    summary = summarise(result, session, board, policy.name, " ".join(invocation.job), job)
    summary["out"] = str(folder)
    invocation.folder.write_summary(summary)
    print_run(summary, console)
    return result.end.exit_code or 0


class _Best:
    """The oracle's source of truth, which exists only once the job has shown its work."""

    source: Any = None

    def __call__(self) -> FloatArray:
        targets: FloatArray = np.full((1, 3), np.nan) if self.source is None else self.source()
        return targets


def _policy(config: dict[str, Any], board: TwinBoard) -> tuple[Policy, _Best]:
    best = _Best()
    name = str(config["policy"])
    args = config["policy_args"].get(name, {})
    policy = load_policy(
        name, board.knobs, board=board.name, seed=config["seed"], args=args, best=best
    )
    return policy, best


def _session_spec(config: dict[str, Any]) -> SessionSpec:
    return SessionSpec(
        objective=config["objective"],
        budget=config["budget"],
        power_cap=config["power_cap"],
        window=instantiate_group(config["window"], "window"),
        guard=instantiate_group(config["guard"], "guard"),
        settle_s=config["settle_s"],
        audit_share=config["audit_share"],
        seed=config["seed"],
    )


def _opening(config: dict[str, Any], board: TwinBoard, policy: Policy) -> str:
    return (
        f"rlgov: {policy.name} governs {board.name} (emulated: a model, no clock changes), "
        f"objective {config['objective']}, at most {config['budget']:.1%} slower, "
        f"seed {config['seed']}"
    )


COMMAND = Command(
    name="run",
    summary="govern a training job: rlgov run -- python finetune.py",
    help="""
    Starts the command after -- as it is, follows its optimizer steps through a hook in its Python,
    and moves the board's clocks between windows of steps so that a mini-batch costs less energy
    without running slower than the budget allows. The job's output, exit code and numbers stay its
    own; it goes on when the governor fails. The first windows run as found: they are the reference.

    board=NAME of a twin emulates that board: the job really trains, and the work counted in it
    drives a model. No clock changes and nothing is metered then.
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
    run=run,
    keys={
        "policy": Key(kind="name_or_path", choices=()),
        "objective": Key(choices=tuple(OBJECTIVES)),
        "budget": Key(minimum=0.0),
        "power_cap": Key(type=float, above=0.0),
        "audit_share": Key(minimum=0.0),
        "settle_s": Key(minimum=0.0),
        "emulation.scale": Key(above=0.0),
        "emulation.host_ghz": Key(above=0.0),
        "policy_args.fixed.gpu_mhz": Key(type=float, above=0.0),
        "policy_args.fixed.cpu_mhz": Key(type=float, above=0.0),
        "policy_args.fixed.emc_mhz": Key(type=float, above=0.0),
        "seed": Key(minimum=0),
    },
    job_rule="required",
    sweep_columns=("saving", "slowdown", "j_per_step", "budget", "job_exit_code"),
    exit_codes=(
        ("the job's own", "once the job has started"),
        ("126, 127", "the job's command cannot be run, or was not found"),
    ),
)
