from __future__ import annotations

import numpy as np
import pytest

from rlgov.reward import OBJECTIVES
from rlgov.training.config import Mixture
from rlgov.training.preferences import PreferenceDraws

N = 4000


def test_every_wish_is_drawn_about_as_often_as_asked() -> None:
    mixture = Mixture()
    drawn = PreferenceDraws(mixture).preference(N, np.random.default_rng(0))
    assert drawn.budget.min() == 0.0
    assert drawn.budget.max() > 0.9
    for budget in mixture.budgets:
        assert (drawn.budget == budget).mean() == pytest.approx(1 / 12, abs=0.02)
    pairs = np.stack([drawn.energy_weight, drawn.time_weight], axis=1)
    for name, share in mixture.objectives.items():
        assert (pairs == OBJECTIVES[name]).all(1).mean() == pytest.approx(share, abs=0.03)
    capped = ~np.isnan(drawn.power_cap)
    assert capped.mean() == pytest.approx(0.15, abs=0.03)
    assert drawn.power_cap[capped].min() >= 0.5


def test_some_knob_is_always_offered() -> None:
    offered = PreferenceDraws(Mixture(drop_knob=0.9)).offered(N, np.random.default_rng(0))
    assert offered.any(1).all()
    rare = PreferenceDraws(Mixture(drop_knob=0.15)).offered(N, np.random.default_rng(0))
    assert rare.mean() == pytest.approx(0.85, abs=0.02)
