from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from rlgov.boards.surface import Surface
from rlgov.boards.twin.drift import DriftSpec
from rlgov.envs.change import Change
from rlgov.envs.guard import GuardSpec
from rlgov.envs.replayed import ReplayPlant
from rlgov.envs.simulated import SimulatedPlant, Spread, WindowSpec
from rlgov.errors import ConfigError
from rlgov.policies.base import Observation, Policy
from rlgov.policies.evaluate import Evaluation, Track, Trial, catches_up, evaluate_policy
from rlgov.policies.registry import POLICIES, make_policy
from rlgov.policies.scenario import Scenario
from rlgov.work import FloatArray
from tests.envs.world import POPULATION, SPEC, WINDOW, make_plant

OFF = GuardSpec(enabled=False)


def run(name: str, trial: Trial) -> Evaluation:
    return evaluate_policy(trial, make_policy(name, trial.context()))


def changing(change: Change, n: int = 5) -> SimulatedPlant:
    return SimulatedPlant(SPEC, POPULATION.draw, n, WINDOW, Spread(), change=change)


def test_a_knob_that_is_not_offered_is_turned_by_nobody() -> None:
    trial = Trial(lambda: make_plant(5), budget=0.2, windows=4, guard=OFF, offered=["gpu"])
    for name in ("oracle", "random", "max", "gpu_oracle"):
        assert np.isnan(run(name, trial).track.targets_mhz[..., 1:]).all()
    oracle, gpu = run("oracle", trial), run("gpu_oracle", trial)
    np.testing.assert_array_equal(oracle.track.step_j, gpu.track.step_j)


def test_the_gpu_alone_saves_no_more_than_all_knobs() -> None:
    trial = Trial(lambda: make_plant(8), budget=0.2, windows=4, guard=OFF)
    gpu, oracle = run("gpu_oracle", trial), run("oracle", trial)
    assert gpu.saving.mean() < oracle.saving.mean()
    assert gpu.saving.mean() > 0.0


def test_an_unknown_knob_is_refused() -> None:
    trial = Trial(lambda: make_plant(2), windows=2, offered=["dla"])
    with pytest.raises(ConfigError, match="'dla' is none of gpu, cpu, emc"):
        run("as_found", trial)


class Wanting(Policy):
    """Writes down which budget it was told."""

    name = "wanting"

    def __init__(self) -> None:
        self.told: list[float] = []

    def act(self, observation: Observation) -> FloatArray:
        self.told.append(round(float(observation[0, 0]), 3))
        return np.full((len(observation), 3), np.nan)


def test_a_budget_changed_midway_reaches_policy_oracle_and_violations() -> None:
    trial = Trial(
        lambda: make_plant(5), budget=0.5, windows=6, guard=OFF, budgets=[(2, 0.0), (4, 0.1)]
    )
    policy = Wanting()
    evaluate_policy(trial, policy)
    assert policy.told == [0.5, 0.5, 0.0, 0.0, 0.1, 0.1]
    assert trial.budget_by_window.tolist() == policy.told
    result = run("oracle", trial)
    assert result.violations.max() == 0.0
    schedule = result.track.targets_mhz
    np.testing.assert_array_equal(schedule[0], schedule[1])
    assert not np.array_equal(schedule[1], schedule[2], equal_nan=True)


def test_the_oracle_of_segments_beats_one_setting_where_work_drifts() -> None:
    change = Change(drift=DriftSpec(corunner_chance=0.5, corunner_share=0.6, corunner_windows=3))
    steady = Trial(lambda: changing(change), budget=0.1, windows=12, guard=OFF, seed=4)
    cut = Scenario(change=change).applied(steady)
    assert list(cut.cuts) == [1, 4, 7, 10]
    assert steady.best_mhz.shape == (5, 3)
    assert cut.best_mhz.shape == (12, 5, 3)
    one, each = run("oracle", steady), run("oracle", cut)
    assert one.violations.mean() > 0.0
    assert each.violations.max() == 0.0
    assert each.row()["gap"]["mean"] == 0.0


def test_audits_are_left_out_of_figures_and_paid_for_in_one() -> None:
    trial = Trial(lambda: make_plant(5), windows=9, guard=OFF, audit_every=3, budget=0.2)
    result = run("oracle", trial)
    assert result.track.step_j.shape == (9, 5)
    assert [trial.taken(w) for w in (0, 3, 8)] == [2, 6, 12]
    decided, alone = result.track.steps.sum(0), 4 * trial.as_found.steps.mean(0)
    expected = result.saving * decided / (decided + alone)
    np.testing.assert_allclose(result.saving_with_reference, expected)


