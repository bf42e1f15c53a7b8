from __future__ import annotations

import numpy as np

from rlgov.envs.memory import RECENT, Memory
from tests.envs.world import window

TOP = np.array([1200.0, 2000.0, 3200.0])


def remember(memory: Memory, time_s: float, joules: float, cost: float) -> None:
    seen = memory.relative(window(memory.n, time_s, joules), np.zeros((memory.n, 3), bool))
    memory.remember(seen, np.full(memory.n, cost), np.full(memory.n, 0.1))


def begun(n: int = 2) -> Memory:
    memory = Memory(n, TOP)
    memory.begin(np.ones(n, bool), window(n))
    return memory


def test_the_best_so_far_starts_as_found_and_keeps_to_the_budget() -> None:
    memory = begun()
    assert memory.best.energy_ratio.tolist() == [1.0, 1.0]
    remember(memory, 1.5, 10.0, -1.0)  # cheap, but far too slow
    assert memory.best.energy_ratio.tolist() == [1.0, 1.0]
    remember(memory, 1.05, 24.0, -0.2)
    remember(memory, 1.05, 27.0, -0.1)
    np.testing.assert_allclose(memory.best.energy_ratio, 0.8)


def test_recent_windows_come_newest_first_and_the_oldest_goes() -> None:
    memory = begun()
    for i in range(RECENT + 2):
        remember(memory, 1.0 + i / 100, 30.0, 0.0)
    newest = [1.0 + i / 100 for i in range(RECENT + 1, 1, -1)]
    np.testing.assert_allclose([seen.time_ratio[0] for seen in memory.recent], newest)


def test_an_episode_may_begin_anew_beside_others() -> None:
    memory = begun()
    remember(memory, 1.05, 24.0, -0.2)
    memory.begin(np.array([True, False]), window(2, time_s=2.0))
    assert memory.decided.tolist() == [0, 1]
    assert np.isnan(memory.recent[0].time_ratio[0])
    np.testing.assert_allclose(memory.recent[0].time_ratio[1], 1.05)
    assert memory.reference.step_time_s.tolist() == [2.0, 1.0]
    np.testing.assert_allclose(memory.best.energy_ratio, [1.0, 0.8])


def test_excess_is_the_time_beyond_the_budget_of_each_window() -> None:
    memory = begun()
    remember(memory, 1.3, 30.0, 0.0)
    remember(memory, np.nan, 30.0, 0.0)
    np.testing.assert_allclose(memory.excess[:, :3], [[0.2, 0.0, 0.0]] * 2)
