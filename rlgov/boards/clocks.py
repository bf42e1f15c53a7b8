"""Knobs made of kernel files: a range per clock domain, a cap, or a lock.

Kernel units (Hz, kHz) live here and in whoever builds these; outward everything is MHz.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rlgov.boards.base import ApplyMode, Knob
from rlgov.boards.sysfs import GONE, Number, Tree, write_range

KHZ = 1e3
HZ = 1e6
"""Kernel units in a MHz."""


class ClockKnob(ABC):
    """One knob of a board of files.

    Attributes:
        name: One of `rlgov.boards.base.KNOB_NAMES`.
        mode: See `Knob`.
        files: Every file it may write.
        source: Where its table comes from, for people.
        live: Of ``files``, those that also move by themselves.
    """

    name: str
    mode: ApplyMode
    files: tuple[str, ...]
    source: str
    live: tuple[str, ...] = ()

    @abstractmethod
    def levels_mhz(self) -> tuple[float, ...]:
        """The table as the board has it now; empty where it has none."""

    @abstractmethod
    def limit_mhz(self) -> float | None:
        """The maximum in force."""

    @abstractmethod
    def clock_mhz(self) -> Number:
        """The clock it runs at; 0 while it is powered down."""

    @abstractmethod
    def set(self, mhz: float, found: Mapping[str, str]) -> None:
        """Set the level.

        Raises:
            OSError: The board refused; the files are as they were.
        """

    @abstractmethod
    def put_back(self, values: Mapping[str, str]) -> None:
        """Write prior contents back, in the order that the board takes.

        Raises:
            OSError: The board refused.
        """

    def knob(self, ceiling_mhz: float | None) -> Knob:
        """As the seam has it."""
        return Knob(self.name, self.levels_mhz(), self.mode, ceiling_mhz)


@dataclass(frozen=True)
class ClockRange:
    """One clock domain: files of its bounds and of its clock.

    Attributes:
        low: File of the minimum.
        high: File of the maximum.
        current: File of the clock.
        table: File of the levels; empty where the kernel has none.
        unit: Kernel units in a MHz.
        levels: Levels in kernel units where ``table`` is empty.
    """

    low: str
    high: str
    current: str
    table: str
    unit: float
    levels: tuple[float, ...] = ()


class RangeKnob(ClockKnob):
    """Pins every domain of a knob: minimum = maximum.

    A domain that lacks the level takes the highest one below it, and none is raised above its own
    as-found maximum. Domains that vanish (an offlined cluster) are left alone.
    """

    mode: ApplyMode = "pin"

    def __init__(self, name: str, tree: Tree, ranges: Sequence[ClockRange], source: str) -> None:
        self.name = name
        self.source = source
        self._tree = tree
        self._ranges = tuple(ranges)
        self.files = tuple(file for r in self._ranges for file in (r.low, r.high))

    def levels_mhz(self) -> tuple[float, ...]:
        """The longest of the domains' tables that reach highest."""
        tables = [tuple(level / r.unit for level in self._levels(r)) for r in self._ranges]
        return max(tables, key=lambda t: (t[-1] if t else 0.0, len(t)), default=())

    def limit_mhz(self) -> float | None:
        """The highest maximum of any domain."""
        known = [v for r in self._ranges if (v := self._tree.number(r.high).value) is not None]
        return max(known) / self._ranges[0].unit if known else None

    def clock_mhz(self) -> Number:
        """Mean over the domains that are there."""
        read = [self._tree.number(r.current, 1.0 / r.unit) for r in self._ranges]
        known = [n.value for n in read if n.value is not None]
        return Number(sum(known) / len(known)) if known else read[0]

    def set(self, mhz: float, found: Mapping[str, str]) -> None:
        """Pin every domain that is there."""
        before = {file: self._tree.raw(file).value for file in self.files}
        try:
            for part in self._ranges:
                level = self._level(part, mhz, found.get(part.high))
                self._write(part, f"{level:.0f}\n", f"{level:.0f}\n")
        except OSError:
            self.put_back({file: text for file, text in before.items() if text is not None})
            raise

    def put_back(self, values: Mapping[str, str]) -> None:
        """Bounds as they were; what already holds its prior text is not written."""
        for part in self._ranges:
            low, high = values.get(part.low), values.get(part.high)
            if low is None or high is None:
                continue
            if (self._tree.raw(part.low).value, self._tree.raw(part.high).value) != (low, high):
                self._write(part, low, high)

    def _levels(self, part: ClockRange) -> tuple[float, ...]:
        return part.levels or self._tree.numbers(part.table)

    def _level(self, part: ClockRange, mhz: float, found_high: str | None) -> float:
        levels = self._levels(part) or (mhz * part.unit,)
        limit = mhz * part.unit
        if found_high is not None:
            limit = min(limit, float(found_high))
        return max((v for v in levels if v <= limit * (1 + 1e-6)), default=levels[0])

    def _write(self, part: ClockRange, low: str, high: str) -> None:
        try:
            write_range(self._tree, (part.low, low), (part.high, high))
        except OSError as error:
            if error.errno not in GONE:
                raise


