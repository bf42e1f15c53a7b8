from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlgov.governor.stepsize import LEAST_STEPS, StepSize

lengths = st.lists(st.integers(1, 4000), min_size=LEAST_STEPS, max_size=60).filter(
    lambda tokens: len(set(tokens)) > 2
)


@given(lengths, st.floats(0.0, 1.0), st.floats(1e-5, 1e-3), st.integers(1, 4000))
def test_a_line_is_found_and_the_mean_step_has_size_one(tokens, fixed_s, slope, other):
    size = StepSize()
    size.learn([(t, fixed_s + slope * t) for t in tokens])
    mean = sum(tokens) / len(tokens)
    expected = (fixed_s + slope * other) / (fixed_s + slope * mean)
    assert size.size(other, 1) == pytest.approx(max(expected, 0.1), rel=1e-6)
    assert size.size(sum(tokens), len(tokens)) == pytest.approx(1.0)


@given(lengths, st.integers(1, 40))
def test_it_is_no_matter_in_which_portions_it_learns(tokens, cut):
    steps = [(t, 0.1 + 1e-4 * t) for t in tokens]
    whole, parts = StepSize(), StepSize()
    whole.learn(steps)
    parts.learn(steps[:cut])
    parts.learn(steps[cut:])
    assert parts.size(777, 2) == pytest.approx(whole.size(777, 2))


@pytest.mark.parametrize(
    "steps",
    [
        [],
        [(100 + i, 0.1 + i) for i in range(LEAST_STEPS - 1)],
        [(None, 0.1)] * 50,
        [(128, 0.1 + 0.001 * i) for i in range(50)],
        [(100 + i, 9.0 - 0.1 * i) for i in range(50)],
    ],
    ids=["nothing", "too few", "unknown", "all alike", "longer is faster"],
)
def test_where_sizes_tell_nothing_every_step_is_a_step(steps):
    size = StepSize()
    size.learn(steps)
    assert not size.corrects
    assert size.size(10, 1) == 1.0


def test_tokens_that_are_not_known_are_not_corrected():
    size = StepSize()
    size.learn([(100 + i, 0.1 + 0.01 * i) for i in range(50)])
    assert size.corrects
    assert size.size(None, 5) == 1.0


def test_a_size_is_never_near_zero():
    size = StepSize()
    size.learn([(1000 + i, 0.001 * i) for i in range(1, 50)])
    assert size.size(1, 1) == 0.1
