"""What a job is: a stream of step events on a monotonic clock.

One step is one *optimizer* step, that is one effective mini-batch, however many micro-batches it
accumulated. The contract is checked by ``tests/conformance/job_contract.py``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Literal

from rlgov.work import Work

JobPhase = Literal["train", "eval", "checkpoint", "resume"]


@dataclass(frozen=True)
class StepEvent:
    """The end of one optimizer step.

    Attributes:
        index: Count of steps of this job, from 0; of the last one where the event covers several.
        t_s: Monotonic time of the step's end, on the clock of the board that meters the job.
        wall_s: Real seconds since the previous event (``None`` for the first).
        work: What *one* step asked of the board, where it could be counted.
        work_source: ``counted``, ``estimated`` or ``unknown``.
        samples: Sequences in the covered steps, where known.
        tokens: Tokens in the covered steps, where known.
        data_wait_s: Of ``wall_s``, the part spent waiting for the next batch.
        pause_s: Of ``wall_s``, the part spent outside training (evaluation, checkpoint).
        rank: Rank of the process in a distributed job.
        steps: Steps that this event covers, at least 1: more when the job ran ahead of whoever
            follows it. ``index`` rises by ``steps`` from event to event, so nothing is lost.
    """

    index: int
    t_s: float
    wall_s: float | None = None
    work: Work | None = None
    work_source: str = "unknown"
    samples: int | None = None
    tokens: int | None = None
    data_wait_s: float = 0.0
    pause_s: float = 0.0
    rank: int = 0
    steps: int = 1


@dataclass(frozen=True)
class JobEnd:
    """The job is over.

    Attributes:
        exit_code: As a shell reports it (128 + n after signal n); ``None`` for a synthetic job.
        reason: ``completed``, ``failed``, ``interrupted``, ``no_steps``, or ``unfollowed`` after
            `Job.close`.
        steps: Steps seen in all.
    """

    exit_code: int | None
    reason: str
    steps: int


class Job(ABC):
    """A running job."""

    name: str

    @abstractmethod
    def next_event(self, timeout_s: float | None = None) -> StepEvent | JobEnd | None:
        """The next event; ``None`` when ``timeout_s`` passed first.

        After a `JobEnd`, every further call returns the same `JobEnd`.
        """

    @abstractmethod
    def close(self) -> None:
        """Stop following the job. The job itself goes on."""
