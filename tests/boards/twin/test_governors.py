from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from rlgov.boards.twin import Load, TwinModel, TwinSpec
from rlgov.boards.twin.governors import seen_load, snap_up
from tests.boards.twin.conftest import loads


def job(**changes: float) -> Load:
    """One job whose costs are all small but for ``changes``."""
    names = ("gpu_gcycle", "mem_gcycle", "host_gcycle", "gpu_j")
    values = {name: np.full((1, 3), changes.get(name, 1e-6)) for name in names}
    rest = ("soc_j", "mem_j", "loader_gcycle", "loader_workers", "fixed_s", "spin")
    return Load(**values, **{name: np.array([changes.get(name, 0.0)]) for name in rest})


def rest_mhz(spec: TwinSpec, load: Load) -> np.ndarray:
    state = TwinModel(spec).start(load, np.ones(1, np.uint64))
    return state.governor_ghz[0] * 1e3


def test_a_table_is_climbed_to_the_entry_at_or_above() -> None:
    levels = np.array([0.3, 0.6, 0.9])
    assert snap_up(np.array([0.1, 0.3, 0.31, 0.9, 2.0]), levels) == pytest.approx(
        [0.3, 0.3, 0.6, 0.9, 0.9]
    )


def test_a_gpu_bound_job_runs_at_the_ceiling(orin: TwinSpec) -> None:
    assert rest_mhz(orin, job(gpu_gcycle=0.3))[0] == orin.knobs["gpu"].levels_mhz[-1]


def test_a_gpu_that_waits_all_the_time_is_slowed(orin: TwinSpec) -> None:
    # Kernels of a millisecond, then a millisecond of input: too fast for the governor to follow.
    waiting = job(gpu_gcycle=3e-4, fixed_s=2e-3)
    assert rest_mhz(orin, waiting)[0] < 0.7 * orin.knobs["gpu"].levels_mhz[-1]


def test_long_busy_stretches_are_served_at_full_clock(orin: TwinSpec) -> None:
    # Half of the time idle as well, but in stretches of seconds.
    waiting = job(gpu_gcycle=1.0, fixed_s=2.5)
    assert rest_mhz(orin, waiting)[0] == orin.knobs["gpu"].levels_mhz[-1]


def test_the_cpu_follows_its_thread(orin: TwinSpec) -> None:
    busy, lazy = job(host_gcycle=0.5), job(gpu_gcycle=0.3)
    assert rest_mhz(orin, busy)[1] == orin.knobs["cpu"].levels_mhz[-1]
    assert rest_mhz(orin, lazy)[1] == pytest.approx(orin.governors.cpu_floor_mhz)
    assert rest_mhz(orin, replace(lazy, spin=np.ones(1)))[1] > 2000


def test_memory_follows_traffic(orin: TwinSpec) -> None:
    assert rest_mhz(orin, job(mem_gcycle=1.0))[2] == orin.knobs["emc"].levels_mhz[-1]
    assert rest_mhz(orin, job(fixed_s=1.0))[2] < orin.knobs["emc"].levels_mhz[-1]


def test_seen_load_lies_between_the_mean_and_the_busiest_stretch() -> None:
    mean = np.array([0.5])
    busy, stretch = np.array([[1.0, 0.0, 0.0]]), np.array([[1.0, 0.5, 0.5]])
    assert seen_load(mean, busy, stretch, 1e-9)[0] == pytest.approx(1.0)
    assert seen_load(mean, busy, stretch, 1e9)[0] == pytest.approx(0.5)
    assert 0.5 < seen_load(mean, busy, stretch, 1.0)[0] < 1.0


def test_governors_come_to_rest(orin: TwinSpec) -> None:
    load = loads(200)
    model = TwinModel(orin)
    state = model.start(load, np.arange(200, dtype=np.uint64))
    auto = np.full((200, 3), np.nan)
    _, after = model.window(state, auto, load, 5, 5.0)
    moved = (np.abs(after.governor_ghz - state.governor_ghz) > 1e-6).any(-1)
    assert moved.mean() < 0.05
