"""The guard: rules that may overrule a policy, in training and live alike.

A rule looks at what has been seen and at a proposed setting, and either lets it pass or replaces
it. Each is small, named, and counted. Rules act on ``[n]`` jobs at once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from rlgov.boards.base import KNOB_NAMES, Knob
from rlgov.envs.memory import SLIDING, Memory, Seen
from rlgov.errors import ConfigError
from rlgov.reward import Preference
from rlgov.work import FloatArray

BoolArray = NDArray[np.bool_]

UNKNOWN = -1.0
"""Clock of a knob that is not offered, or was not read: below every real one, so that a window
whose clocks are unknown condemns no setting."""


@dataclass(frozen=True)
class Ruling:
    """What the guard made of a proposal.

    Attributes:
        targets_mhz: The setting to apply, ``[n, 3]``, NaN for auto.
        acts: Rule name -> jobs on which it acted, ``[n]``.
    """

    targets_mhz: FloatArray
    acts: dict[str, BoolArray]


class Rule(ABC):
    """One reason to overrule."""

    name: str

    def begin(self, rows: BoolArray) -> None:
        """Forget the episodes at ``rows``. Rules without memory of their own inherit this."""
        return

    def learn(self, seen: Seen, preference: Preference) -> None:
        """Look at a decided window. Rules without memory of their own inherit this."""
        return

    @abstractmethod
    def rule(
        self, targets_mhz: FloatArray, memory: Memory, preference: Preference
    ) -> tuple[FloatArray, BoolArray]:
        """The setting to apply instead, and the jobs on which the rule acted."""


class SensorRule(Rule):
    """As found while the last window was not metered: nothing may be learnt from silence."""

    name = "sensor"

    def rule(
        self, targets_mhz: FloatArray, memory: Memory, preference: Preference
    ) -> tuple[FloatArray, BoolArray]:
        """As found for jobs whose last window, or reference, was not metered."""
        last = memory.recent[0]
        silent = ~(np.isfinite(last.time_ratio) & np.isfinite(last.energy_ratio))
        acts = silent & (memory.decided > 0) | ~memory.reference.metered
        return np.where(acts[:, None], np.nan, targets_mhz), acts


class BudgetRule(Rule):
    """No setting that can only be too slow, and no run that falls behind.

    A setting whose every clock is at or below those of one that broke the budget is at least as
    slow as that one (step time never falls when a clock does); it is replaced by as found. A
    setting counts as having broken the budget when the mean of its windows exceeds it by
    ``window_margin`` plus one standard error, so that one unlucky window does not ban it for good.
    Every setting is replaced while the mean excess over the last `SLIDING` windows is above
    ``sliding_margin``.

    Args:
        n: Jobs side by side.
        window_margin: Excess of a setting's mean time ratio that is borne.
        sliding_margin: Mean excess over the sliding windows that is borne.
        noise: Standard error of one window's time ratio.
        kept: Settings remembered for each job.
    """

    name = "budget"

    def __init__(
        self,
        n: int,
        window_margin: float = 0.004,
        sliding_margin: float = 0.004,
        noise: float = 0.005,
        kept: int = 12,
    ) -> None:
        self._window_margin = window_margin
        self._sliding_margin = sliding_margin
        self._noise = noise
        self._clocks = np.full((n, kept, 3), -np.inf)
        self._sum = np.zeros((n, kept))
        self._count = np.zeros((n, kept))
        self._next = np.zeros(n, np.int64)

    def begin(self, rows: BoolArray) -> None:
        """Forget the episodes at ``rows``."""
        self._clocks[rows] = -np.inf
        self._sum[rows] = 0.0
        self._count[rows] = 0.0
        self._next[rows] = 0

    def learn(self, seen: Seen, preference: Preference) -> None:
        """Add a window to its setting's mean; the oldest setting gives way to a new one."""
        jobs = np.arange(len(self._next))
        clocks = np.nan_to_num(seen.clocks, nan=UNKNOWN)
        known = (np.abs(self._clocks - clocks[:, None, :]) < 1e-4).all(-1)
        found = known.any(-1)
        slot = np.where(found, known.argmax(-1), self._next % self._clocks.shape[1])
        fresh = ~found
        self._clocks[jobs[fresh], slot[fresh]] = clocks[fresh]
        self._sum[jobs[fresh], slot[fresh]] = 0.0
        self._count[jobs[fresh], slot[fresh]] = 0.0
        self._next += fresh
        timed = np.isfinite(seen.time_ratio)
        self._sum[jobs, slot] += np.where(timed, seen.time_ratio, 0.0)
        self._count[jobs, slot] += timed

    def rule(
        self, targets_mhz: FloatArray, memory: Memory, preference: Preference
    ) -> tuple[FloatArray, BoolArray]:
        """As found for settings that can only be too slow, and for runs that are behind."""
        share = targets_mhz / memory.ceiling_mhz
        reference = memory.reference.clocks_mhz / memory.ceiling_mhz
        clocks = np.where(np.isnan(share), reference, share)
        clocks = np.nan_to_num(clocks, nan=UNKNOWN)
        below = (clocks[:, None, :] <= self._clocks + 1e-6).all(-1)
        dominated = (below & self._too_slow(preference)).any(-1)
        behind = memory.excess.sum(1) / SLIDING > self._sliding_margin
        acts = (dominated | behind) & ~np.isnan(targets_mhz).all(1)
        return np.where(acts[:, None], np.nan, targets_mhz), acts

    def _too_slow(self, preference: Preference) -> BoolArray:
        """Which remembered settings broke the budget, ``[n, kept]``."""
        count = np.maximum(self._count, 1.0)
        limit = 1.0 + preference.budget[:, None] + self._window_margin
        slow: BoolArray = self._sum / count > limit + self._noise / np.sqrt(count)
        return slow & (self._count > 0)


