"""``util30``: profile the GPU's table for thirty windows, then stay at the best.

The one-shot selector that this field compares with: it knows the GPU clock only, measures each
level, and lets the GPU's utilisation decide which are worth a second look.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rlgov.policies.arguments import at_least, typed_arguments
from rlgov.policies.arms import AS_FOUND, Arms, gpu_settings
from rlgov.policies.base import Observation, Policy, PolicyContext
from rlgov.policies.reading import Wishes, reference_clocks, reference_utilisation
from rlgov.work import FloatArray


@dataclass(frozen=True)
class SelectorSpec:
    """Parameters of ``util30``.

    Attributes:
        windows: Profiling windows.
        slack: Share of the reference's step time by which utilisation may say that a level breaks
            the budget and the level is measured again all the same.
    """

    windows: int = 30
    slack: float = 0.1

    def __post_init__(self) -> None:
        at_least("util30", "windows", self.windows, 1)
        at_least("util30", "slack", self.slack, 0.0)


class UtilSelector(Policy):
    """See `SelectorSpec`."""

    name = "util30"

    def __init__(self, context: PolicyContext, spec: SelectorSpec) -> None:
        self._spec = spec
        self._arms = Arms(context.knobs, gpu_settings(context.knobs, at_most=spec.windows))
        self._decided = 0

    def begin(self, n: int) -> None:
        """Forget what was measured."""
        self._arms.begin(n)
        self._decided = 0

    def act(self, observation: Observation) -> FloatArray:
        """The next level to profile, or the best of those measured."""
        self._arms.learn(observation)
        wishes = Wishes.read(observation)
        profiling = self._decided < self._spec.windows
        arm = self._next(observation, wishes) if profiling else self._arms.best(wishes)
        self._decided += 1
        reachable = self._arms.reachable(wishes)[np.arange(len(arm)), arm]
        return self._arms.choose(np.where(reachable, arm, AS_FOUND))

    def _next(self, observation: Observation, wishes: Wishes) -> NDArray[np.intp]:
        """The level asked for least often; from the top of the table down."""
        asked = self._arms.asked.copy()
        asked[:, AS_FOUND] = np.inf
        again = (asked < 1) | self._promising(observation, wishes)
        next_arm: NDArray[np.intp] = np.where(again, asked, np.inf).argmin(1)
        return next_arm

    def _promising(self, observation: Observation, wishes: Wishes) -> NDArray[np.bool_]:
        """Levels that may keep to the budget, ``[n, a]``, as the busy share of the GPU says."""
        busy = reference_utilisation(observation)[:, :1]
        slower = reference_clocks(observation)[:, :1] / self._arms.shares[:, 0]
        predicted = np.log(np.maximum(busy * slower + 1.0 - busy, 1e-3))
        limit = wishes.log_budget[:, None] + np.log1p(self._spec.slack)
        promising: NDArray[np.bool_] = predicted <= limit
        return promising


def util30(context: PolicyContext, args: Mapping[str, object]) -> Policy:
    """A GPU selector that profiles first."""
    return UtilSelector(context, typed_arguments(SelectorSpec, "util30", args))
