"""Boards that hold a power limit by lowering the GPU's clock, as desktop cards do."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from rlgov.work import FloatArray

BISECTIONS = 14
"""Halvings of the clock's range: 1.5 GHz over 2^14 is 0.1 MHz."""


def gpu_within_limit(
    watts: Callable[[FloatArray], FloatArray],
    gpu_ghz: FloatArray,
    floor_ghz: float,
    limit_w: FloatArray | float,
) -> FloatArray:
    """The highest clock at or below ``gpu_ghz`` whose power fits, ``[...]`` GHz.

    A card's regulator alternates between neighbouring levels within milliseconds, so that the mean
    clock may lie between them. Where even the lowest clock draws too much, that is what runs.

    Args:
        watts: Total power at a clock; it must not fall as the clock rises.
        gpu_ghz: What the card would run at without a limit.
        floor_ghz: Its lowest clock.
        limit_w: The limit.
    """
    over = watts(gpu_ghz) > limit_w
    if not over.any():
        return gpu_ghz
    high = gpu_ghz
    low = np.minimum(np.full_like(gpu_ghz, floor_ghz), gpu_ghz)
    for _ in range(BISECTIONS):
        middle = 0.5 * (low + high)
        fits = watts(middle) <= limit_w
        low, high = np.where(fits, middle, low), np.where(fits, high, middle)
    limited: FloatArray = np.where(over, low, gpu_ghz)
    return limited
