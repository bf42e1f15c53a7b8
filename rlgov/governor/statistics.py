"""Intervals of a run's headline figures."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import NormalDist, fmean, variance

CONFIDENCE = 0.95
LEAST = 2
"""Windows a side below which no interval is given."""


@dataclass(frozen=True)
class Interval:
    """A figure with its 95 % interval."""

    value: float
    low: float
    high: float

    def map(self, function: Callable[[float], float]) -> Interval:
        """The interval of a monotonic function of the figure."""
        ends = sorted((function(self.low), function(self.high)))
        return Interval(function(self.value), ends[0], ends[1])


def log_ratio_interval(a: Sequence[float], b: Sequence[float]) -> Interval | None:
    """Difference of the mean logarithms of ``a`` and ``b``, with Welch's 95 % interval.

    Welch (1947): the two sides may differ in spread and count; the degrees of freedom are
    Satterthwaite's. ``None`` with fewer than two windows on a side: not yet known.

    Raises:
        ValueError: A value is not positive (our own bug: such windows are left out before).
    """
    if min(len(a), len(b)) < LEAST:
        return None
    logs_a, logs_b = [math.log(v) for v in a], [math.log(v) for v in b]
    share_a, share_b = variance(logs_a) / len(a), variance(logs_b) / len(b)
    difference = fmean(logs_a) - fmean(logs_b)
    spread = share_a + share_b
    if spread <= 0.0:
        return Interval(difference, difference, difference)
    freedom = spread**2 / (share_a**2 / (len(a) - 1) + share_b**2 / (len(b) - 1))
    freedom = max(freedom, 1.0)  # never below, but for rounding
    half = t_quantile(0.5 + CONFIDENCE / 2, freedom) * math.sqrt(spread)
    return Interval(difference, difference - half, difference + half)


def t_quantile(p: float, freedom: float) -> float:
    """Quantile of Student's t, by bisection (the base install has no SciPy).

    Raises:
        ValueError: ``p`` is not within (0, 1) or ``freedom`` is below 1.
    """
    if not 0 < p < 1 or freedom < 1:
        raise ValueError(f"no quantile {p} of t with {freedom} degrees of freedom")
    if p < 0.5:
        return -t_quantile(1 - p, freedom)
    low, high = 0.0, 1.0
    while _t_cdf(high, freedom) < p:
        low, high = high, high * 2
    for _ in range(40):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if _t_cdf(middle, freedom) < p else (low, middle)
    return 0.5 * (low + high)


def _t_cdf(t: float, freedom: float) -> float:
    """Distribution function of Student's t for t >= 0, by Simpson's rule over its density.

    Substituting t = sqrt(freedom) * tan(a) makes the integrand the smooth cos(a)^(freedom - 1).
    """
    if freedom > 1e5:
        return NormalDist().cdf(t)
    end = math.atan(t / math.sqrt(freedom))
    log_scale = math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2) - 0.5 * math.log(math.pi)
    panels = 200
    width = end / panels
    total = 0.0
    for i in range(panels + 1):
        weight = 1 if i in (0, panels) else 4 if i % 2 else 2
        total += weight * math.cos(i * width) ** (freedom - 1)
    return 0.5 + math.exp(log_scale) * total * width / 3