class CapKnob(ClockKnob):
    """A ceiling only: the clock may run lower by itself.

    Args:
        name: The knob.
        tree: The board's files.
        file: The cap, in Hz. Reading it gives the highest rate it allows (0: no cap at all).
        current: File of the clock, in Hz; empty where there is none.
        levels: The rates, in Hz.
        source: See `ClockKnob`.
    """

    mode: ApplyMode = "cap"

    def __init__(
        self, name: str, tree: Tree, file: str, current: str, levels: Sequence[float], source: str
    ) -> None:
        self.name = name
        self.source = source
        self.files = (file,)
        self._tree = tree
        self._file = file
        self._current = current
        self._levels = tuple(levels)

    def levels_mhz(self) -> tuple[float, ...]:
        """The rates that the cap is rounded to."""
        return tuple(level / HZ for level in self._levels)

    def limit_mhz(self) -> float | None:
        """The cap in force."""
        cap = self._tree.number(self._file, 1.0 / HZ).value
        return self._levels[-1] / HZ if not cap else min(cap, self._levels[-1] / HZ)

    def clock_mhz(self) -> Number:
        """The memory's clock; the cap is not it."""
        if not self._current:
            return Number(None, "the memory's clock needs debugfs (root)")
        return self._tree.number(self._current, 1.0 / HZ)

    def set(self, mhz: float, found: Mapping[str, str]) -> None:
        """Write the cap."""
        self._tree.write(self._file, f"{mhz * HZ:.0f}\n")

    def put_back(self, values: Mapping[str, str]) -> None:
        """Write the prior cap."""
        prior = values.get(self._file)
        if prior is not None and self._tree.raw(self._file).value != prior:
            self._tree.write(self._file, prior)


class LockKnob(ClockKnob):
    """A rate that holds once switches are on (the memory clock through debugfs).

    Args:
        name: The knob.
        tree: The board's files.
        rate: File that takes the rate, in Hz.
        switches: Files that hold the rate while they are 1; the first one is the lock itself.
        current: File of the clock, in Hz.
        levels: The rates, in Hz.
        cap: File of the power mode's cap in Hz, 0 for none; empty where there is none.
        lock_first: Whether switches go before the rate (kernels since 5.15).
        source: See `ClockKnob`.
    """

    mode: ApplyMode = "pin"

    def __init__(
        self,
        name: str,
        tree: Tree,
        rate: str,
        switches: Sequence[str],
        current: str,
        levels: Sequence[float],
        cap: str,
        lock_first: bool,
        source: str,
    ) -> None:
        self.name = name
        self.source = source
        self.files = (rate, *switches)
        self.live = (rate,)
        self._tree = tree
        self._rate, self._switches, self._current = rate, tuple(switches), current
        self._levels = tuple(levels)
        self._cap = cap
        self._lock_first = lock_first

    def levels_mhz(self) -> tuple[float, ...]:
        """The memory controller's rates."""
        return tuple(level / HZ for level in self._levels)

    def limit_mhz(self) -> float | None:
        """The locked rate, or what the power mode allows."""
        if self._locked():
            return self._tree.number(self._rate, 1.0 / HZ).value
        cap = self._tree.number(self._cap, 1.0 / HZ).value if self._cap else None
        return self._levels[-1] / HZ if not cap else min(cap, self._levels[-1] / HZ)

    def clock_mhz(self) -> Number:
        """The memory's clock."""
        return self._tree.number(self._current, 1.0 / HZ)

    def set(self, mhz: float, found: Mapping[str, str]) -> None:
        """Lock the rate."""
        before = {file: self._tree.raw(file).value for file in self.files}
        rate = (self._rate, f"{mhz * HZ:.0f}\n")
        on = [(file, "1\n") for file in self._switches]
        try:
            for file, text in [*on, rate] if self._lock_first else [rate, *on]:
                self._tree.write(file, text)
        except OSError:
            self._undo({file: text for file, text in before.items() if text is not None}, True)
            raise

    def put_back(self, values: Mapping[str, str]) -> None:
        """The prior rate while it is still locked, then the switches: an unlocked rate is free."""
        self._undo(values, self._locked())

    def _undo(self, values: Mapping[str, str], rate_too: bool) -> None:
        prior = values.get(self._rate)
        if prior is not None and rate_too and self._tree.raw(self._rate).value != prior:
            self._tree.write(self._rate, prior)
        for file in self._switches:
            text = values.get(file)
            if text is not None and self._tree.raw(file).value != text:
                self._tree.write(file, text)

    def _locked(self) -> bool:
        return self._tree.number(self._switches[0]).value == 1.0
