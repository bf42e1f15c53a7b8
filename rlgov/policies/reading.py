"""What an observation says, in the units that a baseline reasons in.

Baselines get the same observation as a learned policy and nothing else; this undoes its scaling
(see `rlgov.envs.observation`). Missing is NaN here again.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rlgov.boards.base import KNOB_NAMES
from rlgov.envs.observation import observation_names
from rlgov.policies.base import Observation, offered_knobs
from rlgov.work import FloatArray

LOG_SCALE = 4.0
"""Logs of ratios are multiplied by it in the observation."""
UNBOUNDED = 0.999
"""The observation's budget ends at 1; from here on a budget is none."""

_AT = {name: i for i, name in enumerate(observation_names())}


@dataclass(frozen=True)
class Wishes:
    """What each user wants, ``[n]`` each.

    Attributes:
        log_budget: Log of the largest time ratio; infinite for a budget of 1 and more.
        energy_weight: Weight of log energy.
        time_weight: Weight of log time.
        log_cap: Log of the cap on the power ratio; infinite for none.
        offered: Knobs that may be turned, ``[n, 3]``.
    """

    log_budget: FloatArray
    energy_weight: FloatArray
    time_weight: FloatArray
    log_cap: FloatArray
    offered: NDArray[np.bool_]

    @staticmethod
    def read(observation: Observation) -> Wishes:
        """From an observation ``[n, d]``."""
        budget = _column(observation, "budget")
        capped = _column(observation, "has_power_cap") > 0.5
        return Wishes(
            log_budget=np.where(budget > UNBOUNDED, np.inf, np.log1p(budget)),
            energy_weight=_column(observation, "energy_weight"),
            time_weight=2.0 * _column(observation, "time_weight"),
            log_cap=np.where(capped, _column(observation, "power_cap"), np.inf),
            offered=offered_knobs(observation),
        )

    def cost(self, log_time: FloatArray, log_energy: FloatArray) -> FloatArray:
        """What is to be made small; the arguments are ``[n]`` or ``[n, s]``."""
        wide = (slice(None),) + (None,) * (log_time.ndim - 1)
        cost: FloatArray = self.energy_weight[wide] * log_energy + self.time_weight[wide] * log_time
        return cost


@dataclass(frozen=True)
class LastWindow:
    """The last decided window against the reference.

    Attributes:
        valid: It exists and its energy was metered, ``[n]``.
        log_time: Log of seconds a step over the reference's, ``[n]``; 0 where only energy was
            metered, as on a replayed profile without times.
        log_energy: Log of joules a step over the reference's, ``[n]``.
        clocks: Clock that each knob ran at, over its ceiling, ``[n, 3]``.
        auto: Knobs that were left as found, by the policy or by the guard, ``[n, 3]``.
    """

    valid: NDArray[np.bool_]
    log_time: FloatArray
    log_energy: FloatArray
    clocks: FloatArray
    auto: NDArray[np.bool_]

    @staticmethod
    def read(observation: Observation) -> LastWindow:
        """From an observation ``[n, d]``."""
        log_energy = _column(observation, "recent0_log_energy") / LOG_SCALE
        return LastWindow(
            valid=(_column(observation, "recent0_valid") > 0.5) | (log_energy != 0.0),
            log_time=_column(observation, "recent0_log_time") / LOG_SCALE,
            log_energy=log_energy,
            clocks=_knobs(observation, "recent0", "clock"),
            auto=_knobs(observation, "recent0", "auto") > 0.5,
        )


def reference_clocks(observation: Observation) -> FloatArray:
    """Clocks as found, over their ceilings, ``[n, 3]``."""
    return _knobs(observation, "reference", "clock")


def reference_utilisation(observation: Observation) -> FloatArray:
    """Busy shares as found, ``[n, 3]``; 0 where not measured."""
    return _knobs(observation, "reference", "utilisation")


def _column(observation: Observation, name: str) -> FloatArray:
    return observation[:, _AT[name]].astype(float)


def _knobs(observation: Observation, window: str, what: str) -> FloatArray:
    return np.stack([_column(observation, f"{window}_{k}_{what}") for k in KNOB_NAMES], axis=1)
