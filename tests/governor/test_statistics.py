from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from rlgov.governor.statistics import Interval, log_ratio_interval, t_quantile

positive = st.lists(st.floats(0.1, 100.0), min_size=2, max_size=20)


@given(st.floats(0.01, 0.99), st.floats(1.0, 500.0))
def test_quantiles_are_scipys(p, freedom):
    assert t_quantile(p, freedom) == pytest.approx(stats.t.ppf(p, freedom), rel=1e-5, abs=1e-9)


def test_with_many_degrees_of_freedom_it_is_the_normal_distribution():
    assert t_quantile(0.975, 1e6) == pytest.approx(1.959964, abs=1e-5)


@pytest.mark.parametrize(("p", "freedom"), [(0.0, 5), (1.0, 5), (0.5, 0.5), (math.nan, 5)])
def test_what_has_no_quantile_is_refused(p, freedom):
    with pytest.raises(ValueError, match="no quantile"):
        t_quantile(p, freedom)


@given(positive, positive)
def test_the_interval_is_welchs(a, b):
    logs = np.log(a), np.log(b)
    assume(min(map(np.var, logs)) > 1e-9)
    mine = log_ratio_interval(a, b)
    theirs = stats.ttest_ind(*logs, equal_var=False).confidence_interval(0.95)
    assert mine.value == pytest.approx(logs[0].mean() - logs[1].mean(), abs=1e-9)
    assert (mine.low, mine.high) == pytest.approx((theirs.low, theirs.high), rel=1e-4, abs=1e-8)


@given(st.floats(0.1, 100), st.floats(0.1, 100), st.floats(1.0001, 3.0))
def test_two_windows_a_side_of_which_one_side_agrees(a, b, factor):
    """Satterthwaite gives one degree of freedom, or a rounding less."""
    interval = log_ratio_interval([a, a], [b, b * factor])
    assert interval.low < interval.value < interval.high


def test_windows_that_all_agree_leave_no_doubt():
    interval = log_ratio_interval([2.0, 2.0], [4.0, 4.0, 4.0])
    assert interval == Interval(math.log(0.5), math.log(0.5), math.log(0.5))


@pytest.mark.parametrize(("a", "b"), [([1.0], [1.0, 2.0]), ([1.0, 2.0], [1.0]), ([], [1.0, 2.0])])
def test_fewer_than_two_windows_a_side_are_no_interval(a, b):
    assert log_ratio_interval(a, b) is None


def test_a_falling_function_swaps_the_ends():
    interval = Interval(-0.2, -0.3, -0.1).map(lambda log: 1.0 - math.exp(log))
    assert interval.low < interval.value < interval.high


def test_the_interval_covers_the_truth_in_95_of_100_runs():
    """Three thousand simulated runs whose sides differ in spread; 94 to 96 are allowed."""
    rng = np.random.default_rng(20)
    truth, covered, runs = math.log(0.8), 0, 3000
    for _ in range(runs):
        decided = np.exp(truth + 0.02 * rng.standard_normal(30))
        found = np.exp(0.015 * rng.standard_normal(5))
        interval = log_ratio_interval(decided.tolist(), found.tolist())
        covered += interval.low <= truth <= interval.high
    assert 0.94 <= covered / runs <= 0.96
