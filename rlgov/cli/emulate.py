"""``rlgov emulate``: a board's kernel files without the board."""

from __future__ import annotations

from rlgov.cli.command import SEED, Command, Key, later

COMMAND = Command(
    name="emulate",
    summary="mount an emulated board's kernel files: rlgov emulate agx-orin-jp6 --mount DIR",
    help="""
    Puts a twin behind a file system with the kernel's manners: each release's own paths, units and
    tables, writes that are refused, clamped or rounded as there, sensors that move with time, load
    and clocks. Everything that works with a real board's files works below DIR, such as rlgov
    doctor root=DIR. It is served until Ctrl-C or umount DIR.

    Boards: agx-orin-jp5, agx-orin-jp5-early, agx-orin-jp6, agx-orin-jp6-nodebug, agx-orin-jp7,
    orin-nx-jp6, orin-nano-super-jp6, xavier-agx-jp4, tx2-jp4, nano-jp4, thor-jp7. The last two take
    their watts from another board's twin.

    Below DIR/rlgov are knobs of the emulation itself: load_per_mille, heat_gpu_hz (what heat holds
    the GPU down to; 0 for nothing).
    """,
    examples=(
        ("rlgov emulate agx-orin-jp6 --mount /mnt/board", "an AGX Orin on JetPack 6"),
        ("rlgov emulate nano-jp4 --mount /mnt/nano", "a Nano, whose kernel refuses min above max"),
    ),
    config="emulate",
    run=later("rlgov.cli.emulate_run:run"),
    keys={
        "mount": Key(kind="path"),
        "load_per_mille": Key(minimum=0),
        "seed": SEED,
    },
    files="BOARD",
    files_rule="required",
    files_exist=False,
    flags={"--mount": "mount="},
    exit_codes=(("3", "no /dev/fuse, no libfuse, or the kernel refuses the mount"),),
)
