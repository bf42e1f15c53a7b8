"""``rlgov evaluate``: policies against each other and against the best there is."""

from __future__ import annotations

from rlgov.cli.command import SEED, Command, Key, later

COMMAND = Command(
    name="evaluate",
    summary="compare policies on jobs of a population or on a measured profile",
    help="""
    Puts every policy through the same jobs, boards and noise: reference windows as found, then
    windows that it decides. What is reported is the truth that no governor sees: saving, gap to the
    best static setting, slowdown, windows that broke the budget. On twins all of it is a model's;
    with profile=FILE measured figures are replayed, and nothing is modelled.

    A list is written in brackets and quoted: 'policy=[ppo,util30]'. A path in it that holds = or
    blanks has quotes of its own: 'policy=["runs/a=b/bundle",ppo]'. out=DIR gets summary.json and,
    with matplotlib, three pictures.
    """,
    examples=(
        ("rlgov evaluate", "the packaged policy on held-out jobs at five budgets"),
        (
            "rlgov evaluate 'policy=[ppo,util30,ucb,oracle]' 'budget=[0.02,0.1]' n_jobs=100",
            "against baselines",
        ),
        (
            "rlgov evaluate 'policy=[ppo,gpu_oracle]' 'knobs=[gpu]' guard=off",
            "with one knob, without the guard",
        ),
        ("rlgov evaluate policy=ppo profile=measured.csv budget=0.1", "on a measured profile"),
        ("rlgov evaluate drift=corunner 'policy=[ppo,ucb]'", "while co-runners come and go"),
    ),
    config="evaluate",
    run=later("rlgov.cli.evaluate_run:run"),
    keys={
        "job": Key(kind="path"),
        "policy": Key(kind="name_or_path", many=True),
        "budget": Key(type=float, minimum=0.0, many=True),
        "objective": Key(choices=("energy", "edp", "ed2p", "power_cap")),
        "power_cap": Key(type=float, above=0.0),
        "knobs": Key(choices=("gpu", "cpu", "emc"), many=True),
        "profile": Key(kind="path"),
        "profile_job": Key(kind="path"),
        "profile_device": Key(kind="path"),
        "profile_noise": Key(minimum=0.0),
        "n_jobs": Key(type=int, minimum=1),
        "windows": Key(minimum=1),
        "seed": SEED,
        "policy_args.fixed.gpu_mhz": Key(type=float, above=0.0),
        "policy_args.fixed.cpu_mhz": Key(type=float, above=0.0),
        "policy_args.fixed.emc_mhz": Key(type=float, above=0.0),
        "policy_args.ucb.arms": Key(choices=("gpu", "joint")),
    },
    sweep_columns=("saving", "gap", "violations"),
)
