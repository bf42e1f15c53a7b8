"""What a governor remembers of an episode: reference, recent windows, the best so far.

All arrays are ``[n, …]``; the single environment is the case n = 1, so that it and the batched one
agree by construction.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rlgov.envs.plant import ROLES, WindowData
from rlgov.work import FloatArray

RECENT = 4
"""Windows kept in the observation."""
SLIDING = 50
"""Windows over which the guard holds the mean slowdown."""


@dataclass
class Seen:
    """One remembered window, relative to the reference; NaN where not measured.

    Attributes:
        time_ratio: Seconds a step over the reference's, ``[n]``.
        energy_ratio: Joules a step over the reference's, ``[n]``.
        role_share: Watts by role over the reference's total, ``[n, 4]``.
        utilisation: ``[n, 3]``.
        clocks: Clock over the knob's ceiling, ``[n, 3]``.
        auto: Which knobs were left as found, ``[n, 3]``.
        temperature_c: ``[n]``.
    """

    time_ratio: FloatArray
    energy_ratio: FloatArray
    role_share: FloatArray
    utilisation: FloatArray
    clocks: FloatArray
    auto: NDArray[np.bool_]
    temperature_c: FloatArray

    @staticmethod
    def nothing(n: int) -> Seen:
        """A window that was not measured."""

        def unknown(*shape: int) -> FloatArray:
            return np.full((n, *shape), np.nan)

        return Seen(
            unknown(),
            unknown(),
            unknown(len(ROLES)),
            unknown(3),
            unknown(3),
            np.ones((n, 3), bool),
            unknown(),
        )

    def put(self, rows: NDArray[np.bool_] | NDArray[np.intp], other: Seen) -> None:
        """Overwrite the jobs at ``rows`` with those of ``other``."""
        for name, mine in vars(self).items():
            mine[rows] = getattr(other, name)[rows]


class Memory:
    """Reference, recent windows and best so far of ``n`` episodes.

    Args:
        n: Episodes side by side.
        ceiling_mhz: As-found maximum of each knob, ``[3]``; NaN for a knob that is not offered.
    """

    def __init__(self, n: int, ceiling_mhz: FloatArray) -> None:
        self.n = n
        self.ceiling_mhz = ceiling_mhz
        self.reference = WindowData(
            step_time_s=np.full(n, np.nan),
            step_j=np.full(n, np.nan),
            role_w=np.full((n, len(ROLES)), np.nan),
            utilisation=np.full((n, 3), np.nan),
            clocks_mhz=np.full((n, 3), np.nan),
            temperature_c=np.full(n, np.nan),
            steps=np.zeros(n),
        )
        self.recent = [Seen.nothing(n) for _ in range(RECENT)]
        self.best = Seen.nothing(n)
        self.best_cost = np.zeros(n)
        self.decided = np.zeros(n, np.int64)
        self.excess = np.zeros((n, SLIDING))

    def begin(self, rows: NDArray[np.bool_], reference: WindowData) -> None:
        """Start new episodes at ``rows`` from their reference windows."""
        for name, mine in vars(self.reference).items():
            mine[rows] = getattr(reference, name)[rows]
        auto = np.ones((self.n, 3), bool)
        as_found = self.relative(reference, auto)
        empty = Seen.nothing(self.n)
        for seen in self.recent:
            seen.put(rows, empty)
        self.best.put(rows, as_found)
        self.best_cost[rows] = 0.0
        self.decided[rows] = 0
        self.excess[rows] = 0.0

    def relative(self, window: WindowData, auto: NDArray[np.bool_]) -> Seen:
        """A window against the reference."""
        reference = self.reference
        return Seen(
            time_ratio=window.step_time_s / reference.step_time_s,
            energy_ratio=window.step_j / reference.step_j,
            role_share=window.role_w / reference.total_w[:, None],
            utilisation=window.utilisation.copy(),
            clocks=window.clocks_mhz / self.ceiling_mhz,
            auto=auto.copy(),
            temperature_c=window.temperature_c.copy(),
        )

    def remember(self, seen: Seen, cost: FloatArray, budget: FloatArray) -> None:
        """Add a decided window; ``cost`` (minus the reward) picks the best so far."""
        oldest = self.recent.pop()
        oldest.put(np.ones(self.n, bool), seen)
        self.recent.insert(0, oldest)
        better = (cost < self.best_cost) & (seen.time_ratio <= 1.0 + budget)
        self.best.put(better, seen)
        self.best_cost = np.where(better, cost, self.best_cost)
        slot = self.decided % SLIDING
        over = np.nan_to_num(seen.time_ratio - 1.0 - budget)
        self.excess[np.arange(self.n), slot] = over
        self.decided += 1
