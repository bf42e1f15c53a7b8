"""`GovernorEnv`: the governor's problem as a Gymnasium environment, one job at a time."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from rlgov.boards.base import KNOB_NAMES
from rlgov.envs.batched import BatchedGovernorEnv, BatchStep, DrawPreference
from rlgov.envs.guard import GuardSpec
from rlgov.envs.observation import BOUND, observation_names
from rlgov.envs.plant import Plant
from rlgov.envs.spaces import ActionGrid
from rlgov.errors import ConfigError
from rlgov.reward import RewardSpec


class GovernorEnv(gym.Env[NDArray[np.float32], NDArray[np.int64]]):
    """One board with one job: simulated, replayed or live, as the plant is.

    An action is one level per knob (0: leave it as found). On a live job `reset` begins a new
    episode on the running job; the horizon truncates, the job's end terminates.

    Args:
        plant: A plant of one.
        grid: Levels that the policy may choose; the knobs' own tables by default.
        preference: Draws what the user wants at the start of an episode.
        guard: Which rules stand.
        reward: How hard the limits bite.
        reference_windows: As-found windows at the start of an episode.
        horizon: Decisions in an episode; ``None`` for no end but the job's.
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012 (Gymnasium declares it so)

    def __init__(
        self,
        plant: Plant,
        preference: DrawPreference,
        grid: ActionGrid | None = None,
        guard: GuardSpec | None = None,
        reward: RewardSpec | None = None,
        reference_windows: int = 2,
        horizon: int | None = 30,
    ) -> None:
        if plant.n != 1:
            raise ConfigError(f"GovernorEnv drives a plant of one board, not of {plant.n}")
        self.grid = grid or ActionGrid.of_tables(plant.knobs)
        self.batched = BatchedGovernorEnv(
            plant, self.grid, preference, guard, reward, reference_windows
        )
        self._horizon = horizon
        self._decided = 0
        shape = (len(observation_names()),)
        self.observation_space = spaces.Box(-BOUND, BOUND, shape, np.float32)
        self.action_space = spaces.MultiDiscrete(np.array(self.grid.sizes))

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float32], dict[str, Any]]:
        """Begin an episode: the reference windows run as found.

        Raises:
            JobOverError: The live job ended before the reference was measured.
        """
        super().reset(seed=seed)
        self._decided = 0
        observation = self.batched.reset(seed)
        return observation[0], {"reference": self._reference()}

    def step(
        self, action: NDArray[np.int64]
    ) -> tuple[NDArray[np.float32], float, bool, bool, dict[str, Any]]:
        """Apply one setting for one window."""
        result = self.batched.step(np.asarray(action, np.int64).reshape(1, 3))
        self._decided += 1
        truncated = self._horizon is not None and self._decided >= self._horizon
        reward = 0.0 if result.scored is None else float(result.scored.reward[0])
        return result.observation[0], reward, result.ended, truncated, flat_info(result)

    def close(self) -> None:
        """Give the board back."""
        self.batched.plant.close()

    def _reference(self) -> dict[str, float]:
        reference = self.batched.episodes.memory.reference
        return {
            "step_time_s": float(reference.step_time_s[0]),
            "step_j": float(reference.step_j[0]),
        }


def flat_info(result: BatchStep) -> dict[str, Any]:
    """A step's figures as flat scalars, for one callback to log; what is missing is left out."""
    info: dict[str, Any] = {f"guard/{k}": bool(v[0]) for k, v in result.acts.items()}
    for name, target in zip(KNOB_NAMES, result.targets_mhz[0], strict=True):
        if np.isfinite(target):
            info[f"setting/{name}_mhz"] = float(target)
    window, scored = result.window, result.scored
    if window is None or scored is None:
        return info
    figures = {
        "window/step_time_s": window.step_time_s[0],
        "window/step_j": window.step_j[0],
        "window/temperature_c": window.temperature_c[0],
        "window/slowdown": scored.time_ratio[0] - 1.0,
        "window/saving": 1.0 - scored.energy_ratio[0],
        **{f"reward/{k}": v[0] for k, v in scored.terms.items()},
    }
    info.update({k: float(v) for k, v in figures.items() if np.isfinite(v)})
    info["window/valid"] = bool(scored.valid[0])
    return info
