"""``rlgov doctor``: what works here, and what to do about what does not."""

from __future__ import annotations

from rlgov.cli.command import Command, Key, later

COMMAND = Command(
    name="doctor",
    summary="say what works on this machine, and what to do about what does not",
    help="""
    Looks at the board, its knobs and their tables, every sensor with a live reading, the rule of
    the total, permissions, what a run left behind and who else writes to the clocks. Nothing is
    changed. Each line that is not ok says what it needs. docs/doctor.md shows what to expect.
    """,
    examples=(
        ("rlgov doctor", "look at this machine"),
        ("rlgov doctor board=jetson_agx_orin_64gb", "look at an emulated board"),
        ("rlgov doctor root=/mnt/board --json", "look at a mount of rlgov emulate, as JSON"),
    ),
    config="doctor",
    run=later("rlgov.cli.doctor_run:run"),
    keys={"root": Key(kind="path"), "state_dir": Key(kind="path")},
    flags={"--json": "json=true"},
    exit_codes=(
        ("0", "ready"),
        ("1", "usable with limits: a line says limited, and what it needs"),
        ("2", "not usable: nothing can be set or metered here (also a key that cannot be used)"),
    ),
)
