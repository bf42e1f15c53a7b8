"""The work of ``rlgov doctor``."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rlgov.boards.base import Board
from rlgov.boards.checkup import Check, Checkup, examine, examine_lease, examine_machine
from rlgov.boards.leasefile import LeaseFolder, default_state_dir
from rlgov.boards.select import KINDS, BoardSpec, open_board
from rlgov.boards.twin import TwinSpec
from rlgov.boards.twin.board import TwinBoard
from rlgov.cli.command import Invocation
from rlgov.cli.text import INDENT, paragraph
from rlgov.errors import ConfigError, RlgovError

_VERDICTS = (
    "ready",
    "usable with limits: see the lines above that say limited",
    "not usable for governing: see the lines above that say failing; board=NAME emulates a board",
)


def run(invocation: Invocation) -> int:
    """Look at everything, print it, and end with the verdict."""
    config = invocation.config
    checkup = _check_up(config)
    data = checkup.as_json()
    print(json.dumps(data, indent=2) if config["json"] else _text(checkup))
    invocation.folder.write_summary(data)
    return checkup.code


def _check_up(config: Mapping[str, Any]) -> Checkup:
    wanted = config.get("board")  # absent where the group is null
    if wanted is not None and "kind" not in wanted:
        twin = TwinBoard(TwinSpec.from_dict(wanted))
        return Checkup(twin.name, tuple(examine(twin)))
    root = Path(config["root"])
    if not root.is_dir():
        raise ConfigError(f"root={root} is no folder")
    kind = "auto" if wanted is None else wanted["kind"]
    board, tried = _find(root, KINDS if kind == "auto" else (kind,))
    state_dir = config["state_dir"]
    folder = LeaseFolder(Path(state_dir) if state_dir is not None else default_state_dir())
    checks = [
        *(_nothing(tried) if board is None else examine(board)),
        *examine_machine(root),
        *examine_lease(folder),
    ]
    name = None if board is None else board.name
    if board is not None:
        board.close()
    return Checkup(name, tuple(checks))


def _find(root: Path, kinds: Sequence[str]) -> tuple[Board | None, dict[str, str]]:
    """The first board that is there, one with knobs before one without."""
    tried: dict[str, str] = {}
    found: list[Board] = []
    for kind in kinds:
        if kind == "nvml" and str(root) != "/":
            continue  # a folder of files has no driver
        try:
            found.append(open_board(BoardSpec(kind, root=str(root))))
        except RlgovError as error:
            tried[kind] = str(error)
    chosen = next((b for b in found if b.knobs), found[0] if found else None)
    for board in found:
        if board is not chosen:
            board.close()
    return chosen, tried


def _nothing(tried: Mapping[str, str]) -> Iterator[Check]:
    for kind, why in tried.items():
        yield Check(f"board {kind}", "failing", "not here", why)


def _text(checkup: Checkup) -> str:
    width = max(len(check.topic) for check in checkup.checks)
    lines = []
    for check in checkup.checks:
        head = f"{check.status:8}{check.topic.ljust(width)}  "
        lines.append(_hang(head, check.text))
        if check.needs:
            lines.append(_hang(" " * (8 + width) + f"{INDENT}needs: ", check.needs))
    return "\n".join([*lines, "", paragraph(_VERDICTS[checkup.code])])


def _hang(head: str, text: str, width: int = 100) -> str:
    """``text`` behind ``head``, its further lines below its first."""
    return textwrap.fill(
        " ".join(text.split()),
        width,
        initial_indent=head,
        subsequent_indent=" " * len(head),
        break_long_words=False,
        break_on_hyphens=False,
    )
