"""``rlgov fit``: a twin of one's own board and job, from measurements."""

from __future__ import annotations

from rlgov.cli.command import SEED, Command, Key, later

COMMAND = Command(
    name="fit",
    summary="fit a twin to a profile or a trace: rlgov fit profile=FILE board=NAME",
    help="""
    Fits the twin of a board, and the job that ran on it, to measured settings: any knobs may have
    been varied, and rows with only a time, only a power or only an energy are used as well. Prints
    the error of every surface, at the fitted settings and at those held out, and which parameters
    of the board the measurements leave open. Writes board.yaml and job.yaml, which
    board=DIR/board.yaml and job=DIR/job.yaml then name, and ensemble.yaml: further twins that fit
    equally well.

    When settings are held out, the error there is of a first fit without them; the files hold a
    second fit, to all settings.
    """,
    examples=(
        (
            "rlgov fit profile=measured.csv board=jetson_agx_orin_64gb out=runs/mine",
            "a twin of mine",
        ),
        (
            "rlgov fit trace=runs/collected board=jetson_orin_nx_16gb",
            "from a governed run's windows",
        ),
        ("rlgov fit profile=all.csv job=bert device=mine hold_out=2", "one job of several"),
    ),
    config="fit",
    run=later("rlgov.cli.fit_run:run"),
    keys={
        "profile": Key(kind="path", type=str),
        "trace": Key(kind="path", type=str),
        "job": Key(type=str),
        "device": Key(type=str),
        "hold_out": Key(minimum=0),
        "ensemble": Key(minimum=0),
        "seed": SEED,
    },
    sweep_columns=("worst_rms", "held_out_worst_rms"),
)
