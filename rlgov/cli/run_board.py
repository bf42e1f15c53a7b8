"""Which board ``rlgov run`` acts on, and what it says about the choice."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml
from rich.console import Console
from rich.panel import Panel
from rich.text import Text

from rlgov.boards.leasefile import LOCK_FILE, LeaseFolder, default_state_dir
from rlgov.boards.lock import OwnerLock
from rlgov.boards.repair import repair
from rlgov.boards.select import BoardSpec, Choice, RealBoard, refusals, select
from rlgov.boards.twin import TwinSpec
from rlgov.boards.twin.board import TwinBoard
from rlgov.cli.confdir import ConfPath
from rlgov.errors import BoardError, ConfigError, LeaseError

MONITOR = "as_found"
"""The policy that changes nothing, for boards that can only be watched."""


def choose_board(
    config: dict[str, Any], overlays: Sequence[Path], console: Console
) -> TwinBoard | RealBoard:
    """The board of a run's configuration: a twin by its values, a real one by its ``kind``.

    Raises:
        BoardError: The real board is not there, or cannot do what the policy needs.
        ConfigError: A key or value that cannot be used.
    """
    values = config["board"]
    if "kind" not in values:
        return TwinBoard(TwinSpec.from_dict(values), seed=config["seed"])
    spec = real_spec(values)
    give_back_first(console)
    choice = select(spec)
    if choice.board is None:
        console.print(_notice(choice, spec))
        return TwinBoard(_twin(spec.fallback, overlays), seed=config["seed"])
    if choice.tried:
        console.print(Text(f"rlgov: {choice.why}"))
    check_able(choice.board, str(config["policy"]))
    return choice.board


def give_back_first(console: Console) -> None:
    """Give back what a crashed run left, before its clocks are taken for the board's limits.

    What cannot be done here, or belongs to a governor that lives, is left to the lease, which
    refuses in words.
    """
    folder = LeaseFolder(default_state_dir())
    lock = OwnerLock(folder.path / LOCK_FILE)
    if not folder.path.is_dir():
        return
    try:
        lock.acquire()
        text = repair(folder, None)
    except (LeaseError, OSError):
        return
    finally:
        lock.release()
    if text is not None:
        console.print(Text(f"rlgov: {text}"))


def real_spec(values: dict[str, Any]) -> BoardSpec:
    """The node ``board`` of a real board.

    Raises:
        ConfigError: A key that it does not have.
    """
    try:
        return BoardSpec(**values)
    except TypeError as error:
        raise ConfigError(f"board: {error}".replace("BoardSpec.__init__()", "it")) from error


def check_able(board: RealBoard, policy: str) -> None:
    """Refuse a policy that would learn from nothing, or turn what cannot be turned.

    Raises:
        BoardError: With what to do about it.
    """
    if policy == MONITOR:
        return
    only = f"policy={MONITOR} changes nothing and follows the job"
    if not board.knobs:
        raise BoardError(f"board {board.name}: {refusals(board)}. {only}")
    reading = board.read()
    if reading.total_w is None:
        reasons = "; ".join(
            f"{name}: {reason}"
            for name, reason in reading.missing.items()
            if name.startswith(("power", "total"))
        )
        raise BoardError(
            f"board {board.name} tells no power, so nothing could be saved or learnt ({reasons}). "
            f"{only}"
        )


def _notice(choice: Choice, spec: BoardSpec) -> Panel:
    text = (
        f"{choice.why}\n\nThe run goes on with an EMULATED board, {spec.fallback}: no clock of "
        "this machine changes and nothing is metered. board.require=real makes this an error."
    )
    return Panel(Text(text), title="NO REAL BOARD", style="bold", highlight=False)


def _twin(name: str, overlays: Sequence[Path]) -> TwinSpec:
    path = ConfPath(overlays).find(f"board/{name}")
    if path is None:
        raise ConfigError(f"board.fallback={name}: there is no such board; see rlgov boards")
    return TwinSpec.from_dict(yaml.safe_load(path.read_text(encoding="utf-8")))
