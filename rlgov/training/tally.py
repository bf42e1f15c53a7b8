"""Means over a rollout, for one line a rollout in TensorBoard."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from rlgov.envs.batched import BatchStep
from rlgov.policies.evaluate import VIOLATION_SLACK
from rlgov.reward import Preference


@dataclass
class Tally:
    """Sums of what decisions led to, as measured."""

    _sums: dict[str, float] = field(default_factory=dict)
    _decisions: int = 0

    def add(self, result: BatchStep, preference: Preference) -> None:
        """Count one decision of every job."""
        scored = result.scored
        if scored is None:
            return
        self._decisions += len(scored.reward)
        self._add("window/saving", 1.0 - scored.energy_ratio)
        self._add("window/slowdown", scored.time_ratio - 1.0)
        over = scored.time_ratio > 1.0 + preference.budget + VIOLATION_SLACK
        self._add("window/violations", over)
        self._add("reward/total", scored.reward)
        for name, term in scored.terms.items():
            self._add(f"reward/{name}", term)
        for rule, acted in result.acts.items():
            self._add(f"guard/{rule}", acted)

    def take(self) -> dict[str, float]:
        """Means since the last call."""
        count = max(self._decisions, 1)
        means = {name: total / count for name, total in self._sums.items()}
        self._sums, self._decisions = {}, 0
        return means

    def _add(self, name: str, values: np.ndarray[tuple[int, ...], np.dtype[np.generic]]) -> None:
        self._sums[name] = self._sums.get(name, 0.0) + float(np.nansum(values))
