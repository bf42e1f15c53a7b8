"""``ucb``: a switching-aware, slowdown-constrained bandit over the settings.

After EnergyUCB's idea (an optimistic index, a price for switching, a budget on slowdown); written
anew for costs in logs relative to the board as found. No table is swept first: a setting that was
never seen has the reference's cost less a large bonus.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rlgov.errors import ConfigError
from rlgov.policies.arguments import at_least, typed_arguments
from rlgov.policies.arms import AS_FOUND, Arms, gpu_settings, joint_settings
from rlgov.policies.base import Observation, Policy, PolicyContext
from rlgov.policies.reading import Wishes, reference_clocks
from rlgov.work import FloatArray


@dataclass(frozen=True)
class BanditSpec:
    """Parameters of ``ucb``.

    Attributes:
        arms: ``gpu`` (its table, others as found) or ``joint`` (thinned tables of all knobs).
        levels: Levels kept of each knob's table with ``joint``.
        exploration: Bonus of a setting seen once, in units of log cost.
        unseen: Windows that a setting never seen counts as seen for.
        switching: Price of any change of setting, in units of log cost.
        distance: Price of moving all clocks over their whole range.
        noise: Standard error of a window's log time, for the budget.
    """

    arms: str = "gpu"
    levels: int = 4
    exploration: float = 0.02
    unseen: float = 0.2
    switching: float = 0.002
    distance: float = 0.05
    noise: float = 0.006

    def __post_init__(self) -> None:
        if self.arms not in ("gpu", "joint"):
            raise ConfigError(f"policy_args.ucb.arms is one of gpu, joint; not {self.arms!r}")
        at_least("ucb", "levels", self.levels, 1)
        for key in ("exploration", "switching", "distance", "noise"):
            at_least("ucb", key, getattr(self, key), 0.0)
        at_least("ucb", "unseen", self.unseen, 1e-3)


class Bandit(Policy):
    """See `BanditSpec`."""

    name = "ucb"

    def __init__(self, context: PolicyContext, spec: BanditSpec) -> None:
        self._spec = spec
        knobs = context.knobs
        levels = {knob.name: spec.levels for knob in knobs}
        settings = gpu_settings(knobs) if spec.arms == "gpu" else joint_settings(knobs, levels)
        self._arms = Arms(knobs, settings)
        self._last = np.zeros(0, np.intp)
        self._decided = 0

    def begin(self, n: int) -> None:
        """Forget what was measured."""
        self._arms.begin(n)
        self._last = np.full(n, AS_FOUND)
        self._decided = 0

    def act(self, observation: Observation) -> FloatArray:
        """The setting with the lowest optimistic cost, switching included."""
        self._arms.learn(observation)
        self._decided += 1
        wishes = Wishes.read(observation)
        clocks = self._clocks(observation)
        index = self._optimistic(wishes) + self._switching(clocks)
        banned = self._too_slow(wishes, clocks) | self._over_cap(wishes)
        banned |= ~self._arms.reachable(wishes)
        banned[:, AS_FOUND] = False
        self._last = np.where(banned, np.inf, index).argmin(1)
        return self._arms.choose(self._last)

    def _clocks(self, observation: Observation) -> FloatArray:
        """Clocks of every arm over their ceilings, ``[n, a, 3]``; as found where auto."""
        reference = reference_clocks(observation)[:, None]
        return np.where(np.isnan(self._arms.shares), reference, self._arms.shares)

    def _optimistic(self, wishes: Wishes) -> FloatArray:
        """Lower confidence bound of the cost, ``[n, a]``."""
        arms = self._arms
        log_time = np.nan_to_num(arms.log_time, nan=0.0)
        cost = wishes.cost(log_time, np.nan_to_num(arms.log_energy, nan=0.0))
        seen = np.maximum(np.maximum(arms.count, arms.asked), self._spec.unseen)
        bonus = self._spec.exploration * np.sqrt(2.0 * np.log1p(self._decided) / seen)
        lower: FloatArray = cost - bonus
        return lower

    def _switching(self, clocks: FloatArray) -> FloatArray:
        n = len(clocks)
        here = clocks[np.arange(n), self._last][:, None]
        moved = np.abs(clocks - here).sum(-1)
        price: FloatArray = self._spec.distance * moved + self._spec.switching
        price[np.arange(n), self._last] = 0.0
        return price

    def _too_slow(self, wishes: Wishes, clocks: FloatArray) -> NDArray[np.bool_]:
        """Arms seen to break the budget, and those whose every clock is at or below theirs."""
        count = np.maximum(self._arms.count, 1.0)
        surely = np.nan_to_num(self._arms.log_time, nan=0.0) - self._spec.noise / np.sqrt(count)
        slow = surely > wishes.log_budget[:, None]
        below = np.zeros_like(slow)
        for arm in np.flatnonzero(slow.any(0)):
            dominated = (clocks <= clocks[:, arm, None] + 1e-6).all(-1)
            below |= dominated & slow[:, arm, None]
        return below

    def _over_cap(self, wishes: Wishes) -> NDArray[np.bool_]:
        power = np.nan_to_num(self._arms.log_energy - self._arms.log_time, nan=-np.inf)
        over: NDArray[np.bool_] = power > wishes.log_cap[:, None]
        return over


def ucb(context: PolicyContext, args: Mapping[str, object]) -> Policy:
    """A bandit over the GPU's table, or over a thinned joint one."""
    return Bandit(context, typed_arguments(BanditSpec, "ucb", args))
