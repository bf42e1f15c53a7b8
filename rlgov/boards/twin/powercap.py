"""Boards that hold a power limit by lowering the GPU's clock, as desktop cards do."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from rlgov.boards.twin.physics import Load, Silicon, idle_watts, step_cost, total_watts
from rlgov.boards.twin.spec import TwinSpec
from rlgov.work import FloatArray

BISECTIONS = 14
"""Halvings of the clock's range: 4.5 GHz over 2^14 is 0.3 MHz."""
HEADROOM = 3.0
"""A limit that a clock this many times higher would not reach is none."""


def busy_watts(
    load: Load,
    clocks_ghz: FloatArray,
    temperature_c: FloatArray,
    spec: TwinSpec,
    silicon: Silicon,
) -> FloatArray:
    """Total power while the GPU is busy, ``[...]`` W: what a regulator of milliseconds holds.

    The mean over a step is lower where the GPU waits for the host.
    """
    gpu, cpu, emc = clocks_ghz[..., 0], clocks_ghz[..., 1], clocks_ghz[..., 2]
    cost = step_cost(load, gpu, cpu, emc, temperature_c, spec, silicon)
    idle = idle_watts(clocks_ghz, temperature_c, spec, silicon)
    mean = total_watts(cost.component_w, spec)
    busy: FloatArray = idle + (mean - idle) / np.maximum(cost.loads.gpu, 0.05)
    return busy


def gpu_within_limit(
    watts: Callable[[FloatArray], FloatArray],
    gpu_ghz: FloatArray,
    floor_ghz: float,
    limit_w: FloatArray | float,
    softness: float,
) -> FloatArray:
    """The mean clock under a power limit of a card that would run at ``gpu_ghz``, ``[...]`` GHz.

    A step's kernels differ in power, and a limit slows the hungriest first, while others still run
    free: the mean clock leaves its free value well before the mean power meets the limit, and only
    under tight limits do both meet. A smooth minimum of the free clock and the clock whose mean
    power is the limit has this shape. Where even the lowest clock draws too much, that one runs.

    Args:
        watts: Mean power of busy stretches at a clock; it must not fall as the clock rises.
        gpu_ghz: What the card would run at without a limit.
        floor_ghz: Its lowest clock.
        limit_w: The limit.
        softness: Exponent of the smooth minimum; the larger, the sharper.
    """
    low = np.minimum(np.full_like(gpu_ghz, floor_ghz), gpu_ghz)
    floor, high = low, HEADROOM * gpu_ghz
    for _ in range(BISECTIONS):
        middle = 0.5 * (low + high)
        fits = watts(middle) <= limit_w
        low, high = np.where(fits, middle, low), np.where(fits, high, middle)
    slowness = np.logaddexp(-softness * np.log(gpu_ghz), -softness * np.log(low))
    slowed = np.exp(-slowness / softness)
    limited: FloatArray = np.where(low > 0.999 * HEADROOM * gpu_ghz, gpu_ghz, slowed)
    return np.maximum(limited, floor)
