from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlgov.errors import ConfigError
from rlgov.governor.audit import AuditPlan


def drawn(share: float, seed: int, n: int = 400) -> list[bool]:
    plan = AuditPlan(share, seed)
    return [plan.due() for _ in range(n)]


@given(st.sampled_from([0.05, 0.1, 0.2, 0.25, 0.5]), st.integers(0, 1000))
def test_there_is_one_in_every_block(share, seed):
    block = round(1 / share)
    windows = np.array(drawn(share, seed, 20 * block)).reshape(20, block)
    assert (windows.sum(1) == 1).all()


def test_its_place_in_the_block_is_anywhere():
    windows = np.array(drawn(0.1, 5, 2000)).reshape(200, 10)
    assert (windows.sum(0) > 5).all()


def test_the_same_seed_draws_the_same_and_another_seed_others():
    assert drawn(0.1, 1) == drawn(0.1, 1) != drawn(0.1, 2)


def test_nothing_else_that_is_drawn_moves_it():
    """No policy may learn when audits come, or bring them about."""
    plan, seen = AuditPlan(0.1, 1), []
    for _ in range(400):
        np.random.default_rng(1).normal(size=3)
        seen.append(plan.due())
    assert seen == drawn(0.1, 1)


def test_no_share_is_no_audit():
    assert not any(drawn(0.0, 1))


@pytest.mark.parametrize("share", [-0.1, 0.51, float("nan")])
def test_a_share_that_cannot_be_is_refused(share):
    with pytest.raises(ConfigError, match=r"audit_share=.* between 0 and 0.5"):
        AuditPlan(share, 1)
