from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from rlgov.boards.base import Reading
from rlgov.boards.sampler import Sampler
from rlgov.boards.twin.board import TwinBoard
from rlgov.errors import BoardError
from rlgov.metering import Meter
from tests.boards.twin.conftest import spec_of

PATIENCE_S = 30.0


class Scripted(TwinBoard):
    """Reads 10 W once a call, 0.1 s apart, except where ``broken`` says so."""

    def __init__(self, broken: Callable[[int], bool] = lambda _n: False) -> None:
        super().__init__(spec_of("jetson_agx_orin_64gb"))
        self.calls = 0
        self.t_s = 0.0
        self.broken = broken
        self.enough = threading.Event()

    def now_s(self) -> float:
        return self.t_s

    def read(self) -> Reading:
        self.calls += 1
        self.t_s += 0.1
        if self.calls >= 100:
            self.enough.set()
        if self.broken(self.calls):
            raise BoardError("the sensor's daemon has gone")
        return Reading(self.t_s, {}, 10.0)


def awake() -> float:
    return 0.0


def test_every_reading_is_handed_over_once_and_in_order() -> None:
    board = Scripted()
    with Sampler(board, 1e-4, awake) as sampler:
        assert board.enough.wait(PATIENCE_S)
        first = sampler.drain()
    second = sampler.drain()
    times = [reading.t_s for reading in first + second]
    assert times == sorted(set(times))
    assert len(times) == board.calls
    assert sampler.drain() == []
    assert not [t for t in threading.enumerate() if t.name == "rlgov-sampler"]


def test_case_t17_a_source_that_dies_and_returns_leaves_a_gap_without_energy() -> None:
    """Case T17: readings 50 to 80 fail; energy is null there and known on both sides."""
    board = Scripted(lambda n: 50 <= n < 80)
    sampler = Sampler(board, 0.1, awake)
    meter = Meter((), 1.0)
    for n in range(1, 121):
        assert sampler.sample() == (not 50 <= n < 80)
        if n == 70:
            assert sampler.stale
            assert sampler.last_error is not None
        for reading in sampler.drain():
            meter.add(reading)
    assert (sampler.failures, sampler.last_error, sampler.stale) == (30, None, False)
    assert meter.energy(1.0, 4.0).total_j == pytest.approx(30.0)
    assert meter.energy(9.0, 11.0).total_j == pytest.approx(20.0)
    gap = meter.energy(4.0, 9.0)
    assert gap.total_j is None
    assert "gap" in gap.quality["total"]


def test_case_t15_age_counts_from_the_reading_and_not_from_the_call() -> None:
    board = Scripted()
    sampler = Sampler(board, 0.1, awake)
    assert sampler.stale
    assert sampler.age_s is None
    sampler.sample()
    assert not sampler.stale
    board.t_s += 60.0
    assert sampler.age_s == pytest.approx(60.0)
    assert sampler.stale


def test_case_t20_wall_clock_steps_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Case T20: three hours forward and back; durations and joules are of the monotonic clock."""
    board = Scripted()
    sampler = Sampler(board, 0.1, awake)
    meter = Meter((), 1.0)
    for shift in (0.0, 10800.0, -10800.0):
        monkeypatch.setattr("time.time", lambda shift=shift: 1e9 + shift)
        for _ in range(20):
            sampler.sample()
    for reading in sampler.drain():
        meter.add(reading)
    assert meter.energy(0.1, 6.0).total_j == pytest.approx(59.0)


def test_case_t20_a_gap_of_165_s_is_not_bridged_and_sleep_is_noticed() -> None:
    asleep = [0.0]
    board = Scripted()
    sampler = Sampler(board, 0.1, lambda: asleep[0])
    meter = Meter((), 2.0)
    for n in range(20):
        if n == 10:
            board.t_s += 165.0
            asleep[0] += 165.0
        sampler.sample()
    for reading in sampler.drain():
        meter.add(reading)
    assert sampler.suspends == 1
    assert meter.energy(0.1, board.t_s).total_j is None
    assert meter.energy(0.1, 0.95).total_j == pytest.approx(8.5)


def test_the_kernels_own_clocks_are_understood(tmp_path: Path) -> None:
    sampler = Sampler(Scripted(), 0.1)
    assert sampler.sample()
    assert sampler.suspends == 0
