from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlgov.boards.base import AS_FOUND, Setting
from rlgov.boards.twin import TwinModel, load_of
from rlgov.boards.twin.board import TwinBoard
from rlgov.boards.twin.physics import Load
from rlgov.errors import ConfigError
from rlgov.work import make_work
from tests.boards.twin.conftest import board_names, spec_of
from tests.conformance.board_contract import BoardContract

ORIN = spec_of("jetson_agx_orin_64gb")


def load(gpu_tflop: float = 0.3, gigabyte: float = 2.0) -> Load:
    """A fine-tuning step of some 0.2 s."""
    flop = np.array([1.0, 2.0, 0.02]) * gpu_tflop * 1e12 / 3
    byte = np.array([1.0, 2.0, 1.0]) * gigabyte * 1e9 / 4
    return load_of(make_work(flop=flop, byte=byte, launch=[80, 120, 40]), ORIN)


@pytest.mark.parametrize("name", board_names())
def test_every_packaged_board_can_be_made_and_run(name):
    board = TwinBoard(spec_of(name))
    end = board.advance(load())
    assert end == board.now_s() > 0


class TestContract(BoardContract):
    def make_board(self):
        return TwinBoard(ORIN, seed=3)


class TestCappedContract(BoardContract):
    def make_board(self):
        return TwinBoard(ORIN, seed=3, mode="30W")


class TestTime:
    def test_only_emulated_time_passes(self):
        board = TwinBoard(ORIN)
        assert board.now_s() == board.now_s() == 0.0

    def test_a_step_takes_what_the_model_says_give_or_take_its_noise(self):
        board = TwinBoard(ORIN, seed=4)
        work = load()
        board.apply(Setting(gpu=816, cpu=1958.4, emc=3199))
        board.advance(work)
        ends = [board.advance(work) for _ in range(300)]
        steps = np.diff(ends)
        seconds, _ = TwinModel(ORIN).grid_cost(work, board._targets(), np.array([60.0]))
        assert steps.mean() == pytest.approx(seconds[0, 0], rel=0.005)
        assert 0.01 < steps.std() / steps.mean() < 0.03

    @settings(max_examples=30)
    @given(st.lists(st.tuples(st.floats(0, 0.3), st.floats(0.001, 1.0)), max_size=8))
    def test_it_never_runs_backwards_whatever_follows_what(self, parts):
        """Long steps after short pauses: the clocks are still those of the idle board."""
        board = TwinBoard(ORIN)
        for pause_s, tflop in parts:
            before = board.now_s()
            assert board.idle(pause_s) == pytest.approx(before + pause_s)
            work = load(tflop)
            seconds, _ = board._model.grid_cost(
                work, np.array([[306.0, 115.2, 204.0]]), np.array([60.0])
            )
            took = board.advance(work) - (before + pause_s)
            assert 0 < took < seconds[0, 0] * 1.2 + 0.01

    def test_a_pause_is_idle(self):
        board = TwinBoard(ORIN)
        for _ in range(30):
            board.advance(load())
        busy = board.read().total_w
        board.idle(5.0)
        assert board.read().total_w < busy / 2
        assert board.idle(-1.0) == board.now_s()

    def test_slower_clocks_take_longer_and_draw_less(self):
        fast, slow = TwinBoard(ORIN, seed=1), TwinBoard(ORIN, seed=1)
        slow.apply(Setting(gpu=408))
        for board in (fast, slow):
            for _ in range(30):
                board.advance(load())
        assert slow.now_s() > 1.5 * fast.now_s()
        assert slow.read().power_w["VDD_GPU_SOC"] < fast.read().power_w["VDD_GPU_SOC"]

    def test_the_same_seed_is_the_same_run(self):
        runs = []
        for seed in (5, 5, 6):
            board = TwinBoard(ORIN, seed=seed)
            for _ in range(10):
                board.advance(load())
            runs.append((board.now_s(), board.drain()))
        assert runs[0] == runs[1]
        assert runs[0] != runs[2]


