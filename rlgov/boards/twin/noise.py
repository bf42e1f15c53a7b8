"""Counter-based noise: a job's draws depend on its seed and the window's number, nothing else.

A batch of jobs and a single one therefore see the same noise, and two policies that are compared
on the same jobs meet the same luck whatever they choose.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rlgov.work import FloatArray

SeedArray = NDArray[np.uint64]

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_A = np.uint64(0xBF58476D1CE4E5B9)
_MIX_B = np.uint64(0x94D049BB133111EB)
_ROW = np.uint64(0xD1342543DE82EF95)


def _mix(x: SeedArray) -> SeedArray:
    """SplitMix64's finaliser (Steele, Lea & Flood 2014)."""
    x = (x ^ (x >> np.uint64(30))) * _MIX_A
    x = (x ^ (x >> np.uint64(27))) * _MIX_B
    mixed: SeedArray = x ^ (x >> np.uint64(31))
    return mixed


def uniforms(seed: SeedArray, counter: NDArray[np.int64], channels: int) -> FloatArray:
    """Uniform draws in (0, 1), ``[n, channels]``."""
    with np.errstate(over="ignore"):
        row = _mix(seed + counter.astype(np.uint64) * _ROW)
        steps = (np.arange(1, channels + 1, dtype=np.uint64) * _GOLDEN)[None, :]
        bits = _mix(row[:, None] + steps)
    drawn: FloatArray = ((bits >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53
    return drawn


def normals(seed: SeedArray, counter: NDArray[np.int64], channels: int) -> FloatArray:
    """Standard normal draws, ``[n, channels]``, by Box and Muller's transform."""
    half = (channels + 1) // 2
    u = uniforms(seed, counter, 2 * half)
    radius = np.sqrt(-2.0 * np.log(u[:, :half]))
    angle = (2.0 * np.pi) * u[:, half:]
    drawn = np.concatenate([radius * np.cos(angle), radius * np.sin(angle)], axis=1)
    kept: FloatArray = drawn[:, :channels]
    return kept


def job_seeds(n: int, rng: np.random.Generator) -> SeedArray:
    """One seed a job."""
    return rng.integers(0, 2**63, size=n, dtype=np.uint64)
