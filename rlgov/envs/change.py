"""What may change about a simulated job and board while a policy governs them."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace

import numpy as np
from numpy.typing import NDArray

from rlgov.boards.twin import Load, Silicon
from rlgov.boards.twin.drift import DriftSpec, drift_at
from rlgov.boards.twin.noise import SeedArray, uniforms
from rlgov.boards.twin.phases import EVALUATE, TRAIN, in_phase
from rlgov.errors import ConfigError
from rlgov.work import FloatArray

_SILICON_STREAM = np.uint64(0x5111C0A5111C0A51)


@dataclass(frozen=True)
class Change:
    """Changes by window, counted from a job's first one; reference windows count.

    Attributes:
        drift: Work, co-runners and a wave of the ambient.
        heat_k: Degrees by which the ambient has risen after ``drift.horizon`` windows.
        evaluate_every: Windows from one evaluation phase to the next (0: none).
        evaluate_windows: Windows of a phase; its steps are forward passes.
        silicon: How far every factor of every board lies beside its draw, up or down: 0.15 for
            15 %.
    """

    drift: DriftSpec = field(default_factory=DriftSpec)
    heat_k: float = 0.0
    evaluate_every: int = 0
    evaluate_windows: int = 2
    silicon: float = 0.0

    def __post_init__(self) -> None:
        if self.evaluate_every and not 0 < self.evaluate_windows < self.evaluate_every:
            raise ConfigError(
                f"drift: evaluate_windows={self.evaluate_windows} must be positive and below "
                f"evaluate_every={self.evaluate_every}"
            )
        if not 0 <= self.silicon < 1:
            raise ConfigError(f"drift: silicon={self.silicon} must be at least 0 and below 1")

    def evaluating(self, window: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whether ``window`` is part of an evaluation phase."""
        if not self.evaluate_every:
            return np.zeros(len(window), bool)
        late = window % self.evaluate_every >= self.evaluate_every - self.evaluate_windows
        return np.asarray(late, bool)

    def at(
        self, load: Load, silicon: Silicon, seed: SeedArray, window: NDArray[np.int64]
    ) -> tuple[Load, Silicon]:
        """Load and silicon of each job in window ``window``, ``[n]``."""
        drift = drift_at(self.drift, seed, window)
        phase = np.where(self.evaluating(window), EVALUATE, TRAIN)
        risen = self.heat_k * np.minimum(window / self.drift.horizon, 1.0)
        ambient = np.asarray(silicon.ambient_k, float) + drift.ambient_k + risen
        return drift.apply(in_phase(load, phase)), replace(silicon, ambient_k=ambient)

    def displaced(self, silicon: Silicon, seed: SeedArray) -> Silicon:
        """``silicon`` with every factor moved by the same share, up or down by draw."""
        names = [f.name for f in fields(Silicon) if f.name != "ambient_k"]
        drawn = uniforms(seed ^ _SILICON_STREAM, np.zeros(len(seed), np.int64), len(names))
        factor = 1.0 + self.silicon * np.where(drawn < 0.5, -1.0, 1.0)
        moved: dict[str, FloatArray] = {
            name: np.asarray(getattr(silicon, name), float) * factor[:, i]
            for i, name in enumerate(names)
        }
        return replace(silicon, **moved)
