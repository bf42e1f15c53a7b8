"""`TwinBoard`: one twin behind the `Board` seam, in emulated time.

No clock of the host changes and nothing is metered: `advance` computes how long a step takes and
what it draws, moves the board's own clock on, and leaves the readings that its sensors would have
given in between.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import numpy as np

from rlgov.boards.base import KNOB_NAMES, Board, BoardState, Knob, Reading, Setting
from rlgov.boards.twin.model import TwinModel
from rlgov.boards.twin.physics import NOMINAL, Load, Silicon
from rlgov.boards.twin.spec import TwinSpec
from rlgov.errors import ConfigError, LeaseError
from rlgov.work import FloatArray

IDLE_STEP_S = 0.05
"""Longest stretch of idling computed at once, so that the sensors' lag is seen."""


class TwinBoard(Board):
    """An emulated board.

    Args:
        spec: The board.
        seed: Seed of sensor and timing noise.
        silicon: How this piece differs from the spec.
        mode: Power mode it is found in; the spec's first by default.
        warm: Heat at the start: 0 ambient, 1 the steady state of an idle board.
    """

    emulated = True

    def __init__(
        self,
        spec: TwinSpec,
        seed: int = 0,
        silicon: Silicon = NOMINAL,
        mode: str | None = None,
        warm: float = 1.0,
    ) -> None:
        self.spec = spec
        self.name = spec.name
        self.rails = tuple(spec.rails)
        self.sensor_lag_s = spec.sensors.lag_s
        self.total_rule = spec.total_rule
        ceilings = spec.ceilings(mode)
        self._knobs = spec.board_knobs(ceilings)
        self._model = TwinModel(spec, silicon, ceilings)
        self._slowest_s = max(knob.delay_s for knob in spec.knobs.values())
        self._rng = np.random.default_rng([seed, 2])
        self._setting = Setting()
        self._t_s = 0.0
        self._next_sample_s = 0.0
        seeds = np.array([seed], np.uint64)
        self._state = self._model.start(_idle_load(IDLE_STEP_S), seeds, warm)
        self._filtered_w = self._state.rail_w[0].copy()
        self._gain = 1.0 + spec.sensors.gain_spread * self._rng.standard_normal(len(self.rails))
        self._loads = np.zeros(3)
        self._queue: deque[Reading] = deque()
        self._latest = self._sample(self._t_s)

    @property
    def knobs(self) -> Sequence[Knob]:
        """The offered knobs, with the mode's caps as ceilings."""
        return self._knobs

    def now_s(self) -> float:
        """Emulated seconds since this board began."""
        return self._t_s

    def read(self) -> Reading:
        """The newest values that the sensors have shown."""
        return self._latest

    def drain(self) -> list[Reading]:
        """Every reading since the last call, in order of time."""
        readings = list(self._queue)
        self._queue.clear()
        return readings

    def apply(self, setting: Setting) -> Setting:
        """Set the targets; they take effect after each knob's delay."""
        self.check(setting)
        for knob in self._knobs:
            wanted = setting[knob.name]
            if wanted is not None and wanted > knob.allowed_mhz[-1] + 1e-3:
                raise ConfigError(
                    f"{knob.name}={wanted:g} MHz is above the as-found maximum "
                    f"{knob.allowed_mhz[-1]:g} MHz of board {self.name}"
                )
        self._setting = setting
        return setting

    def capture(self) -> BoardState:
        """The targets in force, by knob (empty: auto)."""
        values = {k: "" if v is None else repr(v) for k, v in self._setting.items()}
        return BoardState(self.name, values)

    def restore(self, state: BoardState) -> None:
        """Put the captured targets back."""
        if state.board != self.name:
            raise LeaseError(f"this state is of board {state.board}, not of {self.name}")
        self._setting = Setting(**{k: float(v) if v else None for k, v in state.values.items()})

    def advance(self, load: Load) -> float:
        """Run one step of ``load`` (one job) and return the emulated time of its end."""
        outcome, state = self._model.window(self._state, self._targets(), load, 1, 0.0)
        self._loads = outcome.measured.utilisation[0]
        self._state = state
        step_s = float(outcome.true_step_time_s[0])
        noise = float(outcome.measured.step_time_s[0]) / step_s
        # The model takes the last window's load for the same as this one's; after a pause, or a
        # batch of another size, it is not, and no transition lasts longer than the slowest knob's.
        late_s = float(outcome.duration_s[0]) - step_s
        bound_s = min(self._slowest_s, 0.5 * step_s)
        self._elapse((step_s + min(max(late_s, -bound_s), bound_s)) * noise)
        return self._t_s

    def idle(self, seconds: float) -> float:
        """Let ``seconds`` pass without work and return the emulated time."""
        end_s = self._t_s + max(seconds, 0.0)
        while self._t_s < end_s - 1e-9:
            stretch = min(IDLE_STEP_S, end_s - self._t_s)
            load = _idle_load(stretch)
            _, self._state = self._model.window(self._state, self._targets(), load, 1, 0.0)
            self._loads = np.zeros(3)
            self._elapse(stretch)
        return self._t_s

    def best_targets(self, load: Load, budget: float) -> FloatArray:
        """The noise-free best static setting for ``load``, ``[1, 3]`` with NaN for auto.

        Least joules a step among every combination of the tables and auto whose step takes at most
        ``1 + budget`` times as long as found. For the oracle only.
        """
        offered = {knob.name: knob.allowed_mhz for knob in self._knobs}
        columns = [[*offered.get(name, ()), np.nan] for name in KNOB_NAMES]
        mesh = np.meshgrid(*columns, indexing="ij")
        settings = np.stack([m.ravel() for m in mesh], axis=-1)
        time_s, step_j = self._model.grid_cost(load, settings, self._state.temperature_c)
        as_found_s = time_s[0, -1]
        allowed = time_s[0] <= (1.0 + budget) * as_found_s * (1.0 + 1e-9)
        best = np.argmin(np.where(allowed, step_j[0], np.inf))
        return settings[best : best + 1]

    def _targets(self) -> FloatArray:
        values = [self._setting[k] for k in KNOB_NAMES]
        return np.array([[np.nan if v is None else v for v in values]])

    def _elapse(self, seconds: float) -> None:
        """Move the clock on, leaving a reading at every refresh of the sensors."""
        sensors = self.spec.sensors
        end_s = self._t_s + seconds
        while self._next_sample_s <= end_s:
            share = 1.0 - np.exp(-sensors.refresh_s / max(sensors.lag_s, 1e-9))
            self._filtered_w += (self._state.rail_w[0] - self._filtered_w) * share
            self._latest = self._sample(self._next_sample_s)
            self._queue.append(self._latest)
            self._next_sample_s += sensors.refresh_s
        self._t_s = end_s

    def _sample(self, t_s: float) -> Reading:
        sensors = self.spec.sensors
        noise = 1.0 + sensors.noise * self._rng.standard_normal(len(self.rails))
        watts = self._filtered_w * self._gain * noise
        watts = np.round(watts / sensors.quantum_w) * sensors.quantum_w
        clocks = self._state.governor_ghz[0] * 1e3
        total = float(watts[self._model.total_index].sum())
        return Reading(
            t_s=t_s,
            power_w=dict(zip(self.rails, watts.tolist(), strict=True)),
            total_w=total,
            clocks_mhz=dict(zip(KNOB_NAMES, clocks.tolist(), strict=True)),
            utilisation=dict(zip(KNOB_NAMES, self._loads.tolist(), strict=True)),
            temperature_c={"tj": float(np.round(self._state.temperature_c[0], 1))},
        )


def _idle_load(seconds: float) -> Load:
    """A "step" that only lets time pass."""
    phases, one = np.zeros((1, 3)), np.zeros(1)
    return Load(
        gpu_gcycle=phases,
        mem_gcycle=phases,
        host_gcycle=phases,
        gpu_j=phases,
        soc_j=one,
        mem_j=one,
        loader_gcycle=one,
        loader_workers=one,
        fixed_s=np.array([seconds]),
        spin=one,
    )
