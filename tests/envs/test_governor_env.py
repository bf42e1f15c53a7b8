from __future__ import annotations

import gymnasium.utils.env_checker as gym_checker
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from stable_baselines3.common.env_checker import check_env as sb3_check_env

from rlgov.envs.batched import BatchedGovernorEnv
from rlgov.envs.governor_env import GovernorEnv
from rlgov.envs.observation import BOUND
from rlgov.envs.spaces import ActionGrid
from rlgov.errors import ConfigError
from tests.envs.world import Placed, make_plant, wanting


# Gymnasium warns that an environment made without gym.make cannot be checked for rendering.
@pytest.mark.filterwarnings("ignore:.*different render modes.*")
def test_gymnasiums_own_check() -> None:
    gym_checker.check_env(GovernorEnv(make_plant(1), wanting()), skip_render_check=True)


@pytest.mark.parametrize("objective", ["energy", "edp", "ed2p", "power_cap"])
def test_stable_baselines_own_check(objective: str) -> None:
    sb3_check_env(GovernorEnv(make_plant(1), wanting(objective)), warn=True)


def test_one_job_only() -> None:
    with pytest.raises(ConfigError, match="not of 2"):
        GovernorEnv(make_plant(2), wanting())


def test_the_horizon_truncates_and_never_terminates() -> None:
    env = GovernorEnv(make_plant(1), wanting(), horizon=3)
    env.reset(seed=1)
    ends = [env.step(np.zeros(3, np.int64))[2:4] for _ in range(3)]
    assert ends == [(False, False), (False, False), (False, True)]


def test_a_reward_is_a_python_float_and_infos_are_plain_scalars() -> None:
    env = GovernorEnv(make_plant(1), wanting())
    env.reset(seed=1)
    _, reward, _, _, info = env.step(np.array([3, 2, 0]))
    assert type(reward) is float
    assert {type(value) for value in info.values()} <= {float, bool}
    assert "setting/emc_mhz" not in info
    assert info["setting/gpu_mhz"] in env.batched.plant.knobs[0].levels_mhz


def test_the_same_seed_gives_the_same_episode_and_another_does_not() -> None:
    def play(seed: int) -> np.ndarray:
        env = GovernorEnv(make_plant(1), wanting())
        seen = [env.reset(seed=seed)[0]]
        seen += [env.step(np.array([i % 12, i % 5, i % 4]))[0] for i in range(10)]
        return np.stack(seen)

    np.testing.assert_array_equal(play(3), play(3))
    assert not np.array_equal(play(3), play(4))


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**31 - 1), st.lists(st.integers(0, 10**6), min_size=6, max_size=12))
def test_a_job_fares_the_same_alone_and_in_a_batch(seed: int, draws: list[int]) -> None:
    rows = np.array([6, 1, 3, 4])
    batch_plant = Placed(rows, seed)
    grid = ActionGrid.of_tables(batch_plant.knobs)
    batch = BatchedGovernorEnv(batch_plant, grid, wanting())
    single = GovernorEnv(Placed(rows[2:3], seed), wanting(), horizon=None)
    together = batch.reset(seed)
    alone, _ = single.reset(seed=seed)
    np.testing.assert_allclose(alone, together[2], rtol=0, atol=1e-6)
    for draw in draws:
        rng = np.random.default_rng(draw)
        actions = np.stack([rng.integers(0, size, len(rows)) for size in grid.sizes], axis=1)
        result = batch.step(actions)
        alone, reward, _, _, _ = single.step(actions[2])
        np.testing.assert_allclose(alone, result.observation[2], rtol=0, atol=1e-6)
        assert result.scored is not None
        assert reward == pytest.approx(result.scored.reward[2], abs=1e-6)


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 2**31 - 1))
def test_observations_stay_in_the_box(seed: int) -> None:
    env = GovernorEnv(make_plant(1), wanting())
    observation, _ = env.reset(seed=seed)
    rng = np.random.default_rng(seed)
    for _ in range(5):
        assert observation.dtype == np.float32
        assert np.abs(observation).max() <= BOUND
        observation = env.step(rng.integers(0, env.action_space.nvec))[0]
    assert env.observation_space.contains(observation)
