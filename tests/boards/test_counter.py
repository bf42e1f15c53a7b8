from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlgov.boards.counter import AMBIGUOUS, UNRESOLVED, EnergyCounter

RANGE_J = 262_143.328850


def test_case_t01_a_wrap_is_the_joules_across_it() -> None:
    counter = EnergyCounter(RANGE_J)
    assert counter.power(0.0, 262_000.0)[0] is None
    watts, _ = counter.power(2.0, 0.5)
    assert watts == pytest.approx((RANGE_J - 262_000.0 + 0.5) / 2.0)


def test_case_t01_three_wraps_in_a_window_are_all_counted_when_polled() -> None:
    counter = EnergyCounter(RANGE_J)
    spent = [i * RANGE_J / 8 for i in range(26)]
    for i, joules in enumerate(spent):
        counter.power(60.0 * i, joules % RANGE_J)
    assert counter.total_j == pytest.approx(spent[-1])
    assert counter.ambiguous == 0


def test_case_t01_a_gap_that_could_hide_a_wrap_is_ambiguous() -> None:
    counter = EnergyCounter(RANGE_J, max_power_w=1000.0)
    counter.power(0.0, 100.0)
    assert counter.power(300.0, 200.0) == (None, AMBIGUOUS)
    assert (counter.ambiguous, counter.total_j) == (1, 0.0)
    assert counter.power(301.0, 250.0)[0] == pytest.approx(50.0)


def test_case_t02_a_fall_without_a_known_range_is_dropped_and_counted() -> None:
    counter = EnergyCounter(None)
    counter.power(0.0, 4000.0)
    assert counter.power(1.0, 0.01) == (None, UNRESOLVED)
    assert counter.wraps_unresolved == 1
    assert counter.power(2.0, 10.01)[0] == pytest.approx(10.0)
    assert counter.total_j == pytest.approx(10.0)


@given(
    st.lists(st.floats(0.0, 1e6), min_size=2, max_size=20),
    st.one_of(st.none(), st.floats(1e4, 1e6)),
)
def test_no_joule_is_ever_negative(reads: list[float], range_j: float | None) -> None:
    counter = EnergyCounter(range_j)
    total = 0.0
    for t_s, joules in enumerate(reads):
        watts, reason = counter.power(float(t_s), joules if range_j is None else joules % range_j)
        assert watts is None or watts >= 0.0
        assert (watts is None) == bool(reason)
        assert counter.total_j >= total
        total = counter.total_j


@given(st.lists(st.floats(0.0, 900.0), min_size=1, max_size=30), st.floats(0.0, 1000.0))
def test_what_was_spent_is_what_is_counted(watts: list[float], start: float) -> None:
    counter = EnergyCounter(1000.0, max_power_w=950.0)
    spent = start
    counter.power(0.0, spent % 1000.0)
    for t_s, power in enumerate(watts, 1):
        spent += power
        counter.power(float(t_s), spent % 1000.0)
    assert counter.total_j == pytest.approx(spent - start, abs=1e-6)
