"""What every job promises. Subclass it, give it a job that takes at least three steps, and run."""

import itertools
import math
from abc import ABC, abstractmethod

import pytest

from rlgov.jobs.base import Job, JobEnd, StepEvent
from rlgov.work import Work

PATIENCE_S = 120.0


class JobContract(ABC):
    """Subclasses are named ``Test…`` and override `job`."""

    @pytest.fixture
    @abstractmethod
    def job(self) -> Job:
        """A new job that has not been asked for an event yet."""

    def events(self, job: Job, most: int = 200) -> list[StepEvent | JobEnd]:
        """Up to ``most`` events; the last is the end where it came in time."""
        events: list[StepEvent | JobEnd] = []
        while len(events) < most:
            event = job.next_event(PATIENCE_S)
            assert event is not None, "the job said nothing"
            events.append(event)
            if isinstance(event, JobEnd):
                break
        job.close()
        return events

    def test_has_a_name(self, job):
        self.events(job)
        assert job.name

    def test_steps_are_numbered_without_gaps(self, job):
        steps = [event for event in self.events(job) if isinstance(event, StepEvent)]
        assert len(steps) >= 3
        covered = 0
        for event in steps:
            covered += event.steps
            assert event.steps >= 1
            assert event.index == covered - 1

    def test_time_moves_forward_by_what_each_event_says(self, job):
        steps = [event for event in self.events(job) if isinstance(event, StepEvent)]
        for before, after in itertools.pairwise(steps):
            assert after.t_s > before.t_s
            assert after.wall_s is None or math.isclose(after.wall_s, after.t_s - before.t_s)

    def test_amounts_are_missing_or_plausible(self, job):
        for event in self.events(job):
            if isinstance(event, JobEnd):
                continue
            assert event.data_wait_s >= 0
            assert event.pause_s >= 0
            assert event.samples is None or event.samples > 0
            assert event.tokens is None or event.tokens > 0
            assert event.work_source in ("counted", "estimated", "unknown")
            assert isinstance(event.work, Work) == (event.work_source != "unknown")

    def test_the_end_is_repeated_and_counts_the_steps(self, job):
        events = self.events(job)
        end = events[-1]
        if not isinstance(end, JobEnd):
            pytest.skip("this job does not end by itself")
        assert end.steps == sum(e.steps for e in events if isinstance(e, StepEvent))
        assert job.next_event(0.0) is end
        assert job.next_event(None) is end

    def test_close_may_be_called_twice(self, job):
        self.events(job)
        job.close()
        job.close()
