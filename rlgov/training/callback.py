"""What happens between rollouts: scalars, schedules, a look for NaN, the best policy kept."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import torch
from stable_baselines3.common.callbacks import BaseCallback

from rlgov.errors import RlgovError
from rlgov.training.vec_env import GovernorVecEnv

OnRollout = Callable[[int, dict[str, float]], None]


class RolloutCallback(BaseCallback):
    """Writes means over a rollout, and hands over to the run after every update.

    Args:
        vec: The environment that is learnt on.
        entropy: Weight of the entropy bonus at the start and at the end.
        total_steps: Decisions of the whole run.
        on_rollout: Called with the number of the rollout and its means.
    """

    def __init__(
        self,
        vec: GovernorVecEnv,
        entropy: tuple[float, float],
        total_steps: int,
        on_rollout: OnRollout,
    ) -> None:
        super().__init__()
        self._vec = vec
        self._entropy = entropy
        self._total = total_steps
        self._hand_over = on_rollout
        self._rollout = 0
        self._began_s = 0.0

    def _on_rollout_start(self) -> None:
        """The update of the rollout before is done: its result is handed over."""
        check_weights(self.model.policy.state_dict())
        if self._rollout:
            self._hand_over(self._rollout, {})
        done = min(self.num_timesteps / self._total, 1.0)
        first, last = self._entropy
        self.model.ent_coef = first + (last - first) * done  # type: ignore[attr-defined]
        self._began_s = time.monotonic()

    def _on_step(self) -> bool:
        return True

    def _on_rollout_end(self) -> None:
        self._rollout += 1
        buffer = self.model.rollout_buffer  # type: ignore[attr-defined]
        for name in ("observations", "rewards", "values", "log_probs", "advantages"):
            check_finite(name, getattr(buffer, name))
        for name, value in self._vec.tally.take().items():
            self.logger.record(name, value)
        seconds = max(time.monotonic() - self._began_s, 1e-9)
        self.logger.record("time/env_steps_per_s", buffer.buffer_size * buffer.n_envs / seconds)


def check_finite(name: str, values: np.ndarray[tuple[int, ...], np.dtype[np.float32]]) -> None:
    """Stop where a rollout holds a number that is none.

    Raises:
        RlgovError: Naming the array.
    """
    if not np.isfinite(values).all():
        bad = int((~np.isfinite(values)).sum())
        raise RlgovError(f"training stopped: {bad} of the rollout's {name} are not finite")


def check_weights(weights: dict[str, torch.Tensor]) -> None:
    """Stop where the network holds a number that is none.

    Raises:
        RlgovError: Naming the layer.
    """
    for name, tensor in weights.items():
        if not bool(torch.isfinite(tensor).all()):
            raise RlgovError(f"training stopped: weights {name} are not finite")
