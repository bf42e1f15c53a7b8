"""The batched environment as Stable-Baselines3's `VecEnv`: no Python loop over jobs in a step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import VecEnv

from rlgov.envs.batched import BatchedGovernorEnv, BatchStep
from rlgov.envs.observation import BOUND, observation_names
from rlgov.envs.spaces import AUTO_ACTION
from rlgov.errors import RlgovError
from rlgov.policies.surrogate import Belief, feature_names
from rlgov.training.tally import Tally

Observations = NDArray[np.float32]


class GovernorVecEnv(VecEnv):
    """``n`` episodes that start and end together; the horizon truncates them.

    Args:
        env: The environments.
        horizon: Decisions an episode.
        seed: Of the first episodes; later ones go on with the same stream.
        belief: Appends what the policy believes to the observation; the same that ships with it.
    """

    render_mode = None  # SB3 asks for it

    def __init__(
        self, env: BatchedGovernorEnv, horizon: int, seed: int, belief: Belief | None = None
    ) -> None:
        self.belief = belief
        shape = (len(observation_names()) + (len(feature_names(env.grid)) if belief else 0),)
        super().__init__(
            env.n,
            spaces.Box(
                -np.inf if belief else -BOUND, np.inf if belief else BOUND, shape, np.float32
            ),
            spaces.MultiDiscrete(np.array(env.grid.sizes)),
        )
        self.env = env
        self.horizon = horizon
        self.tally = Tally()
        self._seed: int | None = seed
        self._decided = 0
        self._actions = np.zeros((env.n, 3), np.int64)
        # SB3 only reads these between ends of episodes, so that all jobs may share one.
        self._no_infos: list[dict[str, Any]] = [{}] * env.n

    def reset(self) -> Observations:
        """Begin ``n`` episodes."""
        observation = self.env.reset(self._seed)
        self._seed = None
        self._decided = 0
        if self.belief is not None:
            self.belief.begin(self.num_envs)
        return self._seen(observation)

    def _seen(self, observation: Observations) -> Observations:
        if self.belief is None:
            return observation
        return np.concatenate([observation, self.belief.features(observation)], axis=1)

    def step_async(self, actions: NDArray[np.int64]) -> None:
        """Take note of the actions, ``[n, 3]``."""
        self._actions = actions

    def step_wait(
        self,
    ) -> tuple[Observations, NDArray[np.float32], NDArray[np.bool_], list[dict[str, Any]]]:
        """One decision for every job; at the horizon the next episodes begin at once."""
        if self.belief is not None:
            self.belief.chose(np.where(self.env.episodes.offered, self._actions, AUTO_ACTION))
        result = self.env.step(self._actions)
        observation = self._seen(result.observation)
        rewards = self._rewards(result)
        self._decided += 1
        if self._decided < self.horizon:
            return observation, rewards, np.zeros(self.num_envs, bool), self._no_infos
        infos = [
            {"terminal_observation": last, "TimeLimit.truncated": True} for last in observation
        ]
        return self.reset(), rewards, np.ones(self.num_envs, bool), infos

    def _rewards(self, result: BatchStep) -> NDArray[np.float32]:
        if result.scored is None:
            raise RlgovError("a simulated job ended: training needs jobs that go on")
        self.tally.add(result, self.env.preference)
        return result.scored.reward.astype(np.float32)

    def close(self) -> None:
        """Nothing is held."""
        return

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """The same value for every job."""
        return [getattr(self, attr_name)] * len(self._rows(indices))

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """Refused: the jobs share one environment.

        Raises:
            NotImplementedError: Always.
        """
        raise NotImplementedError("the jobs of a GovernorVecEnv share one environment")

    def env_method(
        self, method_name: str, *args: Any, indices: Any = None, **kwargs: Any
    ) -> list[Any]:
        """Refused: the jobs share one environment.

        Raises:
            NotImplementedError: Always.
        """
        raise NotImplementedError("the jobs of a GovernorVecEnv share one environment")

    def env_is_wrapped(self, wrapper_class: type, indices: Any = None) -> list[bool]:
        """No job is wrapped by anything."""
        return [False] * len(self._rows(indices))

    def _rows(self, indices: Any) -> Sequence[int]:
        return range(self.num_envs) if indices is None else np.atleast_1d(indices).tolist()
