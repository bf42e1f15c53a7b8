from __future__ import annotations

import numpy as np
import pytest
from stable_baselines3 import PPO

from rlgov.envs.observation import observation_names
from rlgov.training.tally import Tally
from rlgov.training.vec_env import GovernorVecEnv
from tests.envs.world import make_env

N = 5


def test_it_steps_as_the_batched_environment_does() -> None:
    vec, env = GovernorVecEnv(make_env(N), 30, seed=4), make_env(N)
    np.testing.assert_array_equal(vec.reset(), env.reset(4))
    rng = np.random.default_rng(0)
    for _ in range(6):
        actions = rng.integers(0, env.grid.sizes, (N, 3))
        observation, reward, done, _ = vec.step(actions)
        result = env.step(actions)
        assert result.scored is not None
        np.testing.assert_array_equal(observation, result.observation)
        np.testing.assert_allclose(reward, result.scored.reward, rtol=1e-6)
        assert not done.any()


def test_the_horizon_truncates_and_the_next_episodes_begin_at_once() -> None:
    vec = GovernorVecEnv(make_env(N), 3, seed=4)
    first = vec.reset()
    for _ in range(2):
        assert vec.step(np.zeros((N, 3), np.int64))[3] == [{}] * N
    observation, _, done, infos = vec.step(np.zeros((N, 3), np.int64))
    assert done.all()
    assert all(info["TimeLimit.truncated"] for info in infos)
    decided = observation_names().index("decided")
    assert infos[2]["terminal_observation"][decided] == pytest.approx(0.1)
    assert (observation[:, decided] == 0).all()
    assert not np.array_equal(observation, first)


def test_stable_baselines_learns_on_it() -> None:
    vec = GovernorVecEnv(make_env(8), 4, seed=1)
    model = PPO("MlpPolicy", vec, n_steps=4, batch_size=16, n_epochs=1, seed=1, device="cpu")
    model.learn(64)
    assert model.num_timesteps == 64
    assert vec.get_attr("render_mode") == [None] * 8


def test_a_tally_is_a_mean_and_starts_anew() -> None:
    env, tally = make_env(N), Tally()
    env.reset(1)
    total = 0.0
    for _ in range(3):
        result = env.step(np.ones((N, 3), np.int64))
        assert result.scored is not None
        total += result.scored.reward.mean() / 3
        tally.add(result, env.preference)
    means = tally.take()
    assert means["reward/total"] == pytest.approx(total)
    assert means["guard/budget"] > 0
    assert tally.take() == {}
