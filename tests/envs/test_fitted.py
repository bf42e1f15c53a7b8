from __future__ import annotations

import numpy as np

from rlgov.boards.twin.loadfile import load_from_dict
from rlgov.envs.simulated import (
    FITTED_SPREAD,
    SimulatedPlant,
    Spread,
    WindowSpec,
    about_fitted,
    draw_fitted,
)
from tests.envs.world import SPEC

LOAD = load_from_dict(
    {
        "gpu_gcycle": 0.3,
        "mem_gcycle": 0.4,
        "host_gcycle": 0.01,
        "gpu_j": 3.0,
        "soc_j": 1.0,
        "mem_j": 0.5,
    }
)


def test_every_board_runs_the_fitted_job_about_as_it_was_fitted() -> None:
    spread = about_fitted(Spread())
    plant = SimulatedPlant(SPEC, draw_fitted("mine"), 40, WindowSpec(), spread, fitted=LOAD)
    plant.reset(1)
    assert set(plant.jobs.labels["model"]) == {"mine"}
    ratio = plant.load.gpu_gcycle[:, 0] / LOAD.gpu_gcycle[0, 0]
    assert 0.5 * FITTED_SPREAD < np.log(ratio).std() < 2 * FITTED_SPREAD
    assert np.isfinite(plant.window(np.full((40, 3), np.nan)).step_j).all()


def test_a_fit_without_spread_is_the_job_itself() -> None:
    still = Spread(silicon=0.0, work=0.0)
    plant = SimulatedPlant(SPEC, draw_fitted("mine"), 3, WindowSpec(), still, fitted=LOAD)
    plant.reset(1)
    np.testing.assert_array_equal(plant.load.mem_gcycle, np.tile(LOAD.mem_gcycle, (3, 1)))
