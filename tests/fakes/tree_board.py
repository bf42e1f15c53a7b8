"""A board of plain files, as small as a board can be, for tests of the lease."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from rlgov.boards.base import Board, BoardState, Knob, Reading, Setting
from rlgov.boards.sysfs import Tree, write_range
from rlgov.errors import LeaseError

GPU = "/sys/class/devfreq/17000000.gpu"
CPU = "/sys/devices/system/cpu/cpufreq/policy0"
FILES = {
    f"{GPU}/min_freq": "306000000\n",
    f"{GPU}/max_freq": "1300500000\n",
    f"{CPU}/scaling_min_freq": "729600\n",
    f"{CPU}/scaling_max_freq": "2201600\n",
}
TABLES = {"gpu": (306.0, 612.0, 918.0, 1300.5), "cpu": (115.2, 729.6, 1497.6, 2201.6)}


def make_tree(root: Path) -> Path:
    """The files of the board below ``root``."""
    for name, text in FILES.items():
        path = root / name.lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o644)
    return root


def contents(root: Path) -> dict[str, tuple[bytes, int]]:
    """Bytes and mode of every file below ``root``."""
    return {
        str(path.relative_to(root)): (path.read_bytes(), path.stat().st_mode)
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }


class TreeBoard(Board):
    """GPU and CPU ranges in four files."""

    name = "tree"
    emulated = False
    rails = ("VDD_IN",)
    total_rule = "VDD_IN"

    def __init__(self, root: Path) -> None:
        self.tree = Tree(root)

    @property
    def knobs(self) -> Sequence[Knob]:
        return [Knob(name, levels) for name, levels in TABLES.items()]

    def now_s(self) -> float:
        return time.monotonic()

    def read(self) -> Reading:
        return Reading(self.now_s())

    def apply(self, setting: Setting) -> Setting:
        self.check(setting)
        for name, low, high, unit in (
            ("gpu", f"{GPU}/min_freq", f"{GPU}/max_freq", 1e6),
            ("cpu", f"{CPU}/scaling_min_freq", f"{CPU}/scaling_max_freq", 1e3),
        ):
            value = setting[name]
            if value is not None:
                text = f"{round(value * unit)}\n"
                write_range(self.tree, (low, text), (high, text))
        return setting

    def capture(self) -> BoardState:
        return BoardState(self.name, {name: self.tree.raw(name).value or "" for name in FILES})

    def restore(self, state: BoardState) -> None:
        if state.board != self.name:
            raise LeaseError("another board's state")
        for name, text in state.values.items():
            self.tree.write(name, text)
