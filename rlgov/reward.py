"""A window to named terms to one number; pure, scale-free, vectorised.

Every objective trades the logarithms of joules and seconds a step against the reference, and every
one is bound by the budget: a steep hinge on time beyond it. A window whose energy was not metered
has no reward (NaN), never a reward of zero.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from rlgov.errors import ConfigError
from rlgov.work import FloatArray

OBJECTIVES: Mapping[str, tuple[float, float]] = {
    "energy": (1.0, 0.0),
    "edp": (1.0, 1.0),
    "ed2p": (1.0, 2.0),
    "power_cap": (0.0, 1.0),
}
"""Objective -> weights of log energy and log time. ``power_cap`` is the fastest under a cap."""


@dataclass(frozen=True)
class RewardSpec:
    """How hard a limit bites.

    Attributes:
        budget_slope: Cost of one unit of log time beyond the budget.
        cap_slope: Cost of one unit of log power beyond the cap.
        margin: Share of the reference's step time by which the hinge starts before the budget;
            negative to start after it.
    """

    budget_slope: float = 10.0
    cap_slope: float = 10.0
    margin: float = 0.0


@dataclass(frozen=True)
class Preference:
    """What the user wants, ``[n]`` each; part of the observation, changeable at any window.

    Attributes:
        budget: Allowed slowdown against the reference, 0.1 for 10 %.
        energy_weight: Weight of log energy.
        time_weight: Weight of log time.
        power_cap: Cap on power as a share of the reference's, NaN for none.
    """

    budget: FloatArray
    energy_weight: FloatArray
    time_weight: FloatArray
    power_cap: FloatArray

    @staticmethod
    def of(objective: str, budget: float, n: int = 1, power_cap: float | None = None) -> Preference:
        """The same preference for ``n`` jobs.

        Raises:
            ConfigError: An unknown objective, a negative budget, or ``power_cap`` without a cap.
        """
        if objective not in OBJECTIVES:
            raise ConfigError(f"objective={objective!r} is none of {', '.join(OBJECTIVES)}")
        if not budget >= 0:
            raise ConfigError(f"budget={budget} must be 0 or more (0.1 allows 10 % slower)")
        if objective == "power_cap" and not (power_cap and power_cap > 0):
            raise ConfigError("objective=power_cap needs a cap, a positive share of the reference")
        energy, time = OBJECTIVES[objective]
        cap = power_cap if objective == "power_cap" and power_cap else np.nan
        return Preference(*(np.full(n, v, float) for v in (budget, energy, time, cap)))


def reward_terms(
    time_ratio: FloatArray, energy_ratio: FloatArray, preference: Preference, spec: RewardSpec
) -> dict[str, FloatArray]:
    """Named terms of the reward, ``[n]`` each; their sum is the reward.

    Args:
        time_ratio: Seconds a step over the reference's.
        energy_ratio: Joules a step over the reference's.
        preference: What the user wants.
        spec: How hard the limits bite.
    """
    log_time = np.log(time_ratio)
    log_power = np.log(energy_ratio) - log_time
    over = np.maximum(log_time - np.log1p(preference.budget) + spec.margin, 0.0)
    above = np.where(
        np.isnan(preference.power_cap),
        0.0,
        np.maximum(log_power - np.log(preference.power_cap), 0.0),
    )
    return {
        "energy": -preference.energy_weight * np.log(energy_ratio),
        "time": -preference.time_weight * log_time,
        "budget": -spec.budget_slope * over,
        "power_cap": -spec.cap_slope * above,
    }


def total_reward(terms: Mapping[str, FloatArray]) -> FloatArray:
    """Sum of the terms, ``[n]``."""
    total: FloatArray = np.sum(list(terms.values()), axis=0)
    return total