class RateRule(Rule):
    """No clock falls by more than ``max_drop`` of its ceiling between two windows.

    A target below that is raised to the lowest level above it, so that a large fall takes two
    windows. Rising is never bounded: it is the way to safety.

    Args:
        knobs: The board's knobs.
        max_drop: Largest fall, as a share of the knob's ceiling.
    """

    name = "rate"

    def __init__(self, knobs: Sequence[Knob], max_drop: float = 0.8) -> None:
        if not 0 < max_drop <= 1:
            raise ConfigError(f"guard.max_drop={max_drop} must be above 0 and at most 1")
        self._max_drop = max_drop
        self._levels = {KNOB_NAMES.index(knob.name): np.asarray(knob.allowed_mhz) for knob in knobs}

    def rule(
        self, targets_mhz: FloatArray, memory: Memory, preference: Preference
    ) -> tuple[FloatArray, BoolArray]:
        """Raise targets that lie too far below the clock of the last window."""
        first = (memory.decided == 0)[:, None]
        reference = memory.reference.clocks_mhz / memory.ceiling_mhz
        before = np.where(first, reference, memory.recent[0].clocks)
        floor = (np.nan_to_num(before, nan=1.0) - self._max_drop) * memory.ceiling_mhz
        low = targets_mhz < floor - 1e-6
        if not low.any():
            return targets_mhz, np.zeros(len(targets_mhz), bool)
        raised = targets_mhz.copy()
        for k, levels in self._levels.items():
            nearest = np.searchsorted(levels, np.nan_to_num(floor[:, k]) - 1e-6)
            lowest = levels[np.minimum(nearest, len(levels) - 1)]
            raised[:, k] = np.where(low[:, k], lowest, targets_mhz[:, k])
        return raised, np.asarray(low.any(axis=1), bool)


@dataclass(frozen=True)
class GuardSpec:
    """Which rules stand, and how strict they are.

    Attributes:
        enabled: False takes every rule away (evaluation only).
        window_margin: See `BudgetRule`.
        sliding_margin: See `BudgetRule`.
        noise: See `BudgetRule`.
        max_drop: See `RateRule`.
    """

    enabled: bool = True
    window_margin: float = 0.004
    sliding_margin: float = 0.004
    noise: float = 0.005
    max_drop: float = 0.8

    def rules(self, n: int, knobs: Sequence[Knob]) -> list[Rule]:
        """Fresh rules for ``n`` jobs on boards with ``knobs``, in the order of asking."""
        if not self.enabled:
            return []
        budget = BudgetRule(n, self.window_margin, self.sliding_margin, self.noise)
        return [RateRule(knobs, self.max_drop), budget, SensorRule()]


@dataclass
class Guard:
    """The rules in order; the last word on every setting."""

    rules: Sequence[Rule]
    counts: dict[str, int] = field(default_factory=dict)

    def begin(self, rows: BoolArray) -> None:
        """Forget the episodes at ``rows``."""
        for rule in self.rules:
            rule.begin(rows)

    def learn(self, seen: Seen, preference: Preference) -> None:
        """Let every rule look at a decided window."""
        for rule in self.rules:
            rule.learn(seen, preference)

    def rule(self, targets_mhz: FloatArray, memory: Memory, preference: Preference) -> Ruling:
        """Ask every rule in turn."""
        acts: dict[str, BoolArray] = {}
        for rule in self.rules:
            targets_mhz, acted = rule.rule(targets_mhz, memory, preference)
            acts[rule.name] = acted
            self.counts[rule.name] = self.counts.get(rule.name, 0) + int(acted.sum())
        return Ruling(targets_mhz, acts)
