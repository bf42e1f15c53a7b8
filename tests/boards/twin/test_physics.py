from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlgov.boards.twin import Load, Silicon, TwinSpec, beside, load_of, step_cost
from rlgov.boards.twin.physics import over_phases, rail_watts, smooth_max, step_time, total_watts
from rlgov.work import make_work
from tests.boards.twin.conftest import loads, spec_of

ORIN = spec_of("jetson_agx_orin_64gb")
GHZ = st.floats(0.1, 3.5)
SEEDS = st.integers(0, 10_000)


def clocks(n: int, gpu: float, cpu: float, emc: float) -> tuple[np.ndarray, ...]:
    return np.full(n, gpu), np.full(n, cpu), np.full(n, emc)


@given(a=st.floats(1e-6, 1e3), b=st.floats(1e-6, 1e3), q=st.floats(1.0, 20.0))
def test_smooth_max_lies_between_the_larger_and_the_sum(a: float, b: float, q: float) -> None:
    value = float(smooth_max(np.array(a), np.array(b), q))
    assert max(a, b) <= value * (1 + 1e-12)
    assert value <= (a + b) * (1 + 1e-12)


def test_smooth_max_at_its_limits() -> None:
    a, b = np.array([3.0, 3.0, 0.0]), np.array([4.0, 0.0, 0.0])
    assert smooth_max(a, b, 2.0) == pytest.approx([5.0, 3.0, 0.0])
    assert smooth_max(a, b, 1e4)[0] == pytest.approx(4.0, rel=1e-3)


@given(seed=SEEDS, gpu=GHZ, cpu=GHZ, emc=GHZ, factor=st.floats(1.0, 3.0), knob=st.integers(0, 2))
def test_a_faster_clock_never_makes_a_step_longer(
    seed: int, gpu: float, cpu: float, emc: float, factor: float, knob: int
) -> None:
    load = loads(8, seed)
    slow = [gpu, cpu, emc]
    fast = [f * (factor if k == knob else 1.0) for k, f in enumerate(slow)]
    before = step_time(load, *clocks(8, *slow), ORIN).time_s
    after = step_time(load, *clocks(8, *fast), ORIN).time_s
    assert (after <= before * (1 + 1e-12)).all()


@given(seed=SEEDS, gpu=GHZ, cpu=GHZ, emc=GHZ, celsius=st.floats(0.0, 100.0))
def test_power_is_positive_and_rails_hold_all_of_it(
    seed: int, gpu: float, cpu: float, emc: float, celsius: float
) -> None:
    load = loads(8, seed)
    cost = step_cost(load, *clocks(8, gpu, cpu, emc), np.full(8, celsius), ORIN)
    assert all((watts > 0).all() for watts in cost.component_w.values())
    rails = rail_watts(cost.component_w, ORIN)
    total = total_watts(cost.component_w, ORIN)
    assert rails.sum(-1) == pytest.approx(total)  # this board's total is the sum of its rails
    assert (total >= sum(cost.component_w.values()) * (1 - 1e-12)).all()


@given(seed=SEEDS, gpu=GHZ, cpu=GHZ, emc=GHZ)
def test_loads_are_shares(seed: int, gpu: float, cpu: float, emc: float) -> None:
    cost = step_cost(loads(8, seed), *clocks(8, gpu, cpu, emc), np.full(8, 45.0), ORIN)
    for busy in (cost.loads.gpu, cost.loads.cpu, cost.loads.emc):
        assert ((busy >= 0) & (busy <= 1 + 1e-9)).all()
    assert (cost.loads.cores_busy <= ORIN.cpu.cores).all()


def test_twice_the_work_takes_at_most_twice_as_long_and_longer_than_once() -> None:
    load = loads(64)
    once = step_time(load, *clocks(64, 1.0, 1.0, 2.0), ORIN).time_s
    twice = step_time(load.scaled(2.0), *clocks(64, 1.0, 1.0, 2.0), ORIN).time_s
    assert (twice > once).all()
    assert (twice <= 2 * once).all()


def test_leakage_and_other_silicon_cost_more() -> None:
    load = loads(16)
    at = clocks(16, 1.3, 2.2, 3.199)

    def total(celsius: float, silicon: Silicon) -> np.ndarray:
        cost = step_cost(load, *at, np.full(16, celsius), ORIN, silicon)
        return total_watts(cost.component_w, ORIN)

    cool = total(45.0, Silicon())
    assert (total(85.0, Silicon()) > cool).all()
    for name in ("dynamic", "leak", "voltage", "memory", "base"):
        assert (total(45.0, Silicon(**{name: 1.2})) > cool).all(), name


def test_a_co_runner_slows_a_job_and_draws_no_less() -> None:
    load = loads(32)
    crowded = beside(load, gpu_share=0.3, memory_share=0.3, cpu_share=0.3)
    at = (*clocks(32, 1.3, 2.2, 3.199), np.full(32, 45.0), ORIN)
    alone, shared = step_cost(load, *at), step_cost(crowded, *at)
    assert (shared.time_s > alone.time_s).all()
    joules = [total_watts(c.component_w, ORIN) * c.time_s for c in (alone, shared)]
    assert (joules[1] > joules[0]).all()


def test_counted_work_becomes_cycles_of_the_boards_own_units() -> None:
    work = make_work(flop=(1e12, 0, 0), byte=(0, 1e9, 0), launch=(0, 0, 1e3))
    load = load_of(work, ORIN)
    gpu, memory = ORIN.gpu, ORIN.memory
    assert load.gpu_gcycle[0, 0] == pytest.approx(1e3 / (gpu.flop_per_cycle * gpu.efficiency))
    assert load.mem_gcycle[0, 1] == pytest.approx(1 / (memory.byte_per_cycle * memory.efficiency))
    assert load.host_gcycle[0, 2] == pytest.approx(1e-3 * ORIN.cpu.launch_kcycle)
    assert load.soc_j[0] == pytest.approx(1e-3 * memory.soc_byte_pj)


def test_a_batch_is_its_jobs(orin: TwinSpec) -> None:
    load = loads(20)
    batch = step_cost(load, *clocks(20, 0.9, 1.5, 2.1), np.full(20, 60.0), orin)
    for i in range(20):
        one: Load = load.take(slice(i, i + 1))
        alone = step_cost(one, *clocks(1, 0.9, 1.5, 2.1), np.full(1, 60.0), orin)
        assert alone.time_s[0] == pytest.approx(batch.time_s[i], rel=1e-12)
    assert over_phases(load.gpu_j) == pytest.approx(load.gpu_j.sum(-1))
