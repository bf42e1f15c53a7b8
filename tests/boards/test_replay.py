from __future__ import annotations

import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlgov.boards.base import Board, Setting
from rlgov.boards.replay import ReplayBoard
from rlgov.boards.surface import Surface
from rlgov.errors import BoardError, ConfigError
from tests.conformance.board_contract import BoardContract

NAN = float("nan")
GPU = np.array([306.0, 510.0, 918.0, 1300.0])


def line(**more: object) -> Surface:
    figures = {"time_s": 60.0 / GPU, "energy_j": np.array([3.0, 2.0, 2.2, 2.9])}
    return Surface({"gpu": GPU}, figures, dict(more), "TOTAL")


def grid() -> Surface:
    g, m = (x.ravel() for x in np.meshgrid(GPU, [2133.0, 3199.0], indexing="ij"))
    time_s = 40.0 / g + 30.0 / m
    return Surface({"gpu": g, "emc": m}, {"time_s": time_s, "rail gpu": g / 50}, {}, "")


def scattered() -> Surface:
    g = np.array([306.0, 306.0, 1300.0])
    m = np.array([2133.0, 3199.0, 3199.0])
    return Surface({"gpu": g, "emc": m}, {"time_s": 40.0 / g + 30.0 / m}, {}, "")


def targets(*rows: tuple[float, float, float]) -> np.ndarray:
    return np.array(rows, float)


class TestLine(BoardContract):
    def make_board(self) -> Board:
        return ReplayBoard(line())


class TestGrid(BoardContract):
    def make_board(self) -> Board:
        return ReplayBoard(grid())


def test_measured_settings_are_met_exactly() -> None:
    for i, mhz in enumerate(GPU):
        at = targets((mhz, NAN, NAN))
        assert line().at("energy_j", at)[0] == pytest.approx([3.0, 2.0, 2.2, 2.9][i])
    surface = grid()
    at = targets((510.0, NAN, 2133.0))
    assert surface.at("time_s", at)[0] == pytest.approx(40 / 510 + 30 / 2133)


@given(mhz=st.floats(306.0, 1300.0))
def test_between_settings_lies_between_their_figures(mhz: float) -> None:
    value = line().at("time_s", targets((mhz, NAN, NAN)))[0]
    assert value == pytest.approx(60.0 / mhz, rel=1e-9)  # a power law is straight in logarithms
    energy = line().at("energy_j", targets((mhz, NAN, NAN)))[0]
    assert 2.0 - 1e-9 <= energy <= 3.0 + 1e-9


@pytest.mark.parametrize("mhz", [305.0, 1301.0])
def test_outside_is_an_error(mhz: float) -> None:
    with pytest.raises(ConfigError, match="spans 306 to 1300"):
        line().at("time_s", targets((mhz, NAN, NAN)))


def test_a_knob_that_was_not_varied_is_refused() -> None:
    with pytest.raises(ConfigError, match="does not vary cpu"):
        line().at("time_s", targets((510.0, 1000.0, NAN)))


def test_automatic_is_the_as_found_row_or_the_highest_setting() -> None:
    auto = targets((NAN, NAN, NAN))
    assert line().at("time_s", auto)[0] == pytest.approx(60.0 / 1300.0)
    assert line(time_s=0.07).at("time_s", auto)[0] == 0.07
    assert np.isnan(line(time_s=0.07).at("energy_j", auto)[0])


def test_what_was_not_measured_is_nan_and_never_zero() -> None:
    figures = {"time_s": np.array([1.0, NAN, 3.0, 4.0])}
    surface = Surface({"gpu": GPU}, figures, {}, "")
    at = targets((306.0, NAN, NAN), (400.0, NAN, NAN), (510.0, NAN, NAN), (918.0, NAN, NAN))
    found = surface.at("time_s", at)
    assert np.isnan(found).tolist() == [False, True, True, False]
    assert np.isnan(surface.at("energy_j", at)).all()


def test_a_scattered_profile_has_its_own_hull() -> None:
    surface = scattered()
    inside = targets((306.0, NAN, 2500.0), (1300.0, NAN, 3199.0))
    assert surface.covers(inside).all()
    assert surface.at("time_s", inside)[1] == pytest.approx(40 / 1300 + 30 / 3199)
    corner = targets((1300.0, NAN, 2133.0))
    assert not surface.covers(corner)[0]
    with pytest.raises(ConfigError, match="outside of the measured"):
        surface.at("time_s", corner)
    board = ReplayBoard(surface)
    with pytest.raises(ConfigError, match="outside"):
        board.apply(Setting(gpu=1300.0, emc=2133.0))


def test_clocks_that_only_vary_together_are_refused() -> None:
    together = Surface({"gpu": GPU, "emc": GPU * 2}, {"time_s": 1 / GPU}, {}, "")
    with pytest.raises(ConfigError, match="vary together"):
        together.covers(targets((510.0, NAN, 1020.0)))


def test_a_scattered_profile_without_scipy_names_the_extra(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "scipy.spatial", None)
    with pytest.raises(ConfigError, match=r"rlgov\[fit\]"):
        scattered().covers(targets((306.0, NAN, 3199.0)))


def test_nothing_to_turn_is_refused() -> None:
    with pytest.raises(ConfigError, match="no clock"):
        Surface({}, {"time_s": np.ones(1)}, {}, "")


def test_a_board_takes_as_long_as_was_measured() -> None:
    board = ReplayBoard(line())
    board.apply(Setting(gpu=510.0))
    assert board.advance(10) == pytest.approx(10 * 60.0 / 510.0)
    reading = board.read()
    assert reading.total_w == pytest.approx(2.0 / (60.0 / 510.0))
    assert reading.t_s == board.now_s()
    assert board.emulated


def test_a_board_without_times_says_so() -> None:
    board = ReplayBoard(Surface({"gpu": GPU}, {"energy_j": GPU}, {}, ""))
    assert board.read().total_w is None
    assert "total" in board.read().missing
    with pytest.raises(BoardError, match="no step time"):
        board.advance()
