"""What every board promises, as tests. A board's own test file subclasses `BoardContract`."""

from __future__ import annotations

from abc import ABC, abstractmethod

import pytest

from rlgov.boards.base import AS_FOUND, KNOB_NAMES, Board, BoardState, Setting
from rlgov.errors import ConfigError, LeaseError


class BoardContract(ABC):
    """Subclass as ``TestMyBoard(BoardContract)`` and give it a board."""

    @abstractmethod
    def make_board(self) -> Board: ...

    @pytest.fixture
    def board(self):
        board = self.make_board()
        yield board
        board.close()

    def lowest(self, board: Board) -> Setting:
        return Setting(**{k.name: k.allowed_mhz[0] for k in board.knobs})

    def test_knobs_are_in_order_with_ascending_tables(self, board):
        names = [k.name for k in board.knobs]
        assert names == [n for n in KNOB_NAMES if n in names]
        for knob in board.knobs:
            assert list(knob.levels_mhz) == sorted(set(knob.levels_mhz))
            assert knob.levels_mhz[0] > 0

    def test_a_reading_names_only_the_boards_rails_and_knobs(self, board):
        reading = board.read()
        assert set(reading.power_w) <= set(board.rails)
        assert set(reading.clocks_mhz) <= set(KNOB_NAMES)
        assert set(reading.utilisation) <= set(KNOB_NAMES)
        assert all(v is None or 0 <= v <= 1 for v in reading.utilisation.values())
        assert board.total_rule

    def test_the_clock_never_runs_backwards(self, board):
        first = board.now_s()
        assert board.read().t_s <= board.now_s()
        assert board.now_s() >= first

    def test_apply_returns_what_took_effect_and_as_found_leaves_every_knob(self, board):
        took = board.apply(self.lowest(board))
        assert {k.name: took[k.name] for k in board.knobs} == {
            k.name: k.allowed_mhz[0] for k in board.knobs
        }
        assert board.apply(AS_FOUND) == AS_FOUND

    def test_restore_gives_back_exactly_what_was_captured(self, board):
        before = board.capture()
        board.apply(self.lowest(board))
        board.restore(before)
        assert board.capture() == before
        board.restore(before)
        assert board.capture() == before

    def test_the_state_of_another_board_is_refused(self, board):
        with pytest.raises(LeaseError):
            board.restore(BoardState("some_other_board", board.capture().values))

    def test_a_value_off_the_table_is_refused_with_the_likely_unit(self, board):
        if not board.knobs:
            with pytest.raises(ConfigError, match="no knob"):
                board.apply(Setting(gpu=1.0))
            return
        knob = board.knobs[-1]
        before = board.capture()
        with pytest.raises(ConfigError, match="kHz"):
            board.apply(Setting(**{knob.name: knob.levels_mhz[-1] * 1e3}))
        with pytest.raises(ConfigError, match="nearest"):
            board.apply(Setting(**{knob.name: knob.levels_mhz[-1] * 1.0371}))
        assert board.capture() == before
