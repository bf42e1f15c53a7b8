"""Draws of what a user wants and offers, so that one policy serves all."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rlgov.reward import OBJECTIVES, Preference
from rlgov.training.config import Mixture


class PreferenceDraws:
    """Draws by a mixture.

    Args:
        mixture: See `Mixture`.
    """

    def __init__(self, mixture: Mixture) -> None:
        self._mixture = mixture
        self._names = list(mixture.objectives)
        weights = np.array([mixture.objectives[name] for name in self._names], float)
        self._share = weights / weights.sum()
        self._weights = np.array([OBJECTIVES[name] for name in self._names])

    def preference(self, n: int, rng: np.random.Generator) -> Preference:
        """``n`` users."""
        index = rng.choice(len(self._names), n, p=self._share)
        low, high = self._mixture.power_cap
        caps = rng.uniform(low, high, n)
        capped = np.array([name == "power_cap" for name in self._names])[index]
        return Preference(
            budget=self._budgets(n, rng),
            energy_weight=self._weights[index, 0],
            time_weight=self._weights[index, 1],
            power_cap=np.where(capped, caps, np.nan),
        )

    def offered(self, n: int, rng: np.random.Generator) -> NDArray[np.bool_]:
        """Which knobs each offers, ``[n, 3]``; never none at all."""
        kept = rng.random((n, 3)) >= self._mixture.drop_knob
        spared = rng.integers(3, size=n)
        none = ~kept.any(axis=1)
        kept[none, spared[none]] = True
        return kept

    def _budgets(self, n: int, rng: np.random.Generator) -> NDArray[np.float64]:
        exact = rng.choice(np.asarray(self._mixture.budgets, float), n)
        any_budget = self._mixture.max_budget * rng.random(n) ** 2
        return np.where(rng.random(n) < 0.5, exact, any_budget)
