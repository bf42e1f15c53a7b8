"""Slow change that no knob causes: work that drifts, co-runners that come and go, warmer air.

Counter-based like the sensors' noise: what happens in a job's window depends on its seed and the
window's number only, so that a batch and a single job, and two policies, meet the same.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rlgov.boards.twin.noise import SeedArray, uniforms
from rlgov.boards.twin.physics import Load, beside
from rlgov.errors import ConfigError
from rlgov.work import FloatArray

_STREAM = np.uint64(0xD21F7D21F7D21F75)
_EPISODE_STREAM = np.uint64(0xC0121AA7E5C0121A)


@dataclass(frozen=True)
class DriftSpec:
    """How much may change, and how fast; all zero (the default) for a steady world.

    Attributes:
        work_ramp: Largest relative change of the device work from a job's first window to
            ``horizon`` (a curriculum of longer sequences, say); each job draws its own, up or down.
        work_jump: Largest sudden relative change, at one window drawn for each job.
        ambient_swing_k: Amplitude of a slow wave of the ambient temperature.
        corunner_chance: Chance that a stretch of ``corunner_windows`` has a co-runner.
        corunner_share: Largest share of GPU, bandwidth and CPU that a co-runner takes.
        corunner_windows: Length of such a stretch.
        horizon: Windows of the ramp; also the period of the ambient's wave.
    """

    work_ramp: float = 0.0
    work_jump: float = 0.0
    ambient_swing_k: float = 0.0
    corunner_chance: float = 0.0
    corunner_share: float = 0.3
    corunner_windows: int = 10
    horizon: int = 100

    def __post_init__(self) -> None:
        if not (0 <= self.work_ramp < 1 and 0 <= self.work_jump < 1):
            raise ConfigError("drift: work_ramp and work_jump must be at least 0 and below 1")
        if not (0 <= self.corunner_share < 0.9 and 0 <= self.corunner_chance <= 1):
            raise ConfigError(
                "drift: corunner_share must be below 0.9, corunner_chance within 0..1"
            )
        if self.corunner_windows < 1 or self.horizon < 1:
            raise ConfigError("drift: corunner_windows and horizon must be at least 1")


@dataclass(frozen=True)
class Drift:
    """What holds in one window; every array ``[n]``.

    Attributes:
        work: Factor on the device work.
        gpu_share: Share of the GPU that a co-runner takes.
        memory_share: Share of the bandwidth that it takes.
        cpu_share: Share of the CPU that it takes.
        ambient_k: Degrees added to the ambient.
    """

    work: FloatArray
    gpu_share: FloatArray
    memory_share: FloatArray
    cpu_share: FloatArray
    ambient_k: FloatArray

    def apply(self, load: Load) -> Load:
        """``load`` under this drift."""
        return beside(load.scaled(self.work), self.gpu_share, self.memory_share, self.cpu_share)


def drift_at(spec: DriftSpec, seed: SeedArray, window: NDArray[np.int64]) -> Drift:
    """The drift of each job in window ``window`` (``[n]``, counted from 0)."""
    fixed = uniforms(seed ^ _STREAM, np.zeros_like(window), 4)
    progress = np.minimum(window / spec.horizon, 1.0)
    ramp = 1.0 + spec.work_ramp * (2.0 * fixed[:, 0] - 1.0) * progress
    jumped = window >= fixed[:, 1] * spec.horizon
    jump = np.where(jumped, 1.0 + spec.work_jump * (2.0 * fixed[:, 2] - 1.0), 1.0)
    wave = np.sin(2.0 * np.pi * (window / spec.horizon + fixed[:, 3]))
    stretch = uniforms(seed ^ _EPISODE_STREAM, window // spec.corunner_windows, 4)
    taken = np.where(stretch[:, :1] < spec.corunner_chance, spec.corunner_share * stretch[:, 1:], 0)
    return Drift(ramp * jump, taken[:, 0], taken[:, 1], taken[:, 2], spec.ambient_swing_k * wave)
