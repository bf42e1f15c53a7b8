"""Figures over jobs: mean, median, tails and a bootstrap interval of the mean."""

from __future__ import annotations

from typing import TypedDict

import numpy as np

from rlgov.work import FloatArray

RESAMPLES = 1000


class Figure(TypedDict):
    """One figure over jobs; ``None`` where it cannot be formed."""

    mean: float | None
    median: float | None
    p5: float | None
    p95: float | None
    ci95: list[float] | None


NOTHING = Figure(mean=None, median=None, p5=None, p95=None, ci95=None)
"""A figure that cannot be formed."""


def figure(values: FloatArray, seed: int) -> Figure:
    """A figure of one value a job, ``[n]``."""
    return ratio_figure(values, np.ones_like(values), seed, values)


def ratio_figure(
    numerator: FloatArray, denominator: FloatArray, seed: int, each: FloatArray
) -> Figure:
    """A figure whose mean is the ratio of two sums over jobs, ``[n]`` each.

    Args:
        numerator: A job's part of the sum above.
        denominator: A job's part of the sum below.
        seed: Of the bootstrap.
        each: A job's own value, for median and tails; what is not finite is left out.
    """
    known = each[np.isfinite(each)]
    low, middle, high = np.percentile(known, [5, 50, 95]) if len(known) else [np.nan] * 3
    return Figure(
        mean=_number(_ratio(numerator.sum(), denominator.sum())),
        median=_number(middle),
        p5=_number(low),
        p95=_number(high),
        ci95=_interval(numerator, denominator, seed),
    )


def _interval(numerator: FloatArray, denominator: FloatArray, seed: int) -> list[float] | None:
    n = len(numerator)
    if n < 2:
        return None
    drawn = np.random.default_rng(seed).integers(n, size=(RESAMPLES, n))
    ratios = _ratio(numerator[drawn].sum(1), denominator[drawn].sum(1))
    if not np.isfinite(ratios).all():
        return None
    low, high = np.percentile(ratios, [2.5, 97.5])
    return [float(low), float(high)]


def _ratio(above: FloatArray, below: FloatArray) -> FloatArray:
    known = np.abs(below) > 1e-12
    ratio: FloatArray = np.where(known, above / np.where(known, below, 1.0), np.nan)
    return ratio


def _number(value: float | FloatArray) -> float | None:
    return float(value) if np.isfinite(value) else None
