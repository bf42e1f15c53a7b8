from __future__ import annotations

import numpy as np
import pytest

from rlgov.boards.twin.drift import DriftSpec
from rlgov.envs.change import Change
from rlgov.envs.simulated import SimulatedPlant, Spread
from rlgov.errors import ConfigError
from tests.envs.world import POPULATION, SPEC, WINDOW

AUTO = np.full((4, 3), np.nan)


def plant(change: Change | None) -> SimulatedPlant:
    made = SimulatedPlant(SPEC, POPULATION.draw, 4, WINDOW, Spread(), change=change)
    made.reset(3)
    return made


def times(change: Change | None, windows: int) -> np.ndarray:
    made = plant(change)
    rows = []
    for _ in range(windows):
        made.window(AUTO)
        rows.append(made.outcome.true_step_time_s)
    return np.stack(rows)


def test_no_change_is_the_plant_without_any() -> None:
    steady, unchanged = plant(None), plant(Change())
    for _ in range(3):
        one, other = steady.window(AUTO), unchanged.window(AUTO)
        np.testing.assert_allclose(one.step_j, other.step_j)
        np.testing.assert_allclose(one.step_time_s, other.step_time_s)


def test_work_that_drifts_moves_the_step_time() -> None:
    drifting = times(Change(drift=DriftSpec(work_ramp=0.5, horizon=10)), 11)
    steady = times(None, 11)
    np.testing.assert_allclose(drifting[0], steady[0])
    assert (np.abs(drifting[-1] / steady[-1] - 1.0) > 0.01).any()


def test_an_evaluation_phase_has_shorter_steps_and_ends() -> None:
    phases = times(Change(evaluate_every=4, evaluate_windows=1), 8)
    steady = times(None, 8)
    np.testing.assert_allclose(phases[[0, 1, 2]], steady[[0, 1, 2]])
    assert (phases[[3, 7]] < 0.8 * steady[[3, 7]]).all()
    np.testing.assert_allclose(phases[4:7], steady[4:7], rtol=0.02)


def test_warmer_air_warms_the_board() -> None:
    hot, steady = plant(Change(heat_k=40.0, drift=DriftSpec(horizon=5))), plant(None)
    for _ in range(60):
        hot.window(AUTO)
        steady.window(AUTO)
    warmer = hot.state.temperature_c - steady.state.temperature_c
    assert (warmer > 5.0).all()


def test_silicon_is_displaced_by_as_much_as_asked_and_jobs_stay() -> None:
    moved, steady = plant(Change(silicon=0.15)), plant(None)
    ratio = np.asarray(moved.model.silicon.dynamic) / np.asarray(steady.model.silicon.dynamic)
    np.testing.assert_allclose(np.abs(ratio - 1.0), 0.15)
    np.testing.assert_array_equal(moved.load.gpu_gcycle, steady.load.gpu_gcycle)


def test_the_truth_is_of_the_present_window() -> None:
    changed = plant(Change(evaluate_every=2, evaluate_windows=1))
    before = changed.grid(AUTO[:1])[0]
    changed.window(AUTO)
    assert (changed.grid(AUTO[:1])[0] < before).all()


@pytest.mark.parametrize(
    "wrong",
    [{"silicon": 1.0}, {"evaluate_every": 2, "evaluate_windows": 2}, {"silicon": -0.1}],
)
def test_what_cannot_change_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ConfigError, match="drift"):
        Change(**wrong)
