"""What every policy promises, as tests. A policy's own test file subclasses `PolicyContract`."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
import pytest

from rlgov.boards.base import KNOB_NAMES
from rlgov.envs.batched import BatchedGovernorEnv
from rlgov.envs.observation import observation_names
from rlgov.policies.base import Policy
from tests.envs.world import make_env

JOBS = 6


class PolicyContract(ABC):
    """Subclass as ``TestMyPolicy(PolicyContract)`` and give it a policy."""

    @abstractmethod
    def make_policy(self, env: BatchedGovernorEnv) -> Policy: ...

    @pytest.fixture
    def env(self) -> BatchedGovernorEnv:
        return make_env(JOBS)

    def play(self, env: BatchedGovernorEnv, policy: Policy, windows: int = 4) -> np.ndarray:
        observation = env.reset(5)
        policy.begin(env.n)
        chosen = []
        for _ in range(windows):
            chosen.append(policy.act(observation))
            observation = env.step_targets(chosen[-1]).observation
        return np.stack(chosen)

    def test_it_has_a_name(self, env):
        assert self.make_policy(env).name

    def test_targets_are_of_the_boards_tables(self, env):
        chosen = self.play(env, self.make_policy(env))
        assert chosen.shape == (4, JOBS, 3)
        for k, name in enumerate(KNOB_NAMES):
            table = next(knob.allowed_mhz for knob in env.plant.knobs if knob.name == name)
            turned = chosen[..., k]
            assert set(turned[np.isfinite(turned)]) <= set(table)

    def test_a_knob_that_is_not_offered_is_left_alone(self, env):
        policy = self.make_policy(env)
        observation = env.reset(5)
        policy.begin(JOBS)
        for k, knob in enumerate(KNOB_NAMES):
            masked = observation.copy()
            masked[:, observation_names().index(f"offered_{knob}")] = 0.0
            assert np.isnan(policy.act(masked)[:, k]).all()

    def test_begin_forgets_what_was(self, env):
        policy = self.make_policy(env)
        np.testing.assert_array_equal(self.play(env, policy), self.play(env, policy))

    def test_the_observation_is_left_as_it_was(self, env):
        policy = self.make_policy(env)
        observation = env.reset(5)
        before = observation.copy()
        policy.begin(JOBS)
        policy.act(observation)
        np.testing.assert_array_equal(observation, before)
