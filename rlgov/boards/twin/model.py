"""A batch of twins in time: state, windows, the exact cost of every setting.

`TwinModel.window` is the only way that time passes here, for one job or ten thousand. What a
governor could measure and what is true are kept apart in `WindowOutcome`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rlgov.boards.base import KNOB_NAMES
from rlgov.boards.twin.governors import next_clocks
from rlgov.boards.twin.noise import SeedArray, normals
from rlgov.boards.twin.physics import (
    NOMINAL,
    Load,
    Silicon,
    StepCost,
    rail_watts,
    step_cost,
)
from rlgov.boards.twin.spec import TwinSpec
from rlgov.work import FloatArray

__all__ = ["Measured", "Silicon", "TwinModel", "TwinState", "WindowOutcome"]

STEP_TIME_CV = 0.02
"""Relative spread of one step's time at constant work [assumed]."""
WINDOW_TIME_CV = 0.002
"""Relative spread of a window's mean step time that more steps do not average away [assumed]."""
EQUILIBRIUM_PASSES = 8
"""Fixed-point passes after which the governors rest on every job of the population."""
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
    """

    temperature_c: FloatArray
    governor_ghz: FloatArray
    rail_w: FloatArray
    time_s: FloatArray
    window: NDArray[np.int64]
    seed: SeedArray


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
class WindowOutcome:
    """A window: what was measured, and the truth that only an evaluation may see.

    Attributes:
        measured: See `Measured`.
        steps: Steps in the window, ``[n]``.
        duration_s: True seconds, transition included, ``[n]``.
        energy_j: True joules of the total, transition included, ``[n]``.
        true_step_time_s: Noise-free seconds a step at the setting, ``[n]``.
        true_step_j: Noise-free joules a step at the setting, ``[n]``.
    """

    measured: Measured
    steps: FloatArray
    duration_s: FloatArray
    energy_j: FloatArray
    true_step_time_s: FloatArray
    true_step_j: FloatArray


class TwinModel:
    """Twins of one board, one a job.

    Args:
        spec: The board.
        silicon: How each piece differs from the spec; each attribute ``[n]`` or a number.
        ceiling_mhz: As-found maximum by knob (a power mode's caps); the table's end by default.
    """

    def __init__(
        self,
        spec: TwinSpec,
        silicon: Silicon = NOMINAL,
        ceiling_mhz: dict[str, float | None] | None = None,
    ) -> None:
        self.spec = spec
        self.silicon = silicon
        self.levels_ghz = [np.asarray(spec.knobs[k].levels_mhz) / 1e3 for k in KNOB_NAMES]
        caps = ceiling_mhz or {}
        self.ceiling_ghz = np.array(
            [(caps.get(k) or spec.knobs[k].levels_mhz[-1]) / 1e3 for k in KNOB_NAMES]
        )
        self._delay_s = np.array([spec.knobs[k].delay_s for k in KNOB_NAMES])
        self._caps_only = np.array([spec.knobs[k].mode == "cap" for k in KNOB_NAMES])
        names = list(spec.rails)
        self.total_index = np.array([names.index(r) for r in spec.total_rails])
        self.channels = 1 + len(names) + 3 + 1

    def start(self, load: Load, seed: SeedArray, warm: float | FloatArray = 0.5) -> TwinState:
        """Boards that have run ``load`` as found; ``warm`` 0 is ambient, 1 the steady heat."""
        n = len(load)
        clocks = np.broadcast_to(self.ceiling_ghz, (n, 3)).copy()
        ambient = self.ambient_c(n)
        cost = self._cost(load, clocks, ambient)
        for _ in range(EQUILIBRIUM_PASSES):
            clocks = next_clocks(clocks, cost, self.ceiling_ghz, self.spec)
            cost = self._cost(load, clocks, ambient)
        rails = rail_watts(cost.component_w, self.spec)
        rise = self.spec.thermal.resistance_k_per_w * rails[:, self.total_index].sum(-1)
        return TwinState(
            temperature_c=ambient + np.asarray(warm) * rise,
            governor_ghz=clocks,
            rail_w=rails,
            time_s=cost.time_s,
            window=np.zeros(n, np.int64),
            seed=seed,
        )

    def ambient_c(self, n: int) -> FloatArray:
        """Ambient of each board, ``[n]``."""
        offset = np.asarray(self.silicon.ambient_k, float)
        return np.broadcast_to(self.spec.thermal.ambient_c + offset, (n,)).astype(float)

    def window(
        self,
        state: TwinState,
        target_mhz: FloatArray,
        load: Load,
        min_steps: float,
        min_seconds: float,
    ) -> tuple[WindowOutcome, TwinState]:
        """Run one window at ``target_mhz`` (``[n, 3]``, NaN for auto).

        The window lasts at least ``min_steps`` steps and ``min_seconds``; the first
        `SensorSpec.lag_s` of it are left to settle and not metered.
        """
        clocks, cost = self._settle(state, target_mhz, load)
        rails = rail_watts(cost.component_w, self.spec)
        total = rails[:, self.total_index].sum(-1)
        steps = np.maximum(np.ceil(min_seconds / cost.time_s), min_steps)
        delay = self._transition_s(state, clocks)
        duration = steps * cost.time_s + delay * (1.0 - cost.time_s / state.time_s)
        before = state.rail_w[:, self.total_index].sum(-1)
        energy = delay * before + (duration - delay) * total
        outcome = WindowOutcome(
            measured=self._measure(state, cost, rails, clocks, steps),
            steps=steps,
            duration_s=duration,
            energy_j=energy,
            true_step_time_s=cost.time_s,
            true_step_j=total * cost.time_s,
        )
        return outcome, self._advance(state, cost, rails, clocks, duration)

    def grid_cost(
        self, load: Load, target_mhz: FloatArray, temperature_c: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Noise-free steady seconds and joules a step of every setting, ``[n, s]`` each.

        ``target_mhz`` is ``[s, 3]`` with NaN for auto, whose governors are run to rest.
        """
        shape = (len(load), len(target_mhz), 3)
        pinned = np.broadcast_to(target_mhz / 1e3, shape)
        clocks = np.where(np.isnan(pinned), self.ceiling_ghz, pinned)
        wide, temperature = load.against_grid(), temperature_c[:, None]
        silicon = self.silicon.against_grid()
        cost = self._cost(wide, clocks, temperature, silicon)
        if np.isnan(target_mhz).any() or self._caps_only.any():
            for _ in range(EQUILIBRIUM_PASSES):
                free = next_clocks(clocks, cost, self.ceiling_ghz, self.spec)
                clocks = self._effective(pinned, free)
                cost = self._cost(wide, clocks, temperature, silicon)
        rails = rail_watts(cost.component_w, self.spec)
        return cost.time_s, cost.time_s * rails[..., self.total_index].sum(-1)

    def _cost(
        self,
        load: Load,
        clocks_ghz: FloatArray,
        temperature_c: FloatArray,
        silicon: Silicon | None = None,
    ) -> StepCost:
        gpu, cpu, emc = clocks_ghz[..., 0], clocks_ghz[..., 1], clocks_ghz[..., 2]
        return step_cost(load, gpu, cpu, emc, temperature_c, self.spec, silicon or self.silicon)

    def _effective(self, target_ghz: FloatArray, governor_ghz: FloatArray) -> FloatArray:
        """Clocks that result from targets (NaN: auto) over the board's own governors."""
        pinned = np.where(np.isnan(target_ghz), governor_ghz, target_ghz)
        capped = np.fmin(target_ghz, governor_ghz)
        clocks: FloatArray = np.where(self._caps_only, capped, pinned)
        return clocks

    def _settle(
        self, state: TwinState, target_mhz: FloatArray, load: Load
    ) -> tuple[FloatArray, StepCost]:
        target = target_mhz / 1e3
        throttle = self._throttle(state.temperature_c)
        clocks = self._effective(target, state.governor_ghz)
        clocks[:, 0] = np.minimum(clocks[:, 0], throttle)
        cost = self._cost(load, clocks, state.temperature_c)
        if not (np.isnan(target).any() or self._caps_only.any()):
            return clocks, cost
        for _ in range(2):
            free = next_clocks(clocks, cost, self.ceiling_ghz, self.spec)
            clocks = self._effective(target, free)
            clocks[:, 0] = np.minimum(clocks[:, 0], throttle)
            cost = self._cost(load, clocks, state.temperature_c)
        return clocks, cost

    def _throttle(self, temperature_c: FloatArray) -> FloatArray:
        thermal = self.spec.thermal
        over = np.maximum(temperature_c - thermal.trip_c, 0.0) * thermal.trip_slope_per_k
        ceiling = self.ceiling_ghz[0] * np.maximum(1.0 - over, 0.0)
        limited: FloatArray = np.maximum(ceiling, self.levels_ghz[0][0])
        return limited

    def _transition_s(self, state: TwinState, clocks_ghz: FloatArray) -> FloatArray:
        """Seconds until the slowest changed clock is effective."""
        changed = np.abs(clocks_ghz - state.governor_ghz) > 1e-6
        slowest: FloatArray = (changed * self._delay_s).max(-1)
        return slowest

    def _measure(
        self,
        state: TwinState,
        cost: StepCost,
        rails: FloatArray,
        clocks_ghz: FloatArray,
        steps: FloatArray,
    ) -> Measured:
        sensors = self.spec.sensors
        n_rails = rails.shape[1]
        z = normals(state.seed, state.window, self.channels)
        gain = normals(state.seed, np.full_like(state.window, GAIN_WINDOW), n_rails)
        metered_s = np.maximum(steps * cost.time_s - sensors.lag_s, sensors.refresh_s)
        samples = np.maximum(metered_s / sensors.refresh_s, 1.0)[:, None]
        time_cv = np.sqrt(STEP_TIME_CV**2 / steps + WINDOW_TIME_CV**2)
        residue = sensors.lag_s / metered_s * np.exp(-1.0)
        lagged = rails + (state.rail_w - rails) * np.minimum(residue, 1.0)[:, None]
        spread = np.sqrt(((sensors.noise * rails) ** 2 + sensors.quantum_w**2 / 12.0) / samples)
        measured_w = lagged * (1.0 + sensors.gain_spread * gain) + spread * z[:, 1 : 1 + n_rails]
        loads = np.stack([cost.gpu_load, cost.cpu_load, cost.emc_load], axis=-1)
        noisy = loads * (1.0 + sensors.clock_noise / np.sqrt(samples) * z[:, 1 + n_rails : -1])
        return Measured(
            step_time_s=cost.time_s * (1.0 + time_cv * z[:, 0]),
            rail_w=np.maximum(measured_w, 0.0),
            total_w=np.maximum(measured_w[:, self.total_index].sum(-1), 0.0),
            utilisation=np.clip(noisy, 0.0, 1.0),
            clocks_mhz=clocks_ghz * 1e3,
            temperature_c=np.round(state.temperature_c + 0.3 * z[:, -1], 1),
        )

    def _advance(
        self,
        state: TwinState,
        cost: StepCost,
        rails: FloatArray,
        clocks_ghz: FloatArray,
        duration_s: FloatArray,
    ) -> TwinState:
        thermal = self.spec.thermal
        total = rails[:, self.total_index].sum(-1)
        steady = self.ambient_c(len(total)) + thermal.resistance_k_per_w * total
        decay = np.exp(-duration_s / thermal.time_constant_s)
        return TwinState(
            temperature_c=steady + (state.temperature_c - steady) * decay,
            governor_ghz=clocks_ghz,
            rail_w=rails,
            time_s=cost.time_s,
            window=state.window + 1,
            seed=state.seed,
        )
