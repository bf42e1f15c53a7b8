from __future__ import annotations

import numpy as np
import pytest

from rlgov.boards.base import Knob
from rlgov.envs.guard import BudgetRule, Guard, GuardSpec, RateRule, SensorRule
from rlgov.envs.memory import SLIDING, Memory
from rlgov.errors import ConfigError
from rlgov.reward import Preference
from tests.envs.world import window

TOP = np.array([1200.0, 2000.0, 3200.0])
KNOBS = [
    Knob("gpu", (300.0, 600.0, 900.0, 1200.0)),
    Knob("cpu", (500.0, 1000.0, 2000.0)),
    Knob("emc", (800.0, 3200.0)),
]
WANTED = Preference.of("energy", 0.1)
AUTO = np.full((1, 3), np.nan)


def started() -> Memory:
    memory = Memory(1, TOP)
    memory.begin(np.ones(1, bool), window())
    return memory


def decide(memory: Memory, guard: Guard, time_s: float, clocks: tuple[float, float, float]) -> None:
    seen = memory.relative(window(time_s=time_s, clocks=clocks), np.zeros((1, 3), bool))
    memory.remember(seen, np.zeros(1), WANTED.budget)
    guard.learn(seen, WANTED)


def test_a_setting_at_or_below_one_that_broke_the_budget_is_replaced() -> None:
    memory, guard = started(), Guard([BudgetRule(1)])
    decide(memory, guard, 1.3, (600.0, 1000.0, 3200.0))
    memory.excess[:] = 0.0  # only this rule's first reason is looked at
    lower = guard.rule(np.array([[600.0, 500.0, 3200.0]]), memory, WANTED)
    other = guard.rule(np.array([[900.0, 500.0, 800.0]]), memory, WANTED)
    assert np.isnan(lower.targets_mhz).all()
    assert lower.acts["budget"].tolist() == [True]
    assert other.targets_mhz.tolist() == [[900.0, 500.0, 800.0]]
    assert other.acts["budget"].tolist() == [False]


def test_a_window_within_the_budget_forbids_nothing() -> None:
    memory, guard = started(), Guard([BudgetRule(1)])
    decide(memory, guard, 1.09, (600.0, 1000.0, 3200.0))
    assert guard.rule(np.array([[300.0, 500.0, 800.0]]), memory, WANTED).acts["budget"].sum() == 0


def test_a_run_that_fell_behind_goes_as_found_until_it_has_caught_up() -> None:
    memory, guard = started(), Guard([BudgetRule(1, window_margin=10.0)])
    wanted = np.array([[1200.0, 2000.0, 3200.0]])
    decide(memory, guard, 1.1 + 1.0, (1200.0, 2000.0, 3200.0))
    assert np.isnan(guard.rule(wanted, memory, WANTED).targets_mhz).all()
    for _ in range(SLIDING):
        decide(memory, guard, 1.0, (1200.0, 2000.0, 3200.0))
    assert guard.rule(wanted, memory, WANTED).targets_mhz.tolist() == wanted.tolist()


def test_what_is_as_found_already_is_no_intervention() -> None:
    memory, guard = started(), Guard([BudgetRule(1)])
    decide(memory, guard, 5.0, (1200.0, 2000.0, 3200.0))
    assert not guard.rule(AUTO, memory, WANTED).acts["budget"].any()


def test_a_new_episode_forgets_the_old_ones_slow_windows() -> None:
    memory, guard = started(), Guard([BudgetRule(1)])
    decide(memory, guard, 1.3, (600.0, 1000.0, 3200.0))
    memory.begin(np.ones(1, bool), window())
    guard.begin(np.ones(1, bool))
    assert not guard.rule(np.array([[300.0, 500.0, 800.0]]), memory, WANTED).acts["budget"].any()


def test_a_clock_falls_in_steps_and_rises_at_once() -> None:
    memory, guard = started(), Guard([RateRule(KNOBS, max_drop=0.5)])
    down = guard.rule(np.array([[300.0, 1000.0, 3200.0]]), memory, WANTED)
    np.testing.assert_array_equal(down.targets_mhz, [[600.0, 1000.0, 3200.0]])
    assert down.acts["rate"].tolist() == [True]
    decide(memory, guard, 1.0, (300.0, 500.0, 800.0))
    up = guard.rule(TOP[None], memory, WANTED)
    assert up.targets_mhz.tolist() == [TOP.tolist()]


@pytest.mark.parametrize("drop", [0.0, -1.0, 1.5])
def test_a_rate_that_makes_no_sense_is_refused(drop: float) -> None:
    with pytest.raises(ConfigError, match="max_drop"):
        RateRule(KNOBS, drop)


@pytest.mark.parametrize("missing", ["step_time_s", "step_j"])
def test_silence_of_a_sensor_means_as_found(missing: str) -> None:
    memory, guard = started(), Guard([SensorRule()])
    assert not guard.rule(TOP[None], memory, WANTED).acts["sensor"].any()
    silent = window()
    getattr(silent, missing)[:] = np.nan
    memory.remember(memory.relative(silent, np.zeros((1, 3), bool)), np.zeros(1), WANTED.budget)
    assert np.isnan(guard.rule(TOP[None], memory, WANTED).targets_mhz).all()


def test_without_a_reference_nothing_is_turned() -> None:
    memory, guard = Memory(1, TOP), Guard([SensorRule()])
    memory.begin(np.ones(1, bool), window(joules=np.nan))
    assert np.isnan(guard.rule(TOP[None], memory, WANTED).targets_mhz).all()


def test_interventions_are_counted_by_reason() -> None:
    memory, guard = started(), Guard([RateRule(KNOBS, 0.5), SensorRule()])
    for _ in range(3):
        guard.rule(np.array([[300.0, 2000.0, 3200.0]]), memory, WANTED)
    assert guard.counts == {"rate": 3, "sensor": 0}


def test_a_guard_that_is_off_has_no_rules() -> None:
    assert GuardSpec(enabled=False).rules(4, KNOBS) == []
    assert [rule.name for rule in GuardSpec().rules(4, KNOBS)][-1] == "sensor"


def test_a_slow_window_whose_clocks_were_not_read_condemns_nothing() -> None:
    memory, guard = started(), Guard([BudgetRule(1)])
    decide(memory, guard, 1.3, (600.0, np.nan, 3200.0))
    memory.excess[:] = 0.0
    assert not guard.rule(np.array([[300.0, 500.0, 800.0]]), memory, WANTED).acts["budget"].any()
