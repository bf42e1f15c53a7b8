from __future__ import annotations

import numpy as np

from rlgov.boards.base import Setting
from rlgov.boards.replay import ReplayBoard
from rlgov.boards.surface import Surface
from rlgov.envs.simulated import WindowSpec
from rlgov.governor.live import LivePlant, LiveWindow
from rlgov.jobs.base import Job, JobEnd, StepEvent


class Slow(ReplayBoard):
    """Takes 5 s to change its clocks, while the job goes on."""

    def __init__(self) -> None:
        clocks = np.array([306.0, 1300.0])
        super().__init__(Surface({"gpu": clocks}, {"time_s": 60.0 / clocks}, {}, ""))
        self.t_s = 0.0

    def now_s(self) -> float:
        return self.t_s

    def apply(self, setting: Setting) -> Setting:
        self.t_s += 5.0
        return super().apply(setting)


class Steady(Job):
    """A step every 0.1 s, all of them waiting to be taken."""

    name = "steady"

    def __init__(self) -> None:
        self.index = -1

    def next_event(self, timeout_s: float | None = None) -> StepEvent | JobEnd | None:
        self.index += 1
        return StepEvent(self.index, 0.1 * self.index)

    def close(self) -> None:
        return


def test_steps_from_before_the_change_are_settling_and_not_the_window() -> None:
    """A real job goes on while clocks are set; its steps wait in a queue until they are taken."""
    seen: list[LiveWindow] = []
    spec = WindowSpec(min_steps=4, min_seconds=0.0, reference_windows=1)
    plant = LivePlant(Slow(), Steady(), lambda: (), {}, spec, 0.0, 1.0, seen.append)
    plant.reset(1)
    plant.window(np.array([[306.0, np.nan, np.nan]]))
    (window,) = seen
    assert window.metered is not None
    assert window.metered.t0_s >= 5.0
    assert window.settling is not None
    assert window.settling.steps == 50
    plant.window(np.array([[306.0, np.nan, np.nan]]))
    assert seen[1].settling is None
    assert seen[1].metered is not None
    assert seen[1].metered.t0_s == window.metered.t1_s
