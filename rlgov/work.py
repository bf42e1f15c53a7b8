"""What one mini-batch asks of a board, counted without knowing the board.

Shared by the jobs that count it (attached or synthetic) and the twin that turns it into seconds
and joules, so it sits below both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from rlgov.errors import ConfigError

FloatArray: TypeAlias = NDArray[np.float64]

PHASES = ("forward", "backward", "optimizer")
"""The parts of a step that run one after the other; the last axis of every per-phase array."""


@dataclass(frozen=True)
class Work:
    """Counted work of a step, for one job (``...`` empty) or a batch of jobs (``...`` = n).

    Attributes:
        flop: Floating-point operations that run on the vector units (fp32), ``[..., 3]``.
        flop_half: Operations that may use the matrix units (bf16, fp16), ``[..., 3]``.
        byte: Bytes moved to and from memory, ``[..., 3]``.
        launch: Kernel launches, ``[..., 3]``.
        host_gcycle: Giga-cycles of the training thread besides launching, ``[..., 3]``.
        loader_gcycle: Giga-cycles of all data-loading workers, ``[...]``.
        loader_workers: Cores on which they run (0: in the training thread), ``[...]``.
        fixed_s: Seconds that no knob changes (disk, network), ``[...]``.
        spin: Share of its waiting that the training thread spends spinning, 0 to 1, ``[...]``.
        samples: Sequences a step, ``[...]``.
        tokens: Tokens a step, ``[...]``.
    """

    flop: FloatArray
    flop_half: FloatArray
    byte: FloatArray
    launch: FloatArray
    host_gcycle: FloatArray
    loader_gcycle: FloatArray
    loader_workers: FloatArray
    fixed_s: FloatArray
    spin: FloatArray
    samples: FloatArray
    tokens: FloatArray

    def __len__(self) -> int:
        """Number of jobs; 1 for a single job without a batch axis."""
        return int(self.flop.shape[0]) if self.flop.ndim > 1 else 1

    def batched(self) -> Work:
        """The same work with a leading batch axis (a no-op when it has one)."""
        if self.flop.ndim > 1:
            return self
        return Work(**{f.name: np.asarray(getattr(self, f.name))[None] for f in fields(self)})

    def take(self, index: NDArray[np.intp] | slice) -> Work:
        """The jobs at ``index`` of a batch."""
        return Work(**{f.name: getattr(self, f.name)[index] for f in fields(self)})

    def scaled(self, factor: float) -> Work:
        """The same step with ``factor`` times the device's work (not the host's).

        Raises:
            ConfigError: ``factor`` is not positive.
        """
        if not factor > 0:
            raise ConfigError(f"the scale of a job's work must be positive, not {factor}")
        scaled = {"flop", "flop_half", "byte"}
        return Work(
            **{
                f.name: getattr(self, f.name) * (factor if f.name in scaled else 1.0)
                for f in fields(self)
            }
        )

    @staticmethod
    def concatenate(works: Sequence[Work]) -> Work:
        """One batch from several."""
        batches = [work.batched() for work in works]
        return Work(
            **{f.name: np.concatenate([getattr(w, f.name) for w in batches]) for f in fields(Work)}
        )


def make_work(
    *,
    flop: Sequence[float] = (0.0, 0.0, 0.0),
    flop_half: Sequence[float] = (0.0, 0.0, 0.0),
    byte: Sequence[float] = (0.0, 0.0, 0.0),
    launch: Sequence[float] = (0.0, 0.0, 0.0),
    host_gcycle: Sequence[float] = (0.0, 0.0, 0.0),
    loader_gcycle: float = 0.0,
    loader_workers: float = 0.0,
    fixed_s: float = 0.0,
    spin: float = 0.0,
    samples: float = 1.0,
    tokens: float = 1.0,
) -> Work:
    """The work of one job from plain numbers (see `Work` for units)."""
    return Work(
        flop=np.asarray(flop, float),
        flop_half=np.asarray(flop_half, float),
        byte=np.asarray(byte, float),
        launch=np.asarray(launch, float),
        host_gcycle=np.asarray(host_gcycle, float),
        loader_gcycle=np.asarray(loader_gcycle, float),
        loader_workers=np.asarray(loader_workers, float),
        fixed_s=np.asarray(fixed_s, float),
        spin=np.asarray(spin, float),
        samples=np.asarray(samples, float),
        tokens=np.asarray(tokens, float),
    )
