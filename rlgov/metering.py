"""Power samples to joules per mini-batch.

Power is taken as linear between samples and integrated exactly over step boundaries, so the steps
of an interval always add up to the interval. Where samples are too far apart, missing or stale the
energy is `None` with a reason: no reading is not zero.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from rlgov.boards.base import Reading
from rlgov.errors import MeterError

TOTAL = "total"
"""Key of the board's total beside the rails."""


@dataclass(frozen=True)
class Energy:
    """Energy between two instants.

    Attributes:
        t0_s: Start, on the board's clock.
        t1_s: End.
        total_j: Joules of the total; ``None`` where it was not metered throughout.
        rail_j: Joules by rail; a rail that was not metered throughout is absent.
        quality: Rail (or ``total``) -> why its energy is missing.
    """

    t0_s: float
    t1_s: float
    total_j: float | None
    rail_j: Mapping[str, float]
    quality: Mapping[str, str] = field(default_factory=dict)

    @property
    def mean_w(self) -> float | None:
        """Mean power of the total; ``None`` where its energy is."""
        if self.total_j is None or self.t1_s <= self.t0_s:
            return None
        return self.total_j / (self.t1_s - self.t0_s)


@dataclass
class _Series:
    """Samples of one rail with the running integral of the line through them.

    ``breaks`` counts, up to each sample, the gaps longer than the meter allows.
    """

    t_s: list[float] = field(default_factory=list)
    power_w: list[float] = field(default_factory=list)
    integral_j: list[float] = field(default_factory=list)
    breaks: list[int] = field(default_factory=list)

    def append(self, t_s: float, power_w: float, max_gap_s: float) -> None:
        if self.t_s:
            gap = t_s - self.t_s[-1]
            area = 0.5 * (power_w + self.power_w[-1]) * gap
            self.integral_j.append(self.integral_j[-1] + area)
            self.breaks.append(self.breaks[-1] + (gap > max_gap_s))
        else:
            self.integral_j.append(0.0)
            self.breaks.append(0)
        self.t_s.append(t_s)
        self.power_w.append(power_w)

    def forget_before(self, t_s: float) -> None:
        keep = max(bisect_right(self.t_s, t_s) - 1, 0)
        for column in (self.t_s, self.power_w, self.integral_j, self.breaks):
            del column[:keep]

    def at(self, t_s: float) -> float:
        """Integral up to ``t_s``; beyond the ends the nearest sample is held."""
        i = bisect_right(self.t_s, t_s) - 1
        if i < 0:
            return (t_s - self.t_s[0]) * self.power_w[0]
        dt = t_s - self.t_s[i]
        if i + 1 == len(self.t_s) or dt == 0.0:
            return self.integral_j[i] + dt * self.power_w[i]
        slope = (self.power_w[i + 1] - self.power_w[i]) / (self.t_s[i + 1] - self.t_s[i])
        return self.integral_j[i] + dt * (self.power_w[i] + 0.5 * slope * dt)

    def fault(self, t0_s: float, t1_s: float, max_gap_s: float) -> str | None:
        """Why the interval is not covered, or ``None``."""
        if not self.t_s:
            return "no reading"
        if self.t_s[0] - t0_s > max_gap_s:
            return f"first reading too late ({self.t_s[0] - t0_s:.2f} s after the start)"
        if t1_s - self.t_s[-1] > max_gap_s:
            return f"stale (last reading {t1_s - self.t_s[-1]:.2f} s old)"
        first = max(bisect_right(self.t_s, t0_s) - 1, 0)
        last = min(bisect_left(self.t_s, t1_s), len(self.t_s) - 1)
        if self.breaks[last] > self.breaks[first]:
            return f"a gap of more than {max_gap_s:g} s between readings"
        return None


class Meter:
    """Collects readings and answers for the energy between any two instants.

    Args:
        rails: The board's rails.
        max_gap_s: Longest distance between two readings that is still bridged.
    """

    def __init__(self, rails: Sequence[str], max_gap_s: float) -> None:
        if not max_gap_s > 0:
            raise MeterError(f"max_gap_s must be positive, not {max_gap_s}")
        self._max_gap_s = max_gap_s
        self._rails = tuple(rails)
        self._series = {name: _Series() for name in (*self._rails, TOTAL)}
        self._last_t_s = float("-inf")
        self.repeated = 0
        self.negative = 0

    def add(self, reading: Reading) -> None:
        """Take a reading. One that is not newer than the last is counted and left out.

        A negative power (an amplifier's offset while a rail is gated) counts as zero energy and in
        `negative`; a rail that is absent from the reading leaves a gap in that rail only.
        """
        if not reading.t_s > self._last_t_s:
            self.repeated += 1
            return
        self._last_t_s = reading.t_s
        for rail in self._rails:
            self._append(rail, reading.t_s, reading.power_w.get(rail))
        self._append(TOTAL, reading.t_s, reading.total_w)

    def energy(self, t0_s: float, t1_s: float) -> Energy:
        """Energy from ``t0_s`` to ``t1_s``.

        Raises:
            MeterError: The interval runs backwards.
        """
        if t1_s < t0_s:
            raise MeterError(f"the interval runs backwards: {t0_s} to {t1_s}")
        joules: dict[str, float] = {}
        quality: dict[str, str] = {}
        for name, series in self._series.items():
            fault = series.fault(t0_s, t1_s, self._max_gap_s)
            if fault is None:
                joules[name] = series.at(t1_s) - series.at(t0_s)
            else:
                quality[name] = fault
        total = joules.pop(TOTAL, None)
        return Energy(t0_s, t1_s, total, joules, quality)

    def forget_before(self, t_s: float) -> None:
        """Drop samples that no interval after ``t_s`` needs, to bound memory."""
        for series in self._series.values():
            series.forget_before(t_s)

    def _append(self, name: str, t_s: float, power_w: float | None) -> None:
        if power_w is None or not math.isfinite(power_w):
            return
        if power_w < 0.0:
            self.negative += 1
        self._series[name].append(t_s, max(power_w, 0.0), self._max_gap_s)
