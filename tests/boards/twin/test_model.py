from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest

from rlgov.boards.twin import Silicon, TwinModel, TwinSpec, TwinState
from rlgov.boards.twin.sensing import Measured
from tests.boards.twin.conftest import loads

N = 24


def seeds(n: int) -> np.ndarray:
    return np.arange(1, n + 1, dtype=np.uint64)


def pinned(model: TwinModel, n: int, gpu: int, cpu: int, emc: int) -> np.ndarray:
    levels = [model.levels_ghz[k][i] * 1e3 for k, i in enumerate((gpu, cpu, emc))]
    return np.tile(levels, (n, 1))


def one(state: TwinState, i: int) -> TwinState:
    return TwinState(**{f.name: getattr(state, f.name)[i : i + 1] for f in fields(TwinState)})


def test_a_batch_steps_as_its_jobs_do_alone(orin: TwinSpec) -> None:
    rng = np.random.default_rng(3)
    load, silicon = loads(N), Silicon.draw(N, 0.2, rng)
    model = TwinModel(orin, silicon)
    state = model.start(load, seeds(N))
    targets = [np.full((N, 3), np.nan), pinned(model, N, 2, 10, 2), pinned(model, N, -1, -1, -1)]
    for target in targets:
        outcome, after = model.window(state, target, load, 5, 5.0)
        for i in range(0, N, 5):
            part = slice(i, i + 1)
            alone = TwinModel(orin, silicon.take(part))
            single, _ = alone.window(one(state, i), target[part], load.take(part), 5, 5.0)
            assert single.energy_j[0] == pytest.approx(outcome.energy_j[i], rel=1e-6)
            for f in fields(Measured):
                lone, among = getattr(single.measured, f.name), getattr(outcome.measured, f.name)
                assert lone[0] == pytest.approx(among[i], rel=1e-6, nan_ok=True), f.name
        state = after


def test_noise_is_the_same_whatever_the_policy_did_before(orin: TwinSpec) -> None:
    load = loads(N)
    model = TwinModel(orin)
    begin = model.start(load, seeds(N))
    ratios = []
    for first in (pinned(model, N, 0, 5, 3), pinned(model, N, 8, 20, 3)):
        _, state = model.window(begin, first, load, 5, 5.0)
        outcome, _ = model.window(state, pinned(model, N, 5, 20, 3), load, 5, 5.0)
        ratios.append(outcome.measured.step_time_s / outcome.true_step_time_s)
    assert ratios[0] == pytest.approx(ratios[1], rel=1e-9)


def test_measured_values_scatter_about_the_truth(orin: TwinSpec) -> None:
    load = loads(2000)
    model = TwinModel(orin)
    state = model.start(load, seeds(2000))
    target = pinned(model, 2000, 5, 20, 3)
    for _ in range(2):
        outcome, state = model.window(state, target, load, 5, 5.0)
    ratio = outcome.measured.step_time_s / outcome.true_step_time_s
    assert abs(ratio.mean() - 1) < 5e-4
    assert 1e-3 < ratio.std() < 1e-2
    watts = outcome.measured.total_w * outcome.true_step_time_s / outcome.true_step_j
    assert abs(watts.mean() - 1) < 2e-3
    assert watts.std() > 1e-3


def test_the_grid_is_what_windows_settle_to(orin: TwinSpec) -> None:
    load = loads(N)
    model = TwinModel(orin)
    state = model.start(load, seeds(N), warm=1.0)
    target = pinned(model, N, 6, 20, 2)
    for _ in range(300):
        outcome, state = model.window(state, target, load, 5, 5.0)
    time_s, joules = model.grid_cost(load, target[:1], state.temperature_c)
    assert outcome.true_step_time_s == pytest.approx(time_s[:, 0], rel=1e-9)
    assert outcome.true_step_j == pytest.approx(joules[:, 0], rel=1e-6)


def test_a_change_costs_its_delay(orin: TwinSpec) -> None:
    load = loads(N)
    model = TwinModel(orin)
    state = model.start(load, seeds(N))
    fast, slow = pinned(model, N, -1, -1, -1), pinned(model, N, 0, -1, -1)
    before, state = model.window(state, fast, load, 5, 5.0)
    changed, after = model.window(state, slow, load, 5, 5.0)
    again, _ = model.window(after, slow, load, 5, 5.0)
    # During the delay the old, faster clock still runs and gets through more of the steps.
    speedup = changed.true_step_time_s / before.true_step_time_s
    gained = orin.knobs["gpu"].delay_s * (speedup - 1.0)
    assert (gained > 0).all()
    assert again.duration_s - changed.duration_s == pytest.approx(gained, rel=1e-6)


def test_heat_rises_to_its_steady_state_and_costs_leakage(orin: TwinSpec) -> None:
    load = loads(N)
    model = TwinModel(orin)
    state = model.start(load, seeds(N), warm=0.0)
    target = pinned(model, N, -1, -1, -1)
    first, state = model.window(state, target, load, 5, 5.0)
    for _ in range(100):
        last, state = model.window(state, target, load, 5, 30.0)
    steady = orin.thermal.resistance_k_per_w * last.true_step_j / last.true_step_time_s
    assert state.temperature_c == pytest.approx(model.ambient_c(N) + steady, abs=0.1)
    full = last.measured.clocks_mhz[:, 0] >= orin.knobs["gpu"].levels_mhz[-1] - 1e-6
    assert full.any()
    assert (last.true_step_j > first.true_step_j)[full].all()


