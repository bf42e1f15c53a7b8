from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlgov.envs.episode import Episodes
from rlgov.envs.guard import GuardSpec
from rlgov.envs.observation import BOUND, observation_names
from rlgov.envs.plant import WindowData
from rlgov.envs.spaces import ActionGrid
from rlgov.reward import Preference, RewardSpec
from tests.envs.world import knobs, window

FIELDS = [f.name for f in fields(WindowData)]
BROKEN = [np.nan, np.inf, -np.inf, 0.0, 1e30, -1e30]


def episodes(n: int = 2) -> Episodes:
    table = knobs()
    return Episodes(n, table, ActionGrid.of_tables(table), GuardSpec(), RewardSpec())


def test_names_are_unique_and_as_many_as_the_features() -> None:
    names = observation_names()
    assert len(set(names)) == len(names)
    each = episodes()
    each.begin(window(2))
    assert each.observe(Preference.of("energy", 0.1, 2)).shape == (2, len(names))


def test_a_feature_stands_where_its_name_says() -> None:
    each = episodes()
    each.restrict(np.array([[True, False, True], [True, True, True]]))
    each.begin(window(2))
    row = dict(
        zip(observation_names(), each.observe(Preference.of("edp", 0.25, 2))[0], strict=True)
    )
    assert row["budget"] == 0.25
    assert row["time_weight"] == 0.5
    assert (row["offered_gpu"], row["offered_cpu"]) == (1.0, 0.0)
    assert row["reference_log_power"] == pytest.approx(0.0)
    assert row["reference_gpu_utilisation"] == pytest.approx(0.9)
    assert row["recent0_valid"] == 0.0


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@settings(max_examples=150, deadline=None)
@given(st.sampled_from(FIELDS), st.sampled_from(BROKEN), st.booleans(), st.integers(0, 3))
def test_a_broken_sensor_never_reaches_the_policy(
    name: str, value: float, in_reference: bool, at: int
) -> None:
    each, preference = episodes(), Preference.of("energy", 0.1, 2)
    each.begin(broken(name, value) if in_reference else window(2))
    for i in range(4):
        seen = broken(name, value) if i == at else window(2, joules=25.0)
        ruling = each.rule(np.full((2, 3), 1200.0), preference)
        scored = each.remember(seen, ruling.targets_mhz, preference)
        observation = each.observe(preference)
        assert np.isfinite(observation).all()
        assert np.abs(observation).max() <= BOUND
        assert np.isfinite(scored.reward[1])


def broken(name: str, value: float) -> WindowData:
    hurt = window(2, joules=25.0)
    getattr(hurt, name)[0] = value
    return hurt


def test_a_window_without_energy_has_no_reward_and_says_so() -> None:
    each, preference = episodes(), Preference.of("energy", 0.1, 2)
    each.begin(window(2))
    scored = each.remember(broken("step_j", np.nan), np.full((2, 3), np.nan), preference)
    assert scored.valid.tolist() == [False, True]
    assert scored.reward[0] == 0.0
    assert np.isnan(scored.energy_ratio[0])
