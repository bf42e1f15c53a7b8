from __future__ import annotations

from pathlib import Path

import pytest

from rlgov.boards.base import AS_FOUND, Setting
from rlgov.boards.jetson import JetsonBoard
from tests.conformance.board_contract import BoardContract
from tests.fakes.jetsons import make
from tests.fakes.sysfs_tree import PROFILES, contents

NAMES = sorted(PROFILES)


class Families(BoardContract):
    profile = ""

    @pytest.fixture(autouse=True)
    def _root(self, tmp_path: Path) -> None:
        self.root = tmp_path

    def make_board(self) -> JetsonBoard:
        return make(self.root, self.profile)[0]


for _name in NAMES:
    _class = f"Test_{_name.replace('-', '_')}"
    globals()[_class] = type(_class, (Families,), {"profile": _name, "__module__": __name__})
del Families


@pytest.mark.parametrize("name", NAMES)
def test_every_file_is_as_found_after_a_run(tmp_path: Path, name: str) -> None:
    board, _ = make(tmp_path, name)
    before = contents(tmp_path)
    state = board.capture()
    for knob in board.knobs:
        for level in (knob.allowed_mhz[0], knob.allowed_mhz[-1], knob.allowed_mhz[1]):
            took = board.apply(Setting(**{knob.name: level}))
            assert took[knob.name] == level
    assert contents(tmp_path) != before
    board.restore(state)
    assert contents(tmp_path) == before


@pytest.mark.parametrize("name", NAMES)
def test_all_three_knobs_are_found_with_the_boards_own_tables(tmp_path: Path, name: str) -> None:
    board, _ = make(tmp_path, name)
    profile = PROFILES[name]
    tables = {knob.name: knob.levels_mhz for knob in board.knobs}
    assert tables["gpu"] == tuple(hz / 1e6 for hz in profile.gpu_hz)
    assert tables["cpu"] == tuple(khz / 1e3 for khz in profile.cpu_khz)
    assert tables["emc"] == pytest.approx(tuple(hz / 1e6 for hz in profile.emc_hz))
    emc = next(knob for knob in board.knobs if knob.name == "emc")
    assert emc.mode == ("cap" if profile.emc == "cap" else "pin")
    assert board.facts["chip"] == profile.soc
    assert board.facts["power mode"] == "MAXN"
    assert not board.refused


@pytest.mark.parametrize("name", NAMES)
def test_any_order_of_levels_is_accepted(tmp_path: Path, name: str) -> None:
    """Case A03: up and down, the kernel that refuses minimum > maximum never sees it."""
    board, writer = make(tmp_path, name)
    levels = [knob.allowed_mhz for knob in board.knobs]
    for place in (0, -1, 1, -2, 0, -1):
        board.apply(Setting(**{k.name: v[place] for k, v in zip(board.knobs, levels, strict=True)}))
    assert board.apply(AS_FOUND) == AS_FOUND
    assert writer.written
