from __future__ import annotations

import numpy as np
import pytest

from rlgov.boards.twin import DriftSpec, drift_at
from rlgov.boards.twin.phases import CHECKPOINT, EVALUATE, TRAIN, Schedule, in_phase
from rlgov.boards.twin.physics import step_time
from rlgov.errors import ConfigError
from tests.boards.twin.conftest import loads, spec_of

SEEDS = np.arange(1, 201, dtype=np.uint64)
BUSY = DriftSpec(0.3, 0.4, 10.0, 0.5, 0.3)


def test_a_steady_world_changes_nothing() -> None:
    drift = drift_at(DriftSpec(), SEEDS, np.full(200, 50, np.int64))
    load = loads(200)
    assert drift.apply(load).gpu_gcycle == pytest.approx(load.gpu_gcycle)
    assert not drift.ambient_k.any()


def test_drift_stays_within_its_bounds_and_really_moves() -> None:
    for window in (0, 30, 99, 500):
        drift = drift_at(BUSY, SEEDS, np.full(200, window, np.int64))
        assert (drift.work >= 0.7 * 0.6).all()
        assert (drift.work <= 1.3 * 1.4).all()
        assert (np.abs(drift.ambient_k) <= 10.0).all()
        assert (drift.gpu_share < 0.3).all()
        assert 0.3 < (drift.gpu_share > 0).mean() < 0.7
    assert drift.work.std() > 0.1


def test_drift_of_a_job_does_not_depend_on_the_batch() -> None:
    many = drift_at(BUSY, SEEDS, np.full(200, 42, np.int64))
    alone = drift_at(BUSY, SEEDS[7:8], np.full(1, 42, np.int64))
    assert alone.work[0] == many.work[7]
    assert alone.memory_share[0] == many.memory_share[7]


@pytest.mark.parametrize("bad", [{"work_ramp": 1.0}, {"corunner_share": 0.95}, {"horizon": 0}])
def test_impossible_drifts_are_refused(bad: dict[str, float]) -> None:
    with pytest.raises(ConfigError, match="drift"):
        DriftSpec(**bad)


def test_phases_change_what_runs() -> None:
    load, spec = loads(3), spec_of("jetson_agx_orin_64gb")
    phase = np.array([TRAIN, EVALUATE, CHECKPOINT])
    now = in_phase(load, phase, stall_s=2.0)
    assert now.gpu_gcycle[0] == pytest.approx(load.gpu_gcycle[0])
    assert now.gpu_gcycle[1, 0] == load.gpu_gcycle[1, 0]
    assert not now.gpu_gcycle[1, 1:].any()
    assert 0 < now.soc_j[1] < load.soc_j[1]
    times = step_time(now, np.ones(3), np.ones(3), np.ones(3), spec)
    assert times.time_s[2] == pytest.approx(2.0)


def test_a_schedule_counts_what_fell_due() -> None:
    schedule = Schedule(*(np.array(v, float) for v in ([10, 0], [4, 0], [25, 0], [3, 0])))
    evals, checkpoints = schedule.between(np.array([5.0, 5.0]), np.array([50.0, 50.0]))
    assert evals.tolist() == [5, 0]
    assert checkpoints.tolist() == [2, 0]
