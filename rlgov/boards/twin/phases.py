"""What a training job does between its steps: evaluation, checkpoints, waiting for data.

Each phase is another load on the same board, made from the job's own: an evaluation runs forward
passes only, a checkpoint leaves the GPU idle while the host writes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from rlgov.boards.twin.physics import Load
from rlgov.work import FloatArray

TRAIN, EVALUATE, CHECKPOINT, WAIT = 0, 1, 2, 3
"""Phases by number, for arrays."""


@dataclass(frozen=True)
class Schedule:
    """When a job leaves training; every array ``[n]``, 0 for never.

    Attributes:
        eval_every_steps: Steps between evaluations.
        eval_batches: Forward passes of one evaluation.
        checkpoint_every_steps: Steps between checkpoints.
        checkpoint_s: Seconds of writing one.
    """

    eval_every_steps: FloatArray
    eval_batches: FloatArray
    checkpoint_every_steps: FloatArray
    checkpoint_s: FloatArray

    def between(self, first: FloatArray, last: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Evaluations and checkpoints due after step ``first`` up to ``last``, ``[n]``."""
        return _crossings(self.eval_every_steps, first, last), _crossings(
            self.checkpoint_every_steps, first, last
        )


def _crossings(every: FloatArray, first: FloatArray, last: FloatArray) -> FloatArray:
    period = np.maximum(every, 1.0)
    due: FloatArray = np.where(every > 0, np.floor(last / period) - np.floor(first / period), 0.0)
    return due


def in_phase(load: Load, phase: NDArray[np.int64], stall_s: FloatArray | float = 1.0) -> Load:
    """The load of each job's present phase, ``[n]``.

    A "step" of an evaluation is one forward pass; of a checkpoint or of waiting for data it is
    ``stall_s`` seconds without device work.

    Args:
        load: The job's training step.
        phase: One of `TRAIN`, `EVALUATE`, `CHECKPOINT`, `WAIT`, ``[n]``.
        stall_s: How long a checkpoint or wait lasts, ``[n]`` or a number.
    """
    stalled = phase >= CHECKPOINT
    forward = np.array([1.0, 0.0, 0.0])
    kept = np.where((phase == EVALUATE)[:, None], forward, 1.0) * ~stalled[:, None]
    # What the memory moves goes with its cycles, phase by phase.
    cycles = load.mem_gcycle.sum(-1)
    share = (load.mem_gcycle * kept).sum(-1) / np.maximum(cycles, 1e-300)
    share = np.where(cycles > 0, share, kept.max(-1))
    return replace(
        load,
        gpu_gcycle=load.gpu_gcycle * kept,
        mem_gcycle=load.mem_gcycle * kept,
        host_gcycle=load.host_gcycle * kept,
        gpu_j=load.gpu_j * kept,
        soc_j=load.soc_j * share,
        mem_j=load.mem_j * share,
        loader_gcycle=np.where(stalled, 0.0, load.loader_gcycle),
        fixed_s=np.where(stalled, stall_s, load.fixed_s),
        spin=np.where(stalled, 0.0, load.spin),
    )
