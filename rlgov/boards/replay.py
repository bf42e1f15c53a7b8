"""A measured profile as a board: what one job cost at each setting, replayed (see `Surface`)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rlgov.boards.base import Board, BoardState, Knob, Reading, Setting
from rlgov.boards.surface import Surface
from rlgov.errors import BoardError, ConfigError, LeaseError
from rlgov.work import FloatArray


class ReplayBoard(Board):
    """A `Surface` behind the `Board` seam, in emulated time.

    Args:
        surface: What was measured.
        name: Name of the board.
    """

    emulated = True

    def __init__(self, surface: Surface, name: str = "replay") -> None:
        self.name = name
        self.surface = surface
        self.rails = tuple(key[5:] for key in surface.figures if key.startswith("rail "))
        self.total_rule = surface.scope or "as the profile has it"
        self._knobs = surface.knobs()
        self._setting = Setting()
        self._t_s = 0.0

    @property
    def knobs(self) -> Sequence[Knob]:
        """The knobs that the profile varies."""
        return self._knobs

    def now_s(self) -> float:
        """Emulated seconds since this board began."""
        return self._t_s

    def read(self) -> Reading:
        """Power at the present setting; the profile knows neither utilisation nor heat."""
        rails = {rail: self._figure(f"rail {rail}") for rail in self.rails}
        time_s, energy_j = self._figure("time_s"), self._figure("energy_j")
        total = None if time_s is None or energy_j is None else energy_j / time_s
        unknown = {rail: "not measured" for rail, watts in rails.items() if watts is None}
        if total is None:
            unknown["total"] = "not measured"
        return Reading(
            t_s=self._t_s,
            power_w={rail: watts for rail, watts in rails.items() if watts is not None},
            total_w=total,
            clocks_mhz=dict(self._setting),
            missing=unknown,
        )

    def apply(self, setting: Setting) -> Setting:
        """Set the targets, which must be measured ones."""
        self.check(setting)
        if not self.surface.covers(_row(setting))[0]:
            raise ConfigError(f"{setting} lies outside of the measured settings")
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

    def advance(self, steps: int = 1) -> float:
        """Let the job take ``steps`` steps at the present setting and return the emulated time.

        Raises:
            BoardError: No step time was measured there.
        """
        time_s = self._figure("time_s")
        if time_s is None:
            raise BoardError(f"the profile has no step time at {self._setting}")
        self._t_s += steps * time_s
        return self._t_s

    def _figure(self, name: str) -> float | None:
        value = float(self.surface.at(name, _row(self._setting))[0])
        return value if np.isfinite(value) else None


def _row(setting: Setting) -> FloatArray:
    return np.array([[np.nan if v is None else v for v in setting.values()]], float)
