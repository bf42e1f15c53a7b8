"""The story of a window, told once for the single and the batched environment.

propose -> guard -> apply and run (the plant) -> remember -> reward.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rlgov.boards.base import KNOB_NAMES, Knob
from rlgov.envs.guard import Guard, GuardSpec, Ruling
from rlgov.envs.memory import Memory
from rlgov.envs.observation import observe
from rlgov.envs.plant import WindowData
from rlgov.envs.spaces import ActionGrid, IntArray
from rlgov.reward import Preference, RewardSpec, reward_terms, total_reward
from rlgov.work import FloatArray


@dataclass(frozen=True)
class Scored:
    """A remembered window's reward.

    Attributes:
        reward: ``[n]``; 0 where the window was not metered (and ``valid`` says so).
        terms: Named terms, ``[n]`` each.
        time_ratio: Seconds a step over the reference's, ``[n]``.
        energy_ratio: Joules a step over the reference's, ``[n]``.
        valid: Whether time and energy were metered, ``[n]``.
    """

    reward: FloatArray
    terms: dict[str, FloatArray]
    time_ratio: FloatArray
    energy_ratio: FloatArray
    valid: NDArray[np.bool_]


class Episodes:
    """``n`` episodes side by side.

    Args:
        n: How many.
        knobs: The boards' knobs.
        grid: Levels that the policy may choose.
        guard: Which rules stand.
        reward: How hard the limits bite.
    """

    def __init__(
        self,
        n: int,
        knobs: Sequence[Knob],
        grid: ActionGrid,
        guard: GuardSpec,
        reward: RewardSpec,
    ) -> None:
        self.knobs = list(knobs)
        self.grid = grid
        self.guard = Guard(guard.rules(n, knobs))
        self._reward = reward
        by_name = {k.name: k.allowed_mhz[-1] for k in knobs}
        self.memory = Memory(n, np.array([by_name.get(name, np.nan) for name in KNOB_NAMES]))
        self._has = np.array([name in by_name for name in KNOB_NAMES])
        self.offered = np.broadcast_to(self._has, (n, 3)).copy()

    def begin(self, reference: WindowData, rows: NDArray[np.bool_] | None = None) -> None:
        """Start new episodes at ``rows`` (all by default) from their reference windows."""
        rows = np.ones(self.memory.n, bool) if rows is None else rows
        self.memory.begin(rows, reference)
        self.guard.begin(rows)

    def refresh(self, reference: WindowData) -> None:
        """Replace the reference of running episodes by a newer one."""
        self.memory.reference = reference

    def observe(self, preference: Preference) -> NDArray[np.float32]:
        """See `rlgov.envs.observation.observe`."""
        return observe(self.memory, preference, self.offered)

    def restrict(self, offered: NDArray[np.bool_]) -> None:
        """Take away knobs that a user does not offer, ``[n, 3]``."""
        self.offered = offered & self._has

    def targets(self, actions: IntArray) -> FloatArray:
        """Targets in MHz of ``actions``, ``[n, 3]`` each (NaN: auto, or not offered)."""
        return np.where(self.offered, self.grid.targets(actions, self.knobs), np.nan)

    def rule(self, targets_mhz: FloatArray, preference: Preference) -> Ruling:
        """The setting to apply in place of ``targets_mhz``."""
        return self.guard.rule(targets_mhz, self.memory, preference)

    def remember(
        self, window: WindowData, targets_mhz: FloatArray, preference: Preference
    ) -> Scored:
        """Add a decided window to the memory and score it."""
        seen = self.memory.relative(window, np.isnan(targets_mhz))
        valid = window.metered & self.memory.reference.metered
        time_ratio = np.where(valid, seen.time_ratio, 1.0)
        energy_ratio = np.where(valid, seen.energy_ratio, 1.0)
        terms = reward_terms(time_ratio, energy_ratio, preference, self._reward)
        reward = total_reward(terms)
        cost = np.where(valid, -reward, np.inf)
        self.memory.remember(seen, cost, preference.budget)
        self.guard.learn(seen, preference)
        return Scored(reward, terms, seen.time_ratio, seen.energy_ratio, valid)
