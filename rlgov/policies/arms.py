"""Settings to choose among and what each has been seen to cost, for baselines that measure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from rlgov.boards.base import KNOB_NAMES, Knob
from rlgov.policies.base import Observation
from rlgov.policies.reading import LastWindow, Wishes
from rlgov.work import FloatArray

AS_FOUND = 0
"""The first arm: every knob left alone. Its cost is the reference's, so it is known at once."""


def gpu_settings(knobs: Sequence[Knob], at_most: int | None = None) -> FloatArray:
    """As found, then the GPU's table from the top down, others as found, ``[a, 3]``."""
    return joint_settings(
        knobs, {"cpu": 0, "emc": 0} | ({} if at_most is None else {"gpu": at_most})
    )


def joint_settings(knobs: Sequence[Knob], at_most: Mapping[str, int]) -> FloatArray:
    """As found, then every combination of thinned tables and auto, ``[a, 3]``, highest first.

    Args:
        knobs: The board's.
        at_most: Levels kept by knob; a knob without an entry keeps its whole table.
    """
    by_name = {knob.name: knob.allowed_mhz for knob in knobs}
    columns = []
    for name in KNOB_NAMES:
        table = np.asarray(by_name.get(name, ()), float)[::-1]
        columns.append([np.nan, *_thinned(table, at_most.get(name, len(table)))])
    mesh = np.meshgrid(*columns, indexing="ij")
    return np.stack([m.ravel() for m in mesh], axis=-1)


def _thinned(table: FloatArray, count: int) -> FloatArray:
    if count < 1 or not len(table):
        return table[:0]
    kept = np.unique(np.linspace(0, len(table) - 1, min(count, len(table))).round().astype(int))
    thinned: FloatArray = table[kept]
    return thinned


class Arms:
    """Means of what was measured at each setting, for ``n`` jobs.

    A window is credited to the setting that it really ran at, which the guard or the board may
    have changed; that a setting was asked for is counted apart, so that one which cannot be had is
    not asked for endlessly.

    Args:
        knobs: The board's.
        targets_mhz: The settings, ``[a, 3]`` with NaN for auto; the first is as found.

    Attributes:
        targets_mhz: As given.
        shares: The same over the knobs' ceilings.
        count: Windows credited, ``[n, a]``.
        asked: Windows for which it was asked, ``[n, a]``.
    """

    def __init__(self, knobs: Sequence[Knob], targets_mhz: FloatArray) -> None:
        tops = {knob.name: knob.allowed_mhz[-1] for knob in knobs}
        self.targets_mhz = targets_mhz
        self.shares = targets_mhz / np.array([tops.get(name, np.nan) for name in KNOB_NAMES])
        self._auto = np.isnan(targets_mhz)
        self.begin(0)

    def __len__(self) -> int:
        return len(self.targets_mhz)

    def begin(self, n: int) -> None:
        """Forget everything; as found counts as seen once, since all is relative to it."""
        self.count = np.zeros((n, len(self)))
        self.asked = np.zeros((n, len(self)))
        self._log_time = np.zeros((n, len(self)))
        self._log_energy = np.zeros((n, len(self)))
        self.count[:, AS_FOUND] = 1.0

    def learn(self, observation: Observation) -> None:
        """Credit the last window."""
        last = LastWindow.read(observation)
        arm, known = self._ran(last)
        jobs = np.flatnonzero(known & last.valid)
        self.count[jobs, arm[jobs]] += 1.0
        self._log_time[jobs, arm[jobs]] += last.log_time[jobs]
        self._log_energy[jobs, arm[jobs]] += last.log_energy[jobs]

    def choose(self, arm: NDArray[np.intp]) -> FloatArray:
        """Targets of the arms ``[n]``, ``[n, 3]``, counted as asked for."""
        self.asked[np.arange(len(arm)), arm] += 1.0
        return self.targets_mhz[arm]

    @property
    def log_time(self) -> FloatArray:
        """Mean log of the time ratio, ``[n, a]``; NaN where never seen."""
        return self._mean(self._log_time)

    @property
    def log_energy(self) -> FloatArray:
        """Mean log of the energy ratio, ``[n, a]``; NaN where never seen."""
        return self._mean(self._log_energy)

    def reachable(self, wishes: Wishes) -> NDArray[np.bool_]:
        """Arms that leave alone what is not offered, ``[n, a]``."""
        reachable: NDArray[np.bool_] = ~np.any(~self._auto & ~wishes.offered[:, None], axis=-1)
        return reachable

    def best(self, wishes: Wishes) -> NDArray[np.intp]:
        """The cheapest arm that was seen to keep to the budget and the cap, ``[n]``."""
        log_time, log_energy = self.log_time, self.log_energy
        with np.errstate(invalid="ignore"):
            kept = log_time <= wishes.log_budget[:, None]
            kept &= log_energy - log_time <= wishes.log_cap[:, None]
        cost = wishes.cost(log_time, log_energy)
        kept &= self.reachable(wishes) & (self.count > 0)
        best: NDArray[np.intp] = np.where(kept, cost, np.inf).argmin(1)
        return best

    def _mean(self, sums: FloatArray) -> FloatArray:
        seen = self.count > 0
        return np.where(seen, sums / np.where(seen, self.count, 1.0), np.nan)

    def _ran(self, last: LastWindow) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
        """The arm whose clocks are nearest to those of the window, and whether there is one."""
        same = (last.auto[:, None] == self._auto).all(-1)
        off = np.where(self._auto, 0.0, np.abs(last.clocks[:, None] - self.shares)).sum(-1)
        distance = np.where(same, off, np.inf)
        return distance.argmin(1), np.asarray(np.isfinite(distance).any(1))
