from __future__ import annotations

import dataclasses
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlgov.envs.observation import observation_names
from rlgov.envs.spaces import ActionGrid
from rlgov.errors import PolicyError
from rlgov.policies.surrogate import Belief, Surrogate, expected_excess, feature_names
from tests.envs.world import make_env
from tests.policies.beliefs import tiny_surrogate

GRID = ActionGrid({"gpu": (0.25, 0.5, 1.0), "cpu": (0.5, 1.0), "emc": (0.3, 1.0)})
NAMES = observation_names()


def seen(n: int = 1, **features: float) -> np.ndarray:
    observation = np.zeros((n, len(NAMES)), np.float32)
    values = {"energy_weight": 1.0, "budget": 0.1, "offered_gpu": 1.0, "offered_cpu": 1.0}
    for name, value in {**values, "offered_emc": 1.0, **features}.items():
        observation[:, NAMES.index(name)] = value
    return observation


def ran(action: tuple[int, int, int], log_time: float, log_energy: float) -> np.ndarray:
    features = {"recent0_valid": 1.0, "recent0_log_time": 4 * log_time}
    features["recent0_log_energy"] = 4 * log_energy
    for knob, level in zip(("gpu", "cpu", "emc"), action, strict=True):
        features[f"recent0_{knob}_auto"] = float(level == 0)
        features[f"recent0_{knob}_clock"] = 1.0 if level == 0 else GRID.fractions[knob][level - 1]
    return seen(1, **features)


def regrets(features: np.ndarray) -> list[np.ndarray]:
    ends = np.cumsum([0, *GRID.sizes])
    return [features[0, a:b] for a, b in pairwise(ends)]


def test_features_are_named_and_each_knob_has_a_level_without_regret() -> None:
    features = Belief(tiny_surrogate(GRID), GRID)
    features.begin(1)
    found = features.features(seen())
    assert found.shape == (1, len(feature_names(GRID)))
    assert np.isfinite(found).all()
    for part in regrets(found):
        assert part.min() == pytest.approx(0.0, abs=1e-5)
        assert (part >= 0).all()


def test_measuring_a_setting_again_and_again_settles_its_cost() -> None:
    belief = Belief(tiny_surrogate(GRID), GRID)
    belief.begin(1)
    belief.features(seen())
    belief.chose(np.array([[2, 1, 2]]))
    for _ in range(40):
        belief.features(ran((2, 1, 2), 0.02, -0.15))
    log_time, error, log_energy = belief._predict(1)
    at = np.ravel_multi_index((2, 1, 2), GRID.sizes)
    assert log_time[0, at] == pytest.approx(0.02, abs=2e-3)
    assert log_energy[0, at] == pytest.approx(-0.15, abs=3e-3)
    assert error[0, at] < 0.0025


def test_a_measurement_never_widens_what_is_believed() -> None:
    belief = Belief(tiny_surrogate(GRID), GRID)
    belief.begin(1)
    belief.features(seen())
    before = belief._predict(1)[1].copy()
    belief.features(ran((1, 2, 1), 0.3, 0.1))
    assert (belief._predict(1)[1] <= before + 1e-5).all()


def test_a_window_that_was_not_metered_changes_nothing() -> None:
    belief = Belief(tiny_surrogate(GRID), GRID)
    belief.begin(1)
    first = belief.features(seen())
    silent = ran((1, 1, 1), 0.0, 0.0)  # the observation holds 0 for what was not measured
    silent[:, NAMES.index("recent0_valid")] = 0.0
    np.testing.assert_allclose(belief.features(silent), first, atol=1e-5)


def test_energy_is_learnt_where_time_is_not_measured_and_no_budget_is_priced() -> None:
    belief = Belief(tiny_surrogate(GRID), GRID)
    belief.begin(1)
    belief.features(seen(budget=0.0))
    for _ in range(20):
        belief.features(ran((1, 1, 1), 0.0, -0.4))
    log_time, error, log_energy = belief._predict(1)
    at = np.ravel_multi_index((1, 1, 1), GRID.sizes)
    assert log_energy[0, at] == pytest.approx(-0.4, abs=0.02)
    untimed, timed = ran((1, 1, 1), 0.0, -0.4), seen(budget=0.0, reference_log_time=0.5)
    cost = belief._cost(untimed, log_time, error, log_energy)
    assert cost[0, at] == pytest.approx(log_energy[0, at], abs=1e-4)
    assert belief._cost(timed, log_time, error, log_energy)[0, at] > cost[0, at]


def test_knobs_that_are_not_offered_are_never_worth_turning() -> None:
    belief = Belief(tiny_surrogate(GRID), GRID)
    belief.begin(1)
    parts = regrets(belief.features(seen(offered_cpu=0.0)))
    assert parts[1].argmin() == 0
    assert (parts[1][1:] > 3.0).all()


def test_what_the_guard_replaced_is_not_asked_for_again_nor_what_is_slower() -> None:
    belief = Belief(tiny_surrogate(GRID), GRID)
    belief.begin(1)
    belief.features(seen(reference_gpu_clock=1.0, reference_cpu_clock=1.0, reference_emc_clock=1.0))
    belief.chose(np.array([[2, 1, 1]]))
    belief.features(ran((0, 0, 0), 0.0, 0.0))
    cost = belief._banned
    assert cost is not None
    cube = cost[0].reshape(GRID.sizes)
    assert cube[2, 1, 1]
    assert cube[1, 1, 1]
    assert not cube[3, 2, 2]
    assert not cube[0, 0, 0]


def test_one_job_among_many_is_believed_as_if_alone() -> None:
    env = make_env(6)
    surrogate = tiny_surrogate(env.grid)
    together, alone = Belief(surrogate, env.grid), Belief(surrogate, env.grid)
    observation = env.reset(3)
    together.begin(6)
    alone.begin(1)
    rng = np.random.default_rng(0)
    for _ in range(5):
        many = together.features(observation)
        one = alone.features(observation[2:3])
        np.testing.assert_allclose(many[2:3], one, atol=2e-3)
        actions = np.stack([rng.integers(0, size, 6) for size in env.grid.sizes], axis=1)
        together.chose(actions)
        alone.chose(actions[2:3])
        observation = env.step(actions).observation


@given(st.floats(-0.5, 0.5), st.floats(0.001, 0.1))
def test_expected_excess_lies_between_its_bounds(mean: float, error: float) -> None:
    excess = float(expected_excess(np.array([mean]), np.array([error]))[0])
    assert max(mean, 0.0) <= excess + 1e-9
    assert excess <= max(mean, 0.0) + 0.42 * error


@pytest.mark.parametrize("name", ["mean", "basis", "w2", "price"])
def test_arrays_that_do_not_fit_are_refused_by_name(name: str) -> None:
    surrogate = tiny_surrogate(GRID)
    broken = dataclasses.replace(surrogate, **{name: getattr(surrogate, name)[..., :1]})
    with pytest.raises(PolicyError, match=f"belief's {name}"):
        broken.check(GRID, "here")
    assert Surrogate.of_arrays(surrogate.arrays()) is not None
