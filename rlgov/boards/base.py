"""What a board is: knobs to turn, sensors to read, a state to give back.

The contract of this file is checked by ``tests/conformance/board_contract.py``, which every board
passes. Nothing outside ``rlgov.boards`` knows a path of the kernel's or a vendor's unit.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from rlgov.errors import ConfigError

KNOB_NAMES = ("gpu", "cpu", "emc")
"""Every knob there is, in the order of every array that has a knob axis."""

ApplyMode = Literal["pin", "cap"]


@dataclass(frozen=True)
class Knob:
    """One clock that can be set.

    Attributes:
        name: One of `KNOB_NAMES`.
        levels_mhz: The board's own table, ascending.
        mode: ``pin`` sets minimum and maximum, ``cap`` the ceiling only.
        ceiling_mhz: As-found maximum (the power mode's cap); no level above it is used.
    """

    name: str
    levels_mhz: tuple[float, ...]
    mode: ApplyMode = "pin"
    ceiling_mhz: float | None = None

    @property
    def allowed_mhz(self) -> tuple[float, ...]:
        """The levels at or below the ceiling (at least the lowest)."""
        if self.ceiling_mhz is None:
            return self.levels_mhz
        allowed = tuple(m for m in self.levels_mhz if m <= self.ceiling_mhz * (1 + 1e-6))
        return allowed or self.levels_mhz[:1]


@dataclass(frozen=True)
class Setting(Mapping[str, "float | None"]):
    """One target per knob in MHz; ``None`` is ``auto``, the as-found range.

    A mapping over `KNOB_NAMES`, so ``setting["gpu"]`` and ``dict(setting)`` work.
    """

    gpu: float | None = None
    cpu: float | None = None
    emc: float | None = None

    def __getitem__(self, knob: str) -> float | None:
        if knob not in KNOB_NAMES:
            raise KeyError(knob)
        value: float | None = getattr(self, knob)
        return value

    def __iter__(self) -> Iterator[str]:
        return iter(KNOB_NAMES)

    def __len__(self) -> int:
        return len(KNOB_NAMES)

    def __str__(self) -> str:
        return " ".join(f"{k} {'auto' if v is None else f'{v:g}'}" for k, v in self.items())


AS_FOUND = Setting()
"""Every knob left as it was found."""


@dataclass(frozen=True)
class Reading:
    """One look at every sensor. A sensor that says nothing is absent or ``None``, never zero.

    Attributes:
        t_s: When the values were taken, on the board's monotonic clock.
        power_w: Watts by rail.
        total_w: Board total by `Board.total_rule`; ``None`` when it cannot be formed.
        clocks_mhz: Clock each knob really runs at.
        utilisation: Busy share of each knob's unit, 0 to 1.
        temperature_c: Degrees by zone.
        missing: Sensor name -> why it said nothing.
        throttle: Counts since boot of over-current events, states of cooling devices in force and
            the like: a rise says that the board held its clocks back by itself.
    """

    t_s: float
    power_w: Mapping[str, float] = field(default_factory=dict)
    total_w: float | None = None
    clocks_mhz: Mapping[str, float | None] = field(default_factory=dict)
    utilisation: Mapping[str, float | None] = field(default_factory=dict)
    temperature_c: Mapping[str, float | None] = field(default_factory=dict)
    missing: Mapping[str, str] = field(default_factory=dict)
    throttle: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class BoardState:
    """Everything `Board.restore` needs, as plain JSON values, so that it survives on disk."""

    board: str
    values: Mapping[str, str]


class Board(ABC):
    """A board: see the module's docstring for who implements it.

    Attributes:
        name: Name of the board, as in ``board=NAME``.
        emulated: True where times and joules come from a model and nothing was metered.
        sensor_lag_s: Time constant of the power sensors' own averaging.
        rails: Names of the power rails, in a stable order.
        total_rule: How `Reading.total_w` is formed, in words fit for a report.
    """

    name: str
    emulated: bool
    sensor_lag_s: float = 0.5
    rails: tuple[str, ...]
    total_rule: str

    @property
    @abstractmethod
    def knobs(self) -> Sequence[Knob]:
        """The knobs this board offers, in the order of `KNOB_NAMES`; it may lack some."""

    @abstractmethod
    def now_s(self) -> float:
        """The board's monotonic clock, in seconds; step events are stamped with the same clock."""

    @abstractmethod
    def read(self) -> Reading:
        """Look at every sensor once.

        Raises:
            BoardError: No sensor could be read at all.
        """

    @abstractmethod
    def apply(self, setting: Setting) -> Setting:
        """Turn the knobs and return the setting that took effect.

        Raises:
            ConfigError: A value that is not in the knob's table, or a knob that is not offered.
            BoardError: The board refused the write; the earlier setting is back in force.
        """

    @abstractmethod
    def capture(self) -> BoardState:
        """The state to give back; taken before the first `apply`."""

    @abstractmethod
    def restore(self, state: BoardState) -> None:
        """Put back exactly what `capture` saw. Idempotent.

        Raises:
            LeaseError: ``state`` belongs to another board.
            BoardError: A value could not be written back.
        """

    def close(self) -> None:
        """Release handles; never changes a clock. Boards that hold none inherit this no-op."""
        return

    def knob(self, name: str) -> Knob:
        """The knob called ``name``.

        Raises:
            ConfigError: The board does not offer it.
        """
        for knob in self.knobs:
            if knob.name == name:
                return knob
        offered = ", ".join(k.name for k in self.knobs) or "none"
        raise ConfigError(f"board {self.name} has no knob {name!r}; it offers: {offered}")

    def check(self, setting: Setting) -> None:
        """Refuse a setting that is not of this board's tables.

        Raises:
            ConfigError: With the unit that was likely meant, where a factor of 1000 fits.
        """
        for name, value in setting.items():
            if value is None:
                continue
            levels = self.knob(name).levels_mhz
            if any(abs(value - level) <= 1e-3 for level in levels):
                continue
            raise ConfigError(_off_table(self.name, name, value, levels))


def _off_table(board: str, knob: str, value: float, levels: Sequence[float]) -> str:
    text = (
        f"{knob}={value:g} MHz is not a level of board {board}; "
        f"its table is {', '.join(f'{level:g}' for level in levels)} MHz"
    )
    for factor, unit in ((1e3, "kHz"), (1e6, "Hz"), (1e-3, "GHz")):
        if levels[0] * 0.95 <= value / factor <= levels[-1] * 1.05:
            return f"{text} (was {value:g} meant in {unit}? settings are in MHz)"
    nearest = min(levels, key=lambda level: abs(level - value))
    return f"{text} (the nearest is {nearest:g})"
