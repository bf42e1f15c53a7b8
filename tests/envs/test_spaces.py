from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlgov.boards.base import KNOB_NAMES, Knob
from rlgov.envs.spaces import ActionGrid
from rlgov.errors import ConfigError
from tests.envs.world import knobs

# The AGX Orin's GPU table before and after JetPack 5.1 dropped two steps.
STEPS_13 = (114.75, 216.75, *(306.0 + 102.0 * i for i in range(10)), 1300.5)
STEPS_11 = (*(306.0 + 102.0 * i for i in range(10)), 1300.5)


@pytest.mark.parametrize(("mine", "theirs"), [(STEPS_13, STEPS_11), (STEPS_11, STEPS_13)])
def test_a_policys_levels_survive_another_releases_table(
    mine: tuple[float, ...], theirs: tuple[float, ...]
) -> None:
    grid = ActionGrid.of_tables(knobs(mine))
    levels = np.array([[a, 0, 0] for a in range(1, grid.sizes[0])])
    chosen = grid.targets(levels, knobs(theirs))[:, 0]
    assert set(chosen) <= set(theirs)
    common = [i for i, mhz in enumerate(mine) if mhz in theirs]
    assert chosen[common].tolist() == [mine[i] for i in common]
    assert chosen[-1] == theirs[-1]


def test_a_lower_power_mode_shrinks_every_level() -> None:
    grid = ActionGrid.of_tables(knobs())
    capped = [Knob("gpu", (300.0, 600.0, 900.0, 1200.0), ceiling_mhz=600.0), *knobs()[1:]]
    targets = grid.targets(np.array([[4, 0, 0], [2, 0, 0]]), capped)
    assert targets[:, 0].tolist() == [600.0, 300.0]


@given(st.lists(st.tuples(*[st.integers(0, 4), st.integers(0, 3), st.integers(0, 2)]), min_size=1))
def test_actions_and_targets_translate_both_ways(rows: list[tuple[int, int, int]]) -> None:
    table = knobs()
    grid, actions = ActionGrid.of_tables(table), np.array(rows)
    np.testing.assert_array_equal(grid.actions(grid.targets(actions, table), table), actions)


def test_a_missing_knob_stays_auto_and_is_masked() -> None:
    grid = ActionGrid.of_tables(knobs())
    offered = knobs()[:1]
    targets = grid.targets(np.array([[1, 1, 1]]), offered)
    np.testing.assert_array_equal(targets, [[300.0, np.nan, np.nan]])
    mask = grid.mask(offered)
    assert mask.tolist() == [True] * 5 + [True, False, False, False] + [True, False, False]


def test_a_long_table_is_thinned_with_both_ends_kept() -> None:
    table = [Knob("cpu", tuple(float(f) for f in range(100, 3000, 100)))]
    levels = ActionGrid.of_tables(table, {"cpu": 5}).fractions["cpu"]
    assert len(levels) == 5
    assert levels[0] == pytest.approx(100 / 2900, abs=1e-5)
    assert levels[-1] == 1.0


def test_nonsense_is_refused() -> None:
    with pytest.raises(ConfigError, match="unknown knob 'dla'"):
        ActionGrid({"dla": (0.5,)})
    with pytest.raises(ConfigError, match="ascend"):
        ActionGrid({KNOB_NAMES[0]: (0.5, 0.5)})
