"""A world that does not stand still, as an evaluation asks for it (``drift=``)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rlgov.envs.change import Change
from rlgov.errors import ConfigError
from rlgov.policies.trial import Trial


@dataclass(frozen=True)
class Scenario:
    """What changes, and how the oracle and the reference keep up.

    Attributes:
        name: For records.
        change: What changes about jobs and boards.
        budgets: From which decided window (counted from 0) the user wants which other budget.
        segment: Windows of one static setting of the oracle, for what changes bit by bit; 0 for
            none. It may change its setting with every phase, co-runner and budget in any case.
        audit_every: Decided windows between two as-found windows that refresh the reference.
    """

    name: str = "steady"
    change: Change | None = None
    budgets: Sequence[Sequence[float]] = ()
    segment: int = 0
    audit_every: int = 0

    def __post_init__(self) -> None:
        if any(len(pair) != 2 or pair[0] < 0 or pair[1] < 0 for pair in self.budgets):
            raise ConfigError("drift: budgets is a list of [window, budget], such as [[10, 0.2]]")
        if self.segment < 0 or self.audit_every < 0:
            raise ConfigError("drift: segment and audit_every must be 0 or more")

    def applied(self, trial: Trial) -> Trial:
        """``trial`` in this world."""
        changed = replace(
            trial,
            budgets=[(int(window), float(budget)) for window, budget in self.budgets],
            segment=self.segment,
            audit_every=self.audit_every,
        )
        return replace(changed, cuts=self._cuts(changed))

    def describe(self) -> dict[str, Any] | None:
        """For JSON; ``None`` where nothing changes."""
        return None if self == Scenario() else asdict(self)

    def _cuts(self, trial: Trial) -> list[int]:
        """Decided windows at which a phase or a stretch of co-runners begins or ends."""
        if self.change is None:
            return []
        window = np.array([trial.taken(w) for w in range(trial.windows)], np.int64)
        state = np.stack([self.change.evaluating(window), self._stretch(window)])
        changed = np.any(state[:, 1:] != state[:, :-1], axis=0)
        return [int(w) + 1 for w in np.flatnonzero(changed)]

    def _stretch(self, window: NDArray[np.int64]) -> NDArray[np.int64]:
        if self.change is None or not self.change.drift.corunner_chance:
            return np.zeros_like(window)
        return window // self.change.drift.corunner_windows
