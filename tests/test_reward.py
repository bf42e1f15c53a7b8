from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlgov.errors import ConfigError
from rlgov.reward import OBJECTIVES, Preference, RewardSpec, reward_terms, total_reward

ratios = st.floats(0.05, 20.0)
SPEC = RewardSpec()


def one(value: float) -> np.ndarray:
    return np.array([value])


def terms_of(objective: str, time: float, energy: float, budget: float = 0.1, cap: float = 0.8):
    preference = Preference.of(objective, budget, 1, cap)
    return reward_terms(one(time), one(energy), preference, SPEC)


def reward(objective: str, time: float, energy: float, budget: float = 0.1) -> float:
    return float(total_reward(terms_of(objective, time, energy, budget))[0])


@given(st.sampled_from(sorted(OBJECTIVES)), ratios, ratios, st.floats(0, 3))
def test_the_reward_is_the_sum_of_its_named_terms(objective, time, energy, budget):
    terms = terms_of(objective, time, energy, budget)
    assert set(terms) == {"energy", "time", "budget", "power_cap"}
    assert total_reward(terms)[0] == pytest.approx(sum(t[0] for t in terms.values()))
    assert np.isfinite(total_reward(terms)).all()


@pytest.mark.parametrize("objective", ["energy", "edp", "ed2p"])
def test_as_found_is_worth_nothing(objective):
    assert reward(objective, 1.0, 1.0) == 0.0


@given(ratios, ratios, st.floats(1.01, 3.0))
def test_energy_counts_by_ratio_whatever_the_scale(time, energy, factor):
    gained = reward("energy", time, energy, 50.0) - reward("energy", time, energy * factor, 50.0)
    assert gained == pytest.approx(np.log(factor))


def test_objectives_weigh_time_as_they_say():
    time, energy = 1.05, 0.7
    for objective, weight in (("energy", 0), ("edp", 1), ("ed2p", 2)):
        expected = -np.log(energy) - weight * np.log(time)
        assert reward(objective, time, energy) == pytest.approx(expected)
    assert reward("power_cap", time, 0.5) == pytest.approx(-np.log(time))


@given(st.floats(0, 1), st.floats(1.0, 5.0))
def test_the_budget_is_a_hinge(budget, excess):
    inside = terms_of("energy", (1 + budget) * 0.9999, 1.0, budget)
    beyond = terms_of("energy", (1 + budget) * excess, 1.0, budget)
    assert inside["budget"][0] == 0.0
    assert beyond["budget"][0] == pytest.approx(-SPEC.budget_slope * np.log(excess), abs=1e-9)


def test_beyond_the_budget_no_saving_pays():
    assert reward("energy", 1.1 * 1.1, 0.6) < reward("energy", 1.1, 0.7)


def test_a_margin_starts_the_hinge_earlier():
    preference = Preference.of("energy", 0.1)
    terms = reward_terms(one(1.09), one(1.0), preference, RewardSpec(margin=0.05))
    assert terms["budget"][0] < 0


def test_the_cap_is_on_power_not_energy():
    """Half the energy in half the time is the power as found, above a cap of 0.8."""
    assert terms_of("power_cap", 0.5, 0.5)["power_cap"][0] == pytest.approx(10 * np.log(0.8))
    assert terms_of("power_cap", 1.0, 0.79)["power_cap"][0] == 0.0
    assert terms_of("energy", 0.5, 0.5)["power_cap"][0] == 0.0


def test_a_window_that_was_not_metered_has_no_reward():
    assert np.isnan(reward("energy", 1.0, np.nan))
    assert np.isnan(reward("edp", np.nan, 1.0))


def test_jobs_side_by_side_are_scored_apart():
    preference = Preference.of("energy", 0.1, 3)
    total = total_reward(
        reward_terms(np.array([1.0, 1.3, 1.0]), np.array([0.5, 1.0, 2.0]), preference, SPEC)
    )
    alone = [reward("energy", t, e) for t, e in ((1.0, 0.5), (1.3, 1.0), (1.0, 2.0))]
    np.testing.assert_allclose(total, alone)


@pytest.mark.parametrize(
    ("objective", "budget", "cap", "message"),
    [
        ("enrgy", 0.1, None, "energy, edp, ed2p, power_cap"),
        ("energy", -0.1, None, "0 or more"),
        ("energy", float("nan"), None, "0 or more"),
        ("power_cap", 0.1, None, "needs a cap"),
        ("power_cap", 0.1, 0.0, "needs a cap"),
        ("power_cap", 0.1, -1.0, "needs a cap"),
    ],
)
def test_what_cannot_be_wanted_is_refused(objective, budget, cap, message):
    with pytest.raises(ConfigError, match=message):
        Preference.of(objective, budget, 1, cap)