class TestReadings:
    @pytest.fixture
    def readings(self):
        board = TwinBoard(ORIN, seed=2)
        for _ in range(40):
            board.advance(load())
        return board.drain()

    def test_one_at_every_refresh(self, readings):
        gaps = [b.t_s - a.t_s for a, b in pairwise(readings)]
        assert gaps == pytest.approx([ORIN.sensors.refresh_s] * len(gaps))

    def test_watts_come_in_the_sensors_steps(self, readings):
        for reading in readings:
            for watts in reading.power_w.values():
                steps = watts / ORIN.sensors.quantum_w
                assert steps == pytest.approx(round(steps), abs=1e-6)

    def test_the_total_is_the_sum_of_its_rails_and_no_more(self, readings):
        for reading in readings:
            rails = sum(reading.power_w[rail] for rail in ORIN.total_rails)
            assert reading.total_w == pytest.approx(rails)

    def test_each_is_handed_over_once(self):
        board = TwinBoard(ORIN)
        board.idle(1.0)
        assert len(board.drain()) >= 10
        assert board.drain() == []
        assert board.read().t_s == pytest.approx(1.0)

    def test_sensors_lag_behind_the_load(self):
        board = TwinBoard(ORIN, seed=2)
        board.idle(2.0)
        idle = board.read().total_w
        for _ in range(40):
            board.advance(load())
        watts = [r.total_w for r in board.drain() if r.t_s > 2.0]
        settled = np.mean(watts[-20:])
        early = np.mean([abs(w - settled) for w in watts[:2]])
        assert early > 0.5 * (settled - idle)


class TestStates:
    def test_a_clock_above_the_ceiling_is_refused_and_nothing_changes(self):
        board = TwinBoard(ORIN, mode="30W")
        assert board.knob("gpu").allowed_mhz[-1] == 612
        board.apply(Setting(gpu=510))
        with pytest.raises(ConfigError, match="above the as-found maximum 612"):
            board.apply(Setting(gpu=714))
        assert board.capture().values["gpu"] == repr(510)

    def test_a_mode_caps_what_the_board_runs_at_as_found(self):
        board = TwinBoard(ORIN, mode="30W")
        for _ in range(10):
            board.advance(load())
        assert board.read().clocks_mhz["gpu"] <= 612

    def test_as_found_is_not_pinned_at_the_maximum(self):
        """The board's own governors lower what a light job does not need; pins do not."""
        light = replace(load(0.02, 0.1), fixed_s=np.array(0.3))
        watts = {}
        for name in ("found", "pinned"):
            board = TwinBoard(ORIN, seed=7)
            top = {k.name: k.allowed_mhz[-1] for k in board.knobs}
            board.apply(AS_FOUND if name == "found" else Setting(**top))
            while board.now_s() < 10.0:
                board.advance(light)
            watts[name] = np.mean([r.total_w for r in board.drain() if r.t_s > 5])
            if name == "pinned":
                assert board.read().clocks_mhz == pytest.approx(top)
            else:
                assert board.read().clocks_mhz["cpu"] < top["cpu"]
        assert watts["found"] < watts["pinned"]


class TestBest:
    @pytest.mark.parametrize("budget", [0.0, 0.1, 0.5])
    @pytest.mark.parametrize("work", [load(0.5, 0.5), load(0.02, 5.0)], ids=["flops", "bytes"])
    def test_it_is_what_looking_at_every_setting_finds(self, budget, work):
        board = TwinBoard(ORIN, mode="50W")
        for _ in range(5):
            board.advance(work)
        heat = board._state.temperature_c
        found = cost(board, work, AS_FOUND, heat)
        gpu, cpu, emc = ([*k.allowed_mhz, None] for k in board.knobs)
        costs = [
            cost(board, work, Setting(g, c, e), heat)
            for g in gpu
            for c in [*cpu[::6], cpu[-2], None]
            for e in emc
        ]
        allowed = [j for s, j in costs if s <= found[0] * (1 + budget) * (1 + 1e-9)]
        best = board.best_targets(work, budget)[0]
        setting = Setting(*(None if np.isnan(v) else float(v) for v in best))
        seconds, joules = cost(board, work, setting, heat)
        assert seconds <= found[0] * (1 + budget) * (1 + 1e-6)
        assert joules <= min(allowed) * (1 + 1e-9)
        assert joules <= found[1] * (1 + 1e-9)


def cost(board: TwinBoard, work: Load, setting: Setting, heat: np.ndarray) -> tuple[float, float]:
    """Noise-free seconds and joules a step of one setting, asked for alone."""
    targets = np.array([[np.nan if v is None else v for v in setting.values()]])
    seconds, joules = board._model.grid_cost(work, targets, heat)
    return float(seconds[0, 0]), float(joules[0, 0])