def test_a_hot_board_throttles_and_a_cool_one_does_not(orin: TwinSpec) -> None:
    load = loads(N)
    hot = replace(orin, thermal=replace(orin.thermal, ambient_c=97.0))
    for spec, throttled in ((orin, False), (hot, True)):
        model = TwinModel(spec)
        state = model.start(load, seeds(N), warm=0.0)
        outcome, _ = model.window(state, pinned(model, N, -1, -1, -1), load, 5, 5.0)
        below = outcome.measured.clocks_mhz[:, 0] < model.ceiling_ghz[0] * 1e3 - 1
        assert (below == throttled).all()


def test_a_modes_caps_bound_what_is_found(orin: TwinSpec) -> None:
    load = loads(N)
    model = TwinModel(orin, ceiling_mhz=orin.ceilings("30W"))
    state = model.start(load, seeds(N))
    assert (state.governor_ghz[:, 0] <= 0.612 + 1e-9).all()
    free = TwinModel(orin).start(load, seeds(N))
    assert free.governor_ghz[:, 0].max() > 1.0


def test_memory_that_can_only_be_capped_still_follows_its_governor(orin: TwinSpec) -> None:
    knobs = dict(orin.knobs) | {"emc": replace(orin.knobs["emc"], mode="cap")}
    model = TwinModel(replace(orin, knobs=knobs))
    load = loads(N)
    quiet = replace(load, mem_gcycle=load.mem_gcycle * 1e-3, gpu_gcycle=load.gpu_gcycle * 1e-3)
    state = model.start(quiet, seeds(N))
    outcome, _ = model.window(state, pinned(model, N, -1, -1, -1), quiet, 5, 5.0)
    assert (outcome.measured.clocks_mhz[:, 2] < 3199).any()


@pytest.mark.parametrize("limit_w", [25.0, 35.0])
def test_a_power_limit_is_held_by_the_clock(orin: TwinSpec, limit_w: float) -> None:
    load = loads(N)
    free = TwinModel(orin)
    capped = TwinModel(orin, power_limit_w=limit_w)
    target = pinned(free, 1, -1, -1, -1)
    temperature = np.full(N, 60.0)
    time_free, joules_free = free.grid_cost(load, target, temperature)
    time_s, joules = capped.grid_cost(load, target, temperature)
    floor_t, floor_j = free.grid_cost(load, pinned(free, 1, 0, -1, -1), temperature)
    over = (joules_free / time_free)[:, 0] > limit_w
    assert over.any()
    watts, floor_w = (joules / time_s)[:, 0], (floor_j / floor_t)[:, 0]
    assert (watts <= np.maximum(limit_w, floor_w) + 1e-9).all()
    assert (time_s >= time_free * (1 - 1e-12)).all()
    assert (time_s[over] > time_free[over]).all()


def test_a_power_limit_out_of_reach_changes_nothing(orin: TwinSpec) -> None:
    load = loads(N)
    free, capped = TwinModel(orin), TwinModel(orin, power_limit_w=1e4)
    target = pinned(free, 1, -1, -1, -1)
    costs = [model.grid_cost(load, target, np.full(N, 60.0)) for model in (free, capped)]
    assert costs[0][0] == pytest.approx(costs[1][0])
    assert costs[0][1] == pytest.approx(costs[1][1])


def test_a_sharp_limit_is_met_where_the_gpu_never_waits(orin: TwinSpec) -> None:
    load = loads(N)
    load = replace(load, host_gcycle=load.host_gcycle * 1e-4, fixed_s=load.fixed_s * 1e-4)
    load = replace(load, loader_gcycle=load.loader_gcycle * 1e-4)
    sharp = replace(orin, power_softness=200.0)
    target = pinned(TwinModel(orin), 1, -1, -1, -1)
    costs = [
        TwinModel(sharp, power_limit_w=w).grid_cost(load, target, np.full(N, 60.0))
        for w in (35.0, 1e4)
    ]
    watts, free = (joules[:, 0] / time_s[:, 0] for time_s, joules in costs)
    tight = free > 40.0
    assert tight.any()
    floor_t, floor_j = TwinModel(orin).grid_cost(
        load, pinned(TwinModel(orin), 1, 0, -1, -1), np.full(N, 60.0)
    )
    reachable = tight & (floor_j[:, 0] / floor_t[:, 0] < 34.0)
    assert watts[reachable] == pytest.approx(35.0, rel=0.02)


def test_a_limit_of_its_own_for_each_board(orin: TwinSpec) -> None:
    load = loads(2).take(np.array([0, 0]))
    model = TwinModel(orin, power_limit_w=np.array([25.0, 400.0]))
    time_s, _ = model.grid_cost(load, pinned(model, 1, -1, -1, -1), np.full(2, 60.0))
    assert time_s[0, 0] > time_s[1, 0]
