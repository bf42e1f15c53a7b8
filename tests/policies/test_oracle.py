from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlgov.policies.oracle import Landscape, landscape
from rlgov.reward import Preference
from tests.envs.world import make_plant

JOBS = 5
ALL = np.ones((JOBS, 3), bool)


@pytest.fixture(scope="module")
def truth() -> Landscape:
    plant = make_plant(JOBS)
    plant.reset(3)
    return landscape(plant)


def chosen(truth: Landscape, targets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    same = (truth.targets_mhz[None] == targets[:, None]) | (
        np.isnan(truth.targets_mhz)[None] & np.isnan(targets)[:, None]
    )
    index = same.all(-1).argmax(1)
    rows = np.arange(JOBS)
    return truth.time_ratio[rows, index], truth.energy_ratio[rows, index]


def test_as_found_costs_what_it_costs(truth: Landscape) -> None:
    auto = np.isnan(truth.targets_mhz).all(1)
    np.testing.assert_allclose(truth.time_ratio[:, auto], 1.0)
    np.testing.assert_allclose(truth.energy_ratio[:, auto], 1.0)


@settings(max_examples=20, deadline=None)
@given(st.floats(0, 2))
def test_nothing_within_the_budget_is_cheaper(truth: Landscape, budget: float) -> None:
    best = truth.best(Preference.of("energy", budget, JOBS), ALL)
    time, energy = chosen(truth, best)
    assert (time <= 1 + budget + 1e-12).all()
    within = np.where(truth.time_ratio <= 1 + budget, truth.energy_ratio, np.inf)
    np.testing.assert_allclose(energy, within.min(1))


def test_a_larger_budget_never_saves_less(truth: Landscape) -> None:
    spent = [
        chosen(truth, truth.best(Preference.of("energy", b, JOBS), ALL))[1]
        for b in (0.0, 0.02, 0.1, 0.5, 5.0)
    ]
    assert (np.diff(np.stack(spent), axis=0) <= 1e-12).all()


def test_only_offered_knobs_are_turned(truth: Landscape) -> None:
    offered = ALL.copy()
    offered[:, 1] = False
    best = truth.best(Preference.of("energy", 0.2, JOBS), offered)
    assert np.isnan(best[:, 1]).all()
    assert np.isfinite(best[:, 0]).any()


def test_a_power_cap_is_kept_at_the_highest_speed(truth: Landscape) -> None:
    best = truth.best(Preference.of("power_cap", 5.0, JOBS, 0.8), ALL)
    time, energy = chosen(truth, best)
    assert (energy / time <= 0.8 + 1e-12).all()
    power = truth.energy_ratio / truth.time_ratio
    fastest = np.where(power <= 0.8, truth.time_ratio, np.inf).min(1)
    np.testing.assert_allclose(time, fastest)


def test_where_nothing_fits_the_board_is_left_alone(truth: Landscape) -> None:
    wish = replace(Preference.of("power_cap", 0.0, JOBS, 0.8), power_cap=np.full(JOBS, 1e-3))
    assert np.isnan(truth.best(wish, ALL)).all()
