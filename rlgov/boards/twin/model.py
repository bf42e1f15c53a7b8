"""A batch of twins in time: state, windows, the exact cost of every setting.

`TwinModel.window` is the only way that time passes here, for one job or ten thousand. What a
governor could measure and what is true are kept apart in `WindowOutcome`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rlgov.boards.base import KNOB_NAMES
from rlgov.boards.twin.governors import next_clocks
from rlgov.boards.twin.noise import SeedArray
from rlgov.boards.twin.physics import (
    NOMINAL,
    Load,
    Silicon,
    StepCost,
    rail_watts,
    step_cost,
    step_loads,
    step_time,
)
from rlgov.boards.twin.powercap import busy_watts, gpu_within_limit
from rlgov.boards.twin.sensing import Measured, Sensed, TwinState, board_gain, sense, sum_columns
from rlgov.boards.twin.spec import TwinSpec
from rlgov.work import FloatArray

__all__ = ["Measured", "Silicon", "TwinModel", "TwinState", "WindowOutcome"]

EQUILIBRIUM_PASSES = 8
"""Fixed-point passes after which the governors rest on every job of the population."""
WINDOW_PASSES = 2
"""Passes in a window: it starts where the last one ended, and lasts many governor periods."""


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
        power_limit_w: Cap of the total that the board itself holds by lowering its GPU clock,
            a number or ``[n]``; the spec's by default.
    """

    def __init__(
        self,
        spec: TwinSpec,
        silicon: Silicon = NOMINAL,
        ceiling_mhz: dict[str, float | None] | None = None,
        power_limit_w: FloatArray | float | None = None,
    ) -> None:
        self.spec = spec
        self.silicon = silicon
        self.levels_ghz = [np.asarray(spec.knobs[k].levels_mhz) / 1e3 for k in KNOB_NAMES]
        limit = spec.power_limit_w if power_limit_w is None else power_limit_w
        self.power_limit_w = None if limit is None else np.asarray(limit, float)
        caps = ceiling_mhz or {}
        self.ceiling_ghz = np.array(
            [(caps.get(k) or spec.knobs[k].levels_mhz[-1]) / 1e3 for k in KNOB_NAMES]
        )
        self._delay_s = np.array([spec.knobs[k].delay_s for k in KNOB_NAMES])
        self._caps_only = np.array([spec.knobs[k].mode == "cap" for k in KNOB_NAMES])
        names = list(spec.rails)
        self.total_index = np.array([names.index(r) for r in spec.total_rails])

    def start(self, load: Load, seed: SeedArray, warm: float | FloatArray = 0.5) -> TwinState:
        """Boards that have run ``load`` as found; ``warm`` 0 is ambient, 1 the steady heat."""
        n = len(load)
        clocks = np.broadcast_to(self.ceiling_ghz, (n, 3)).copy()
        ambient = self.ambient_c(n)
        auto = np.full((n, 3), np.nan)
        clocks, cost = self._rest(load, auto, clocks, ambient, self.silicon, EQUILIBRIUM_PASSES)
        rails = rail_watts(cost.component_w, self.spec)
        rise = self.spec.thermal.resistance_k_per_w * self._total(rails)
        return TwinState(
            temperature_c=ambient + np.asarray(warm) * rise,
            governor_ghz=clocks,
            rail_w=rails,
            time_s=cost.time_s,
            window=np.zeros(n, np.int64),
            seed=seed,
            gain=1.0 + self.spec.sensors.gain_spread * board_gain(seed, rails.shape[1]),
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
        total = self._total(rails)
        steps = np.maximum(np.ceil(min_seconds / cost.time_s), min_steps)
        delay = self._transition_s(state, clocks)
        duration = steps * cost.time_s + delay * (1.0 - cost.time_s / state.time_s)
        before = self._total(state.rail_w)
        energy = delay * before + (duration - delay) * total
        outcome = WindowOutcome(
            measured=sense(Sensed(self.spec, cost, rails, clocks, steps), state, self.total_index),
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
        passes = EQUILIBRIUM_PASSES if self._follows(target_mhz) else 0
        _, cost = self._rest(wide, pinned, clocks, temperature, silicon, passes)
        rails = rail_watts(cost.component_w, self.spec)
        return cost.time_s, cost.time_s * self._total(rails)

    def _cost(
        self,
        load: Load,
        clocks_ghz: FloatArray,
        temperature_c: FloatArray,
        silicon: Silicon,
    ) -> StepCost:
        gpu, cpu, emc = clocks_ghz[..., 0], clocks_ghz[..., 1], clocks_ghz[..., 2]
        return step_cost(load, gpu, cpu, emc, temperature_c, self.spec, silicon)

    def _effective(self, target_ghz: FloatArray, governor_ghz: FloatArray) -> FloatArray:
        """Clocks that result from targets (NaN: auto) over the board's own governors."""
        pinned = np.where(np.isnan(target_ghz), governor_ghz, target_ghz)
        capped = np.fmin(target_ghz, governor_ghz)
        clocks: FloatArray = np.where(self._caps_only, capped, pinned)
        return clocks

    def _total(self, rail_w: FloatArray) -> FloatArray:
        """Watts of the total from watts by rail ``[..., rails]``."""
        total: FloatArray = sum_columns(rail_w, self.total_index)
        return total

    def _follows(self, target: FloatArray) -> bool:
        """Whether the board's own governors have a say under ``target``."""
        return bool(np.isnan(target).any() or self._caps_only.any())

    def _rest(
        self,
        load: Load,
        target_ghz: FloatArray,
        clocks_ghz: FloatArray,
        temperature_c: FloatArray,
        silicon: Silicon,
        passes: int,
    ) -> tuple[FloatArray, StepCost]:
        """Clocks and cost after ``passes`` of the governors, within what heat and power allow."""
        throttle = self._throttle(temperature_c)
        clocks = self._effective(target_ghz, clocks_ghz)
        clocks[..., 0] = np.minimum(clocks[..., 0], throttle)
        for _ in range(passes):
            times = step_time(load, clocks[..., 0], clocks[..., 1], clocks[..., 2], self.spec)
            loads = step_loads(load, times, clocks[..., 2], self.spec)
            free = next_clocks(clocks, times, loads, self.ceiling_ghz, self.spec)
            clocks = self._effective(target_ghz, free)
            clocks[..., 0] = np.minimum(clocks[..., 0], throttle)
        cost = self._cost(load, clocks, temperature_c, silicon)
        return self._power_limited(load, clocks, temperature_c, silicon, cost)

    def _power_limited(
        self,
        load: Load,
        clocks_ghz: FloatArray,
        temperature_c: FloatArray,
        silicon: Silicon,
        cost: StepCost,
    ) -> tuple[FloatArray, StepCost]:
        if self.power_limit_w is None:
            return clocks_ghz, cost
        limit = self.power_limit_w
        if 0 < limit.ndim < cost.time_s.ndim:
            limit = limit[:, None]  # a limit for each board stands against a grid of settings

        def watts(gpu_ghz: FloatArray) -> FloatArray:
            clocks_ghz[..., 0] = gpu_ghz
            return busy_watts(load, clocks_ghz, temperature_c, self.spec, silicon)

        free, floor = clocks_ghz[..., 0].copy(), float(self.levels_ghz[0][0])
        clocks_ghz[..., 0] = gpu_within_limit(watts, free, floor, limit, self.spec.power_softness)
        return clocks_ghz, self._cost(load, clocks_ghz, temperature_c, silicon)

    def _settle(
        self, state: TwinState, target_mhz: FloatArray, load: Load
    ) -> tuple[FloatArray, StepCost]:
        passes = WINDOW_PASSES if self._follows(target_mhz) else 0
        target, stand = target_mhz / 1e3, state.governor_ghz
        return self._rest(load, target, stand, state.temperature_c, self.silicon, passes)

    def _throttle(self, temperature_c: FloatArray) -> FloatArray:
        thermal = self.spec.thermal
        over = np.maximum(temperature_c - thermal.trip_c, 0.0) * thermal.trip_slope_per_k
        ceiling = self.ceiling_ghz[0] * np.maximum(1.0 - over, 0.0)
        limited: FloatArray = np.maximum(ceiling, self.levels_ghz[0][0])
        return limited

    def _transition_s(self, state: TwinState, clocks_ghz: FloatArray) -> FloatArray:
        """Seconds until the slowest changed clock is effective."""
        changed = np.abs(clocks_ghz - state.governor_ghz) > 1e-6
        delays = changed * self._delay_s
        slowest: FloatArray = np.maximum(np.maximum(delays[:, 0], delays[:, 1]), delays[:, 2])
        return slowest

    def _advance(
        self,
        state: TwinState,
        cost: StepCost,
        rails: FloatArray,
        clocks_ghz: FloatArray,
        duration_s: FloatArray,
    ) -> TwinState:
        thermal = self.spec.thermal
        total = self._total(rails)
        steady = self.ambient_c(len(total)) + thermal.resistance_k_per_w * total
        decay = np.exp(-duration_s / thermal.time_constant_s)
        return TwinState(
            temperature_c=steady + (state.temperature_c - steady) * decay,
            governor_ghz=clocks_ghz,
            rail_w=rails,
            time_s=cost.time_s,
            window=state.window + 1,
            seed=state.seed,
            gain=state.gain,
        )
