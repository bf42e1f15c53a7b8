"""``rlgov boards``: which boards can be named."""

from __future__ import annotations

from pathlib import Path

from rlgov.cli.command import Command, Invocation
from rlgov.cli.confdir import ConfPath
from rlgov.cli.text import table


def run(invocation: Invocation) -> int:
    """Print and record every board of ``conf/board``."""
    conf = ConfPath(invocation.config_dirs)
    boards = [
        {"name": name, "description": _description(conf.find(f"board/{name}"))}
        for name in conf.options("board")
    ]
    print(table(("board=", "description"), [(b["name"], b["description"]) for b in boards]))
    invocation.folder.write_summary({"boards": boards})
    return 0


def _description(path: Path | None) -> str | None:
    """The comment that opens a board's file."""
    if path is None:
        return None
    first = path.read_text(encoding="utf-8").partition("\n")[0]
    return first.lstrip("# ").strip() or None if first.startswith("#") else None


COMMAND = Command(
    name="boards",
    summary="list the boards that can be named as board=NAME",
    help="""
    Lists every board of conf/board with one line about it. A twin is a calibrated model of a board:
    its times and joules are computed, no clock is changed and nothing is metered.
    """,
    examples=(("rlgov boards", "the table, and runs/<...>-boards-<id>/summary.json"),),
    config="boards",
    run=run,
)
