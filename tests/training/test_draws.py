from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlgov.policies.oracle import landscape
from rlgov.reward import OBJECTIVES, Preference, RewardSpec
from rlgov.training.config import Mixture
from rlgov.training.labels import costs, every_action, every_target, soft_labels
from rlgov.training.preferences import PreferenceDraws
from rlgov.training.warm_start import discounted
from tests.envs.world import make_env

N = 4000


def test_every_wish_is_drawn_about_as_often_as_asked() -> None:
    mixture = Mixture()
    drawn = PreferenceDraws(mixture).preference(N, np.random.default_rng(0))
    assert drawn.budget.min() == 0.0
    assert drawn.budget.max() > 0.9
    for budget in mixture.budgets:
        assert (drawn.budget == budget).mean() == pytest.approx(1 / 12, abs=0.02)
    pairs = np.stack([drawn.energy_weight, drawn.time_weight], axis=1)
    for name, share in mixture.objectives.items():
        assert (pairs == OBJECTIVES[name]).all(1).mean() == pytest.approx(share, abs=0.03)
    capped = ~np.isnan(drawn.power_cap)
    assert capped.mean() == pytest.approx(0.15, abs=0.03)
    assert drawn.power_cap[capped].min() >= 0.5


def test_some_knob_is_always_offered() -> None:
    offered = PreferenceDraws(Mixture(drop_knob=0.9)).offered(N, np.random.default_rng(0))
    assert offered.any(1).all()
    rare = PreferenceDraws(Mixture(drop_knob=0.15)).offered(N, np.random.default_rng(0))
    assert rare.mean() == pytest.approx(0.85, abs=0.02)


def test_labels_are_probabilities_and_sharpen_to_the_best_setting() -> None:
    env = make_env(3)
    env.reset(1)
    plant = env.plant
    targets = every_target(env.grid, list(plant.knobs))
    truth = landscape(plant, targets)
    wish = Preference.of("energy", 0.1, 3)
    cost = costs(truth, wish, RewardSpec())
    reachable = truth.reachable(np.ones((3, 3), bool))
    soft = soft_labels(cost, reachable, 0.05, env.grid.sizes)
    for part, size in zip(soft, env.grid.sizes, strict=True):
        assert part.shape == (3, size)
        np.testing.assert_allclose(part.sum(1), 1.0, rtol=1e-5)
    sharp = soft_labels(cost, reachable, 1e-6, env.grid.sizes)
    best = every_action(env.grid)[cost.argmin(1)]
    np.testing.assert_array_equal(np.stack([p.argmax(1) for p in sharp], 1), best)


def test_a_knob_that_is_not_offered_is_labelled_auto() -> None:
    env = make_env(2)
    env.reset(1)
    truth = landscape(env.plant, every_target(env.grid, list(env.plant.knobs)))
    cost = costs(truth, Preference.of("energy", 0.1, 2), RewardSpec())
    offered = np.array([[True, False, True], [True, True, True]])
    labels = soft_labels(cost, truth.reachable(offered), 0.01, env.grid.sizes)
    assert labels[1][0].tolist() == [1.0, *[0.0] * (env.grid.sizes[1] - 1)]
    assert labels[1][1][0] < 1.0


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 8), st.floats(0, 0.99))
def test_returns_are_discounted_sums(windows: int, gamma: float) -> None:
    rewards = np.random.default_rng(windows).normal(size=(windows, 2))
    expected = [
        sum(gamma ** (k - t) * rewards[k] for k in range(t, windows)) for t in range(windows)
    ]
    np.testing.assert_allclose(discounted(rewards, gamma), expected, atol=1e-12)
