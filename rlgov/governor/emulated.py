"""A real job on an emulated board: real steps in, emulated times out.

The job really trains; what each of its steps asks for was counted in the job. Here that work, not
the host's own speed, decides how long a step takes on the emulated board and what it draws. Real
pauses and waits for data pass on the emulated clock as they are.
"""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np

from rlgov.boards.twin.board import TwinBoard
from rlgov.boards.twin.physics import Load, load_of
from rlgov.errors import JobError
from rlgov.jobs.base import Job, JobEnd, StepEvent
from rlgov.work import FloatArray, Work


class EmulatedJob(Job):
    """Puts the steps of ``job`` onto the clock of ``board``.

    Steps whose work is not known yet (the first few, until it has been counted in the job) cannot
    be emulated: they are passed over and counted.

    Args:
        job: The real job.
        board: The emulated board it is to run on.
        scale: Factor on the job's device work, to stand for a larger model; host work stays.
        fitted: Load of a job fitted to measurements, that every step stands for instead.

    Attributes:
        scale: As given.
        uncounted_steps: Steps passed over because their work was not known.
        work_sources: Steps by where their work came from (``counted``, ``estimated``).
        emulation_s: CPU seconds of this process spent on emulating; not part of the governor's own.
        real_s: Real seconds of the emulated steps, to stand beside the emulated ones.
    """

    def __init__(
        self, job: Job, board: TwinBoard, scale: float = 1.0, fitted: Load | None = None
    ) -> None:
        self._fitted = fitted
        self.name = job.name
        self.uncounted_steps = 0
        self.work_sources: dict[str, int] = {}
        self.emulation_s = 0.0
        self.real_s = 0.0
        self._job = job
        self._board = board
        self.scale = scale
        self._steps = 0
        self._latest: Load | None = None
        self._loads: dict[int, tuple[Work, Load]] = {}

    def next_event(self, timeout_s: float | None = None) -> StepEvent | JobEnd | None:
        """The job's next event, on the emulated clock."""
        while True:
            event = self._job.next_event(timeout_s)
            if not isinstance(event, StepEvent):
                return event
            if event.work is None and self._fitted is None:
                self.uncounted_steps += event.steps
                continue
            began = time.process_time()
            emulated = self._emulate(event, event.work)
            self.emulation_s += time.process_time() - began
            return emulated

    def best_targets(self, budget: float) -> FloatArray:
        """The truth that only the oracle is told: the best static setting for the work at hand."""
        if self._latest is None:
            return np.full((1, 3), np.nan)
        return self._board.best_targets(self._latest, budget)

    def close(self) -> None:
        """Stop following the job. The job itself goes on."""
        self._job.close()

    def _emulate(self, event: StepEvent, work: Work | None) -> StepEvent:
        if event.pause_s > 0:
            self._board.idle(event.pause_s)
        load = self._load(work)
        waited = event.data_wait_s / event.steps
        load = replace(load, fixed_s=load.fixed_s + waited)
        self._latest = load
        for _ in range(event.steps):
            self._board.advance(load)
        self._steps += event.steps
        source = event.work_source if self._fitted is None else "fitted"
        counted = self.work_sources.get(source, 0)
        self.work_sources[source] = counted + event.steps
        self.real_s += (event.wall_s or 0.0) - event.pause_s
        return replace(event, index=self._steps - 1, t_s=self._board.now_s())

    def _load(self, work: Work | None) -> Load:
        """The board's own terms of ``work``; the same few shapes come again and again."""
        if self._fitted is not None:
            return self._fitted
        if work is None:
            raise JobError("a step without counted work cannot be emulated")
        key = hash((work.flop.tobytes(), work.flop_half.tobytes(), work.byte.tobytes()))
        known = self._loads.get(key)
        if known is None:
            if len(self._loads) > 256:
                self._loads.clear()
            known = (work, load_of(work.scaled(self.scale), self._board.spec))
            self._loads[key] = known
        return known[1]