def test_a_scenario_cuts_where_phases_begin_and_end() -> None:
    scenario = Scenario(change=Change(evaluate_every=5, evaluate_windows=2))
    applied = scenario.applied(Trial(lambda: make_plant(2), windows=10, reference_windows=1))
    # Windows 3, 4, 8, 9, … of the job evaluate, and one reference window came before.
    assert list(applied.cuts) == [2, 4, 7, 9]
    assert Scenario().describe() is None
    described = scenario.describe()
    assert described is not None
    assert described["change"]["evaluate_every"] == 5


@pytest.mark.parametrize("wrong", [{"budgets": [[1]]}, {"segment": -1}, {"budgets": [[1, -0.1]]}])
def test_a_scenario_that_cannot_be_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match="drift"):
        Scenario(**wrong)  # type: ignore[arg-type]


def curve(*step_j: float) -> Evaluation:
    track = Track(*(np.array(step_j)[:, None] for _ in range(4)), np.full((len(step_j), 1, 3), 1.0))
    trial = Trial(lambda: make_plant(1), windows=len(step_j))
    trial.__dict__["oracle"] = Track(*(np.ones((len(step_j), 1)) for _ in range(4)), track.step_j)
    return Evaluation("x", trial, track)


def test_who_catches_up_does_so_for_good() -> None:
    steady = curve(*[1.1] * 10)
    assert catches_up(curve(*[1.2] * 4, *[1.05] * 6), steady) == 5
    assert catches_up(curve(*[1.2] * 10), steady) is None
    assert catches_up(curve(*[1.0] * 10), steady) == 1
    assert catches_up(curve(*[1.2] * 8, 1.0, 1.0), steady) is None
    assert catches_up(curve(*[1.0] * 3, 1.2, *[1.0] * 6), steady) == 5


def surface(*, timed: bool = True, found: bool = True) -> Surface:
    gpu = np.array([300.0, 600.0, 900.0, 1200.0])
    time_s = np.array([2.0, 1.3, 1.05, 1.0])
    unknown = np.full(4, np.nan)
    energy = np.array([24.0, 20.0, 22.0, 30.0])
    as_found = {"time_s": 1.0, "energy_j": 28.0} if found else {}
    return Surface(
        {"gpu": gpu}, {"time_s": time_s if timed else unknown, "energy_j": energy}, as_found, "VIN"
    )


def replayed(*, timed: bool = True, budget: float = 0.1) -> Trial:
    def make() -> ReplayPlant:
        return ReplayPlant(surface(timed=timed), WindowSpec())

    return Trial(make, budget=budget, windows=12, guard=OFF)


def test_on_a_profile_the_oracle_is_the_best_measured_setting() -> None:
    row = run("oracle", replayed()).row()
    assert row["saving"]["mean"] == pytest.approx(1 - 22 / 28)
    assert row["slowdown"]["mean"] == pytest.approx(0.05)
    assert row["gap"]["mean"] == 0.0
    assert row["saving"]["ci95"] is None
    assert run("oracle", replayed(budget=0.5)).row()["saving"]["mean"] == pytest.approx(1 - 20 / 28)


def test_a_profile_without_times_has_no_slowdown_and_no_violations() -> None:
    trial = replayed(timed=False)
    row = run("gpu_oracle", trial).row()
    assert not trial.timed
    assert row["saving"]["mean"] == pytest.approx(1 - 20 / 28)
    assert row["slowdown"]["mean"] is None
    assert row["violations"]["mean"] is None
    assert run("util30", trial).row()["saving"]["mean"] > 0.0
    policy = Wanting()
    evaluate_policy(trial, policy)
    assert set(policy.told) == {1.0}


@pytest.mark.parametrize("name", sorted(set(POLICIES) - {"ppo", "fixed", "oracle", "gpu_oracle"}))
def test_the_truth_reaches_no_policy_but_the_oracles(name: str) -> None:
    if name == "bayes":
        pytest.importorskip("sklearn")
    trial = Trial(lambda: make_plant(2), windows=6, guard=OFF)

    def forbidden() -> FloatArray:
        raise AssertionError("a policy asked for the truth")

    context = replace(trial.context(), best=forbidden, best_gpu=forbidden)
    track = trial.run(make_policy(name, context))
    # The same decisions whatever is true beyond what was measured: the oracle is never asked.
    assert "best_mhz" not in trial.__dict__
    assert np.isfinite(track.step_j).all()
