from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlgov.boards.base import AS_FOUND, Setting
from rlgov.governor.ledger import Ledger
from rlgov.governor.live import LiveWindow, Stretch
from rlgov.metering import Energy

LOW = Setting(gpu=306.0)


def stretch(
    seconds: float = 2.0,
    joules: float | None = 60.0,
    steps: int = 10,
    pause: tuple[float, float | None] = (0.0, 0.0),
    tokens: int | None = None,
    why: str = "stale (last reading 9.99 s old)",
) -> Stretch:
    quality = {"total": why} if joules is None else {}
    rails = {} if joules is None else {"gpu": joules}
    energy = Energy(0.0, seconds, joules, rails, quality)
    return Stretch(0.0, seconds, steps, pause[0], energy, pause[1], tokens, None)


def window(metered: Stretch | None, settling: Stretch | None = None, asked: Setting = LOW):
    return LiveWindow(asked, asked, settling, metered)


def filled(decided: list[float | None], found: list[float | None]) -> Ledger:
    ledger = Ledger()
    for joules in found:
        ledger.add("reference", window(stretch(joules=joules), asked=AS_FOUND), True)
    for joules in decided:
        ledger.add("decided", window(stretch(joules=joules)), True)
    return ledger


class TestSaving:
    def test_it_is_of_decided_against_all_as_found_windows(self):
        ledger = filled([48.0, 48.0], [60.0])
        ledger.add("audit", window(stretch(joules=60.0), asked=AS_FOUND), True)
        assert ledger.saving().value == pytest.approx(0.2)
        assert ledger.slowdown().value == pytest.approx(0.0)

    @pytest.mark.parametrize(
        ("decided", "found"), [([48.0], [60.0, 60.0]), ([48.0, 48.0], [60.0]), ([], [])]
    )
    def test_it_needs_two_windows_a_side(self, decided, found):
        assert filled(decided, found).saving() is None

    def test_windows_that_were_not_metered_are_in_no_mean(self):
        ledger = filled([48.0, None, 48.0], [60.0, 60.0, None])
        assert ledger.saving().value == pytest.approx(0.2)
        decided = ledger.account("decided")
        assert (decided.steps, decided.metered_steps) == (30, 20)
        assert decided.j_per_step == pytest.approx(4.8)
        assert filled([None, None], [60.0, 60.0]).saving() is None

    @pytest.mark.parametrize("joules", [0.0, -1.0])
    def test_a_window_that_cost_nothing_is_no_window_to_compare(self, joules):
        """As where a rail is gated, or a pause cost all that a coarse sensor showed."""
        assert filled([joules, 48.0], [60.0, 60.0]).saving() is None

    def test_a_window_that_was_all_pause_has_no_pace(self):
        ledger = filled([48.0], [60.0, 60.0])
        ledger.add("decided", window(stretch(pause=(2.0, 60.0))), True)
        assert ledger.slowdown() is None

    @given(st.lists(st.floats(1.0, 99.0), min_size=2, max_size=9), st.floats(0.1, 10.0))
    def test_it_is_the_same_in_any_unit(self, joules, factor):
        plain = filled(joules, [60.0, 61.0]).saving()
        scaled = filled([j * factor for j in joules], [60.0 * factor, 61.0 * factor]).saving()
        assert plain.value == pytest.approx(scaled.value)

    def test_it_is_at_equal_size_where_sizes_are_known(self):
        ledger = Ledger()
        ledger.size.learn([(100 + i, 0.1 + 0.001 * i) for i in range(40)])
        for tokens, joules, seconds in ((1195, 60.0, 1.195), (1195, 60.0, 1.195)):
            ledger.add("reference", window(stretch(seconds, joules, tokens=tokens)), True)
        for _ in range(2):
            ledger.add("decided", window(stretch(0.5975, 30.0, tokens=597)), True)
        assert ledger.saving().value == pytest.approx(0.0, abs=0.01)
        assert ledger.slowdown().value == pytest.approx(0.0, abs=0.01)


class TestSums:
    def test_no_sum_mixes_what_was_metered_with_what_was_not(self):
        ledger = filled([48.0, 48.0], [60.0])
        assert ledger.energy_j == pytest.approx(156.0)
        ledger.add("decided", window(stretch(joules=None)), True)
        assert ledger.energy_j is None
        assert ledger.unmetered == {"stale": 1}

    def test_nor_does_a_pause_without_a_figure(self):
        ledger = filled([48.0], [60.0])
        ledger.add("decided", window(stretch(pause=(1.0, None))), True)
        assert ledger.energy_j is None
        assert math.isnan(ledger.pause_j)
        assert ledger.account("decided").metered_steps == 10

    def test_settling_and_the_tail_are_in_the_sums_but_in_no_mean(self):
        ledger = filled([48.0], [60.0])
        ledger.add("decided", window(stretch(joules=50.0), stretch(joules=99.0, steps=4)), True)
        ledger.add("decided", window(stretch(joules=7.0, steps=1)), False)
        ledger.add("decided", window(None, stretch(joules=1.0, steps=1)), False)
        assert ledger.account("decided").j_per_step == pytest.approx(4.9)
        assert ledger.energy_j == pytest.approx(48 + 60 + 50 + 99 + 7 + 1)
        assert ledger.steps == 10 + 10 + 10 + 4 + 1 + 1
        assert len(ledger.windows["decided"]) == 2

    def test_reasons_of_many_figures_are_one_cause(self):
        ledger = Ledger()
        for age in range(50):
            why = f"stale (last reading {age:.2f} s old)"
            ledger.add("decided", window(stretch(joules=None, why=why)), True)
        assert ledger.unmetered == {"stale": 50}


class TestSettings:
    @given(
        st.lists(st.tuples(st.sampled_from([306.0, 408.0, None]), st.floats(0.1, 9)), min_size=1)
    )
    def test_shares_sum_to_one_the_largest_first(self, parts):
        ledger = Ledger()
        for gpu, seconds in parts:
            ledger.add("decided", window(stretch(seconds), asked=Setting(gpu=gpu)), True)
        shares = list(ledger.settings_time_share().values())
        assert sum(shares) == pytest.approx(1.0)
        assert shares == sorted(shares, reverse=True)

    def test_only_decided_time_counts_settling_included(self):
        ledger = filled([], [60.0])
        assert ledger.settings_time_share() == {}
        ledger.add("decided", window(stretch(3.0), stretch(1.0)), True)
        ledger.add("decided", window(stretch(4.0), asked=AS_FOUND), True)
        assert ledger.settings_time_share() == {str(LOW): 0.5, str(AS_FOUND): 0.5}


def test_nothing_is_known_of_nothing():
    ledger = Ledger()
    account = ledger.account("decided", "audit", "reference")
    assert account.j_per_step is account.s_per_step is None
    assert ledger.saving() is ledger.slowdown() is None
    assert ledger.steps == 0
