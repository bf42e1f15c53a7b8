"""A job that takes its steps when asked, as fast as they are asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from rlgov.jobs.base import Job, JobEnd, StepEvent
from rlgov.work import Work, make_work

STEP_S = 0.05


def fine_tuning(tokens: int = 1500, compute: float = 2.0, memory: float = 0.3) -> Work:
    """The work of a step of some 0.15 s on an AGX Orin as found, about in proportion to tokens."""
    share = tokens / 1500
    return make_work(
        flop=np.array([0.08, 0.16, 0.001]) * 1e12 * compute * share,
        byte=np.array([1.0, 2.0, 1.0]) * 1e9 * memory * share,
        launch=[150, 250, 60],
        host_gcycle=[0.01, 0.01, 0.01],
        samples=16.0,
        tokens=float(tokens),
    )


class SyntheticJob(Job):
    """Yields ``steps`` steps, then its end.

    Args:
        steps: How many.
        tokens: Tokens of a step by its number; 1500 by default.
        work: Work of a step from its tokens; ``None`` for a job whose work is never counted.
        pauses: Step number -> seconds of evaluation before it.
        ends: Exit code and reason; ``no_steps`` is told by itself.
        together: Steps that one event covers.
        before_step: Called with a step's number before it, to make things happen then.
    """

    def __init__(
        self,
        steps: int,
        *,
        tokens: Callable[[int], int] = lambda _: 1500,
        work: Callable[[int], Work] | None = fine_tuning,
        pauses: Mapping[int, float] | None = None,
        ends: tuple[int | None, str] = (0, "completed"),
        together: int = 1,
        before_step: Callable[[int], None] = lambda _: None,
    ) -> None:
        self.name = "synthetic"
        self.closed = False
        self.taken = 0
        self._steps, self._tokens, self._work = steps, tokens, work
        self._pauses, self._together = dict(pauses or {}), together
        self._before_step = before_step
        self._t_s = 0.0
        self._end = JobEnd(ends[0], ends[1] if steps else "no_steps", steps)

    def next_event(self, timeout_s: float | None = None) -> StepEvent | JobEnd | None:
        if self.taken >= self._steps:
            return self._end
        self._before_step(self.taken)
        covered = min(self._together, self._steps - self.taken)
        tokens = self._tokens(self.taken)
        pause_s = self._pauses.get(self.taken, 0.0)
        self.taken += covered
        wall_s = covered * STEP_S + pause_s
        self._t_s += wall_s
        return StepEvent(
            index=self.taken - 1,
            t_s=self._t_s,
            wall_s=wall_s,
            work=None if self._work is None else self._work(tokens),
            work_source="unknown" if self._work is None else "counted",
            samples=16 * covered,
            tokens=tokens * covered,
            pause_s=pause_s,
            steps=covered,
        )

    def close(self) -> None:
        self.closed = True
