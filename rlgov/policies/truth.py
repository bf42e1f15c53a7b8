"""What is true of a plant, which no governor sees: only evaluations and oracles may ask."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from rlgov.envs.plant import WindowData
from rlgov.envs.replayed import ReplayPlant
from rlgov.envs.simulated import SimulatedPlant
from rlgov.work import FloatArray

TruePlant: TypeAlias = SimulatedPlant | ReplayPlant
"""A plant that knows the cost of every setting."""


@dataclass(frozen=True)
class Truth:
    """A window without noise; ``[n]`` each.

    Attributes:
        step_j: Joules a step, changes of clock included.
        step_s: Seconds a step; 1 throughout on a profile without times.
        steps: Steps in the window.
    """

    step_j: FloatArray
    step_s: FloatArray
    steps: FloatArray


def truth_of(plant: TruePlant, targets_mhz: FloatArray, window: WindowData) -> Truth:
    """The truth about the window that ``plant`` has just run at ``targets_mhz``."""
    if isinstance(plant, SimulatedPlant):
        outcome = plant.outcome
        return Truth(outcome.energy_j / outcome.steps, outcome.true_step_time_s, outcome.steps)
    step_s = plant.surface.at("time_s", targets_mhz)
    step_s = step_s if is_timed(plant) else np.ones(plant.n)
    return Truth(plant.surface.at("energy_j", targets_mhz), step_s, window.steps)


def cost_grid(plant: TruePlant, targets_mhz: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Noise-free seconds and joules a step of every setting, ``[n, s]`` each.

    What was not measured is infinite; seconds are 1 on a profile without times.
    """
    step_s, step_j = plant.grid(targets_mhz)
    if not is_timed(plant):
        step_s = np.ones_like(step_s)
    return np.nan_to_num(step_s, nan=np.inf), np.nan_to_num(step_j, nan=np.inf)


def is_timed(plant: TruePlant) -> bool:
    """Whether any step time is known, so that a budget means something."""
    if isinstance(plant, SimulatedPlant):
        return True
    return bool(np.isfinite(plant.surface.figures["time_s"]).any())


def is_metered(plant: TruePlant) -> bool:
    """Whether the energy as found is known, which every figure is relative to."""
    if isinstance(plant, SimulatedPlant):
        return True
    return bool(np.isfinite(plant.surface.at("energy_j", np.full((1, 3), np.nan))).all())


def confined(plant: TruePlant, targets_mhz: FloatArray) -> FloatArray:
    """``targets_mhz`` with as found for what was never measured."""
    if isinstance(plant, SimulatedPlant):
        return targets_mhz
    covered = plant.surface.covers(targets_mhz)
    return np.where(covered[:, None], targets_mhz, np.nan)
