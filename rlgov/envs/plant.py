"""What an environment drives: boards with jobs on them, one window at a time.

Simulation, replay and the live job differ in this class only. A plant holds ``n`` boards side by
side (1 for a live job); everything that it hands out could have been measured by a governor.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from rlgov.boards.base import Knob
from rlgov.work import FloatArray

ROLES = ("gpu", "cpu", "mem", "sys")
"""What a rail mostly feeds, so that observations mean the same on every board."""


@dataclass(frozen=True)
class WindowData:
    """A window as measured; NaN is "not measured", never zero.

    Attributes:
        step_time_s: Mean seconds a step, ``[n]``.
        step_j: Mean joules a step of the total, ``[n]``.
        role_w: Mean watts by `ROLES`, ``[n, 4]``.
        utilisation: Busy share by knob, ``[n, 3]``.
        clocks_mhz: Clock each knob really ran at, ``[n, 3]``.
        temperature_c: Hottest zone, ``[n]``.
        steps: Steps in the window, ``[n]``.
    """

    step_time_s: FloatArray
    step_j: FloatArray
    role_w: FloatArray
    utilisation: FloatArray
    clocks_mhz: FloatArray
    temperature_c: FloatArray
    steps: FloatArray

    @property
    def total_w(self) -> FloatArray:
        """Mean watts of the total, ``[n]``."""
        watts: FloatArray = self.step_j / self.step_time_s
        return watts

    @property
    def metered(self) -> NDArray[np.bool_]:
        """Jobs whose time and energy are both known, ``[n]``."""
        known: NDArray[np.bool_] = np.isfinite(self.step_time_s) & np.isfinite(self.step_j)
        return known

    def take(self, index: NDArray[np.intp] | slice) -> WindowData:
        """The jobs at ``index``."""
        return WindowData(**{f.name: getattr(self, f.name)[index] for f in fields(self)})

    @staticmethod
    def mean(windows: Sequence[WindowData]) -> WindowData:
        """Windows of the same jobs pooled, weighted by steps; what is NaN in one is left out."""
        steps = np.stack([w.steps for w in windows])
        return WindowData(
            **{
                f.name: _pooled(np.stack([getattr(w, f.name) for w in windows]), steps)
                for f in fields(WindowData)
                if f.name != "steps"
            },
            steps=steps.sum(0),
        )


def _pooled(values: FloatArray, steps: FloatArray) -> FloatArray:
    weights = steps.reshape(steps.shape + (1,) * (values.ndim - steps.ndim))
    known = np.isfinite(values)
    total = np.where(known, weights, 0.0).sum(0)
    pooled: FloatArray = np.where(known, values * weights, 0.0).sum(0)
    return np.where(total > 0, pooled / np.maximum(total, 1e-12), np.nan)


class Plant(ABC):
    """Boards with jobs on them.

    Attributes:
        n: How many.
        knobs: Their knobs (the same for all).
    """

    n: int
    knobs: Sequence[Knob]

    @abstractmethod
    def reset(self, seed: int | None) -> None:
        """Begin an episode: new jobs in simulation, the running job live."""

    @abstractmethod
    def window(self, targets_mhz: FloatArray) -> WindowData | None:
        """Run one window at ``targets_mhz`` (``[n, 3]``, NaN for auto).

        Returns:
            What was measured; ``None`` when the job ended before the window was complete.
        """

    def close(self) -> None:
        """Give the boards back. Simulated ones need nothing."""
        return


def role_watts(rail_w: FloatArray, rails: Sequence[str], roles: Mapping[str, str]) -> FloatArray:
    """Watts by `ROLES` ``[n, 4]`` from watts by rail ``[n, rails]``; NaN where no rail tells."""
    out = np.full((*rail_w.shape[:-1], len(ROLES)), np.nan)
    for r, role in enumerate(ROLES):
        index = [i for i, rail in enumerate(rails) if roles.get(rail) == role]
        if index:
            out[..., r] = rail_w[..., index].sum(-1)
    return out
