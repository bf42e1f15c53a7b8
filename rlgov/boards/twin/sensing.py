"""What a board's own sensors make of the truth: lag, steps, noise, calibration error."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rlgov.boards.twin.noise import SeedArray, normals
from rlgov.boards.twin.physics import StepCost
from rlgov.boards.twin.spec import TwinSpec
from rlgov.work import FloatArray

STEP_TIME_CV = 0.02
"""Relative spread of one step's time at constant work [assumed]."""
WINDOW_TIME_CV = 0.002
"""Relative spread of a window's mean step time that more steps do not average away [assumed]."""
GAIN_WINDOW = np.int64(-1)
"""Window number whose noise is a board's fixed calibration error."""


@dataclass(frozen=True)
class TwinState:
    """What a batch of boards remembers between windows.

    Attributes:
        temperature_c: Junction, ``[n]``.
        governor_ghz: Where the board's own governors stand, ``[n, 3]``.
        rail_w: True watts by rail at the end of the last window, ``[n, rails]``.
        time_s: True seconds a step in the last window, ``[n]``.
        window: Windows so far, ``[n]``.
        seed: Noise seed, ``[n]``.
        gain: Calibration factor of each rail's sensor, ``[n, rails]``.
    """

    temperature_c: FloatArray
    governor_ghz: FloatArray
    rail_w: FloatArray
    time_s: FloatArray
    window: NDArray[np.int64]
    seed: SeedArray
    gain: FloatArray


@dataclass(frozen=True)
class Measured:
    """What a governor could measure: ``[n]``, rails ``[n, rails]``, knobs ``[n, 3]``."""

    step_time_s: FloatArray
    rail_w: FloatArray
    total_w: FloatArray
    utilisation: FloatArray
    clocks_mhz: FloatArray
    temperature_c: FloatArray


@dataclass(frozen=True)
class Sensed:
    """The truth of a window that sensors look at: arrays ``[n]``, rails ``[n, rails]``.

    Attributes:
        spec: The board.
        cost: Its step.
        rail_w: True watts by rail.
        clocks_ghz: ``[n, 3]``.
        steps: Steps in the window.
    """

    spec: TwinSpec
    cost: StepCost
    rail_w: FloatArray
    clocks_ghz: FloatArray
    steps: FloatArray


def board_gain(seed: SeedArray, rails: int) -> FloatArray:
    """Standard normal draws ``[n, rails]`` that stay with a board for its life."""
    return normals(seed, np.full(seed.shape, GAIN_WINDOW), rails)


def sum_columns(values: FloatArray, columns: NDArray[np.int64]) -> FloatArray:
    """Sum of some columns of the last axis, ``[...]``."""
    total = values[..., columns[0]]
    for column in columns[1:]:
        total = total + values[..., column]
    return total


def sense(truth: Sensed, state: TwinState, total_index: NDArray[np.int64]) -> Measured:
    """What the sensors report of a window, ``state`` being what came before it."""
    sensors, cost, n_rails = truth.spec.sensors, truth.cost, truth.rail_w.shape[1]
    z = normals(state.seed, state.window, 1 + n_rails + 3 + 1)
    metered_s = np.maximum(truth.steps * cost.time_s - sensors.lag_s, sensors.refresh_s)
    samples = np.maximum(metered_s / sensors.refresh_s, 1.0)[:, None]
    time_cv = np.sqrt(STEP_TIME_CV**2 / truth.steps + WINDOW_TIME_CV**2)
    watts = _rail_readings(truth, state, metered_s, samples, z[:, 1 : 1 + n_rails])
    loads = np.stack([cost.loads.gpu, cost.loads.cpu, cost.loads.emc], axis=-1)
    noisy = loads * (1.0 + sensors.clock_noise / np.sqrt(samples) * z[:, 1 + n_rails : -1])
    return Measured(
        step_time_s=cost.time_s * (1.0 + time_cv * z[:, 0]),
        rail_w=np.maximum(watts, 0.0),
        total_w=np.maximum(sum_columns(watts, total_index), 0.0),
        utilisation=np.clip(noisy, 0.0, 1.0),
        clocks_mhz=truth.clocks_ghz * 1e3,
        temperature_c=np.round(state.temperature_c + 0.3 * z[:, -1], 1),
    )


def _rail_readings(
    truth: Sensed, state: TwinState, metered_s: FloatArray, samples: FloatArray, z: FloatArray
) -> FloatArray:
    """Mean readings of a window ``[n, rails]``; the hardware's averaging still holds some past."""
    sensors, rails = truth.spec.sensors, truth.rail_w
    residue = np.minimum(sensors.lag_s / metered_s * np.exp(-1.0), 1.0)[:, None]
    lagged = rails + (state.rail_w - rails) * residue
    spread = np.sqrt(((sensors.noise * rails) ** 2 + sensors.quantum_w**2 / 12.0) / samples)
    readings: FloatArray = lagged * state.gain + spread * z
    return readings
