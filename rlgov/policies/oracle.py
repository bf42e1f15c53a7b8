"""The truth about a job on a twin: the cost of every setting, and the best of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rlgov.policies.truth import TruePlant, cost_grid
from rlgov.reward import Preference
from rlgov.work import FloatArray


@dataclass(frozen=True)
class Landscape:
    """Noise-free cost of settings relative to the board as found.

    Attributes:
        targets_mhz: ``[s, 3]``, NaN for auto.
        time_ratio: Seconds a step over as found, ``[n, s]``.
        energy_ratio: Joules a step over as found, ``[n, s]``.
    """

    targets_mhz: FloatArray
    time_ratio: FloatArray
    energy_ratio: FloatArray

    def best(
        self, preference: Preference, offered: NDArray[np.bool_], margin: float = 0.0
    ) -> FloatArray:
        """Targets of the best setting within the budget and the cap, ``[n, 3]``.

        Where nothing but as found keeps to them, that is it.

        Args:
            preference: What each user wants.
            offered: Knobs that may be turned, ``[n, 3]``.
            margin: Relative slack against rounding of equal settings.
        """
        log_time, log_energy = np.log(self.time_ratio), np.log(self.energy_ratio)
        with np.errstate(invalid="ignore"):  # what was never measured is infinite in both
            cost = preference.energy_weight[:, None] * log_energy
            cost += preference.time_weight[:, None] * log_time
            power = np.exp(log_energy - log_time)
        cap = np.where(np.isnan(preference.power_cap), np.inf, preference.power_cap)
        allowed = self.time_ratio <= (1.0 + preference.budget[:, None]) * (1.0 + margin)
        allowed &= power <= cap[:, None] * (1.0 + margin)
        allowed &= self.reachable(offered)
        index = np.where(allowed, cost, np.inf).argmin(1)
        none = np.asarray(~allowed.any(1))
        return np.where(none[:, None], np.nan, self.targets_mhz[index])

    def reachable(self, offered: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Settings that leave alone what is not offered, ``[n, s]``."""
        turns = ~np.isnan(self.targets_mhz)
        reachable: NDArray[np.bool_] = ~np.any(turns[None] & ~offered[:, None], axis=-1)
        return reachable


def landscape(plant: TruePlant, targets_mhz: FloatArray | None = None) -> Landscape:
    """The cost of ``targets_mhz`` (every combination of the tables by default), ``[s, 3]``.

    At the boards' present temperature; settings that leave a knob to the board's governor need its
    fixed point and cost more to compute, so they are done apart.
    """
    every = plant.all_settings() if targets_mhz is None else targets_mhz
    free = np.isnan(every).any(1)
    time_s = np.empty((plant.n, len(every)))
    step_j = np.empty_like(time_s)
    for part in (free, ~free):
        if part.any():
            time_s[:, part], step_j[:, part] = cost_grid(plant, every[part])
    time_0, joule_0 = cost_grid(plant, np.full((1, 3), np.nan))
    return Landscape(every, time_s / time_0, step_j / joule_0)
