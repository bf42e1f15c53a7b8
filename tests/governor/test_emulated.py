from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from rlgov.governor.emulated import EmulatedJob
from rlgov.jobs.base import JobEnd, StepEvent
from tests.fakes.synthetic_job import STEP_S, SyntheticJob, fine_tuning
from tests.governor.runs import WatchedBoard


class Changed(SyntheticJob):
    """Events with some of their fields replaced."""

    def __init__(self, steps: int, change, **options) -> None:
        super().__init__(steps, **options)
        self._change = change

    def next_event(self, timeout_s=None):
        event = super().next_event(timeout_s)
        if isinstance(event, StepEvent):
            return replace(event, **self._change(event.index))
        return event


def followed(job: SyntheticJob, scale: float = 1.0) -> tuple[EmulatedJob, list[StepEvent], JobEnd]:
    emulated = EmulatedJob(job, WatchedBoard(), scale)
    events = []
    while not isinstance(event := emulated.next_event(), JobEnd):
        events.append(event)
    return emulated, events, event


def last_s(job: SyntheticJob, scale: float = 1.0) -> float:
    return followed(job, scale)[1][-1].t_s


def test_times_are_the_boards_and_amounts_are_the_jobs():
    job, events, end = followed(SyntheticJob(50))
    assert events[-1].t_s == job._board.now_s()
    assert [event.index for event in events] == list(range(50))
    assert {(event.tokens, event.samples) for event in events} == {(1500, 16)}
    assert end == JobEnd(0, "completed", 50)
    assert job.real_s == pytest.approx(50 * STEP_S)
    assert job.work_sources == {"counted": 50}


def test_more_work_takes_longer_and_scaling_is_more_work():
    assert last_s(SyntheticJob(50, work=lambda t: fine_tuning(t, compute=4.0))) > last_s(
        SyntheticJob(50)
    )
    assert last_s(SyntheticJob(50), scale=2.0) > 1.5 * last_s(SyntheticJob(50))


def test_a_pause_passes_as_it_is():
    paused = last_s(SyntheticJob(50, pauses={20: 7.0}))
    assert paused == pytest.approx(last_s(SyntheticJob(50)) + 7.0, abs=0.3)


def test_waiting_for_data_is_part_of_the_step_shared_among_those_it_covers():
    def wait(_index: int) -> dict:
        return {"data_wait_s": 0.4}

    plain = last_s(SyntheticJob(60, together=2))
    waiting = last_s(Changed(60, wait, together=2))
    assert waiting == pytest.approx(plain + 30 * 0.4, rel=0.05)


def test_one_event_of_four_steps_takes_as_long_as_four():
    together, single = last_s(SyntheticJob(80, together=4)), last_s(SyntheticJob(80))
    assert together == pytest.approx(single, rel=1e-9)


def test_steps_of_unknown_work_are_counted_and_passed_over():
    def unknown(index: int) -> dict:
        return {"work": None, "work_source": "unknown"} if index < 3 else {}

    job, events, end = followed(Changed(20, unknown))
    assert job.uncounted_steps == 3
    assert len(events) == 17
    assert events[0].index == 0
    assert end.steps == 20


def test_before_any_step_the_best_is_to_leave_the_board_alone():
    job = EmulatedJob(SyntheticJob(5), WatchedBoard())
    assert np.isnan(job.best_targets(0.1)).all()
    job.next_event()
    assert np.isfinite(job.best_targets(0.1)).any()


def test_many_shapes_do_not_pile_up():
    job, _, _ = followed(SyntheticJob(700, tokens=lambda step: 1000 + step))
    assert len(job._loads) <= 257


def test_closing_leaves_the_job_to_itself():
    job = SyntheticJob(5)
    EmulatedJob(job, WatchedBoard()).close()
    assert job.closed
