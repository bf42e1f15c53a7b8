from __future__ import annotations

import json

import numpy as np
import pytest

from rlgov.envs.guard import GuardSpec
from rlgov.policies import load_policy
from rlgov.policies.evaluate import Evaluation, Trial, evaluate, evaluate_policy
from rlgov.policies.figures import figure, ratio_figure
from tests.envs.world import make_plant

OFF = GuardSpec(enabled=False)


def trial(n: int = 6, budget: float = 0.1, guard: GuardSpec = OFF) -> Trial:
    return Trial(lambda: make_plant(n), budget=budget, seed=2, windows=12, guard=guard)


def run(name: str, at: Trial) -> Evaluation:
    context = at.context()
    return evaluate_policy(at, load_policy(name, context.knobs, best=context.best))


def test_as_found_saves_nothing_and_breaks_nothing() -> None:
    result = run("as_found", trial())
    np.testing.assert_allclose(result.saving, 0.0, atol=1e-12)
    np.testing.assert_allclose(result.time_ratio, 1.0)
    assert result.violations.tolist() == [0.0] * 6


def test_the_oracle_captures_everything() -> None:
    row = run("oracle", trial()).row()
    assert row["gap"]["mean"] == 0.0
    assert row["captured"]["mean"] == pytest.approx(1.0)
    assert row["violations"]["mean"] == 0.0
    assert row["windows_to_2pct"]["mean"] == 1.0
    assert row["saving"]["mean"] > 0.01


def test_random_is_worse_than_the_oracle_and_breaks_the_budget() -> None:
    row = run("random", trial()).row()
    assert row["gap"]["mean"] > 0.02
    assert row["violations"]["mean"] > 0.2
    assert row["saving"]["mean"] < row["oracle_saving"]["mean"]


def test_the_references_cost_is_part_of_one_figure() -> None:
    result = run("oracle", trial())
    decided = result.track.steps.sum(0)
    reference = 2 * result.trial.as_found.steps.mean(0)
    expected = result.saving * decided / (decided + reference)
    np.testing.assert_allclose(result.saving_with_reference, expected)


def test_the_same_trial_gives_the_same_figures_with_the_guard_on() -> None:
    rows = [run("random", trial(guard=GuardSpec())).row() for _ in range(2)]
    assert rows[0] == rows[1]
    assert rows[0]["guard_share"]["mean"] > 0


def test_every_policy_meets_the_same_jobs_in_every_trial() -> None:
    trials = [trial(budget=0.02), trial(budget=0.5)]
    policies = [load_policy(name, make_plant(1).knobs) for name in ("as_found", "max")]
    results = evaluate(policies, trials)
    assert [(r.policy, r.trial.budget) for r in results] == [
        ("as_found", 0.02),
        ("max", 0.02),
        ("as_found", 0.5),
        ("max", 0.5),
    ]
    np.testing.assert_array_equal(results[1].track.step_j, results[3].track.step_j)


def test_a_single_job_has_no_interval_and_the_json_is_valid() -> None:
    row = run("oracle", trial(n=1)).row()
    assert row["saving"]["ci95"] is None
    json.dumps(row, allow_nan=False)


def test_a_figure_knows_its_interval() -> None:
    values = np.random.default_rng(0).normal(2.0, 1.0, 400)
    made = figure(values, 1)
    assert made["ci95"] is not None
    low, high = made["ci95"]
    assert low < made["mean"] < high
    assert high - low == pytest.approx(4 * 1.0 / 20, rel=0.2)
    assert made == figure(values, 1)


def test_a_ratio_of_nothing_is_null() -> None:
    nothing = np.zeros(3)
    made = ratio_figure(nothing, nothing, 1, np.full(3, np.nan))
    assert made == {"mean": None, "median": None, "p5": None, "p95": None, "ci95": None}
