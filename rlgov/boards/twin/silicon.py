"""How pieces of silicon differ from the board's spec."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from rlgov.work import FloatArray


@dataclass(frozen=True)
class Silicon:
    """How one piece of silicon differs from the spec; each ``[n]`` or 1.

    Attributes:
        dynamic: Factor on dynamic power of GPU and CPU.
        leak: Factor on leakage.
        voltage: Factor on the slope of voltage above the knee.
        memory: Factor on memory power.
        base: Factor on the carrier's constant power.
        ambient_k: Degrees added to the spec's ambient.
    """

    dynamic: FloatArray | float = 1.0
    leak: FloatArray | float = 1.0
    voltage: FloatArray | float = 1.0
    memory: FloatArray | float = 1.0
    base: FloatArray | float = 1.0
    ambient_k: FloatArray | float = 0.0

    def take(self, index: NDArray[np.intp] | slice) -> Silicon:
        """The pieces at ``index``."""
        values = {f.name: np.asarray(getattr(self, f.name), float) for f in fields(self)}
        return Silicon(**{k: v[index] if v.ndim else v for k, v in values.items()})

    def against_grid(self) -> Silicon:
        """Insert an axis after the jobs', to broadcast against a grid of settings."""
        values = {f.name: np.asarray(getattr(self, f.name), float) for f in fields(self)}
        return Silicon(**{k: v[:, None] if v.ndim else v for k, v in values.items()})

    @staticmethod
    def draw(n: int, spread: float, rng: np.random.Generator) -> Silicon:
        """``n`` pieces, each factor log-normal with standard deviation ``spread``.

        Ambient temperature varies by 40 K times ``spread`` about the spec's.
        """

        def factor(scale: float = 1.0) -> FloatArray:
            return np.exp(rng.normal(0.0, spread * scale, n))

        return Silicon(
            dynamic=factor(),
            leak=factor(1.5),
            voltage=factor(),
            memory=factor(),
            base=factor(),
            ambient_k=rng.normal(0.0, 40.0 * spread, n),
        )


NOMINAL = Silicon()
"""The spec itself."""
