"""``rlgov restore``: give back a board that a run left changed."""

from __future__ import annotations

from rlgov.cli.command import Command, Key, later

COMMAND = Command(
    name="restore",
    summary="give back a board that a run left changed",
    help="""
    A run gives the board back however it ends, and so does the next start after a crash; this is
    for the rest: governor and watcher killed together, or a value that could not be written. The
    prior values come from the lease that was saved before the first write. Nothing is written while
    a governor lives, nor from a lease of an earlier boot, since the kernel has reset the clocks.
    """,
    examples=(
        ("rlgov restore", "give everything back that a run left, or say that nothing is left"),
        ("rlgov restore foreign=overwrite", "also what somebody else has changed meanwhile"),
    ),
    config="restore",
    run=later("rlgov.cli.restore_run:run"),
    keys={"state_dir": Key(kind="path"), "foreign": Key(choices=("keep", "overwrite"))},
    exit_codes=(("4", "a governor lives, or a value could not be given back (it is named)"),),
)
