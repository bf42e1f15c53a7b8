"""`SysfsBoard`: a board whose knobs and sensors are the kernel's files."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

from rlgov.boards.base import Board, BoardState, Knob, Reading, Setting
from rlgov.boards.clocks import ClockKnob
from rlgov.boards.sensors import Collected, Sensor, Thermals
from rlgov.boards.sysfs import GONE, Tree, refused, why
from rlgov.boards.totals import NO_RULE, SUM_RULE, total_w
from rlgov.errors import BoardError, ConfigError, LeaseError

SETTLE_S = 0.1
"""Clocks have changed by then (13 to 57 ms were measured on the slowest)."""

COOL_WAIT_S = 60.0
"""How long to wait for a board to cool before its as-found limits are taken down."""


class SysfsBoard(Board):
    """Knobs and sensors over a `Tree`.

    A knob is offered when its table has levels and its files can be written; `refused` says why
    the others are not. Limits in force at the start are its ceilings.

    Attributes:
        kind: Kind of back-end, as in ``board=KIND``.
        rail_roles: Rail -> what it mostly feeds (``gpu``, ``cpu``, ``mem``, ``sys``).
        refused: Knob -> why it cannot be set.
        facts: What the board is, for people: model, release, where tables come from.
        closers: Called once by `close`, for sensors that hold something open.

    Args:
        name: See `Board`.
        tree: The board's files.
        clocks: Its knobs, in any order.
        sensors: Its sensors; the first is asked first.
        rails: See `Board`.
        rule: A rail's name, ``sum_of_rails`` or ``none`` (`rlgov.boards.totals`).
        rule_text: The rule in words.
        summed: With ``sum_of_rails``: the rails that count; all by default.
        settle_s: Seconds between a write and reading back.
        cool_wait_s: See `COOL_WAIT_S`.
        sleep: For tests.
        now: Monotonic clock.
    """

    kind = "sysfs"
    emulated = False

    def __init__(
        self,
        name: str,
        tree: Tree,
        clocks: Sequence[ClockKnob],
        sensors: Sequence[Sensor],
        rails: Sequence[str],
        rule: str,
        rule_text: str,
        *,
        summed: Sequence[str] | None = None,
        settle_s: float = SETTLE_S,
        cool_wait_s: float = COOL_WAIT_S,
        sleep: Callable[[float], None] = time.sleep,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self.name = name
        self.tree = tree
        self.rails = tuple(rails)
        self.total_rule = rule_text
        self.rail_roles: Mapping[str, str] = {}
        self.facts: dict[str, str] = _whose(tree)
        self.refused: dict[str, str] = {}
        self.closers: list[Callable[[], None]] = []
        self._rule = rule
        self._summed = frozenset(rails if summed is None else summed)
        self._sensors = tuple(sensors)
        self._settle_s, self._cool_wait_s = settle_s, cool_wait_s
        self._sleep, self._now = sleep, now
        self._all = tuple(clocks)
        self._clocks = tuple(clock for clock in clocks if self._usable(clock))
        self._setting = Setting()
        self._look()

    @property
    def knobs(self) -> Sequence[Knob]:
        """The knobs that can be set, with the limits found at the start as ceilings."""
        return self._knobs

    def now_s(self) -> float:
        """Seconds of the kernel's monotonic clock."""
        return self._now()

    def read(self) -> Reading:
        """Look at every sensor once."""
        part = Collected(self._now())
        for sensor in self._sensors:
            sensor.collect(part)
        for clock in self._all:
            read = clock.clock_mhz()
            part.clocks_mhz[clock.name] = read.value
            if read.value is None:
                part.missing[f"{clock.name} clock"] = read.reason
        if part.says_nothing():
            raise BoardError(f"no sensor of board {self.name} can be read: {_listed(part.missing)}")
        return part.reading(self._total(part.power_w))

    def apply(self, setting: Setting) -> Setting:
        """Write, wait for the clocks to settle, and read back what is in force."""
        self.check(setting)
        self._check_ceilings(setting)
        before = self._contents()
        try:
            self._write(setting)
        except OSError as error:
            self._put_back(before, "put back to its last setting")
            raise refused(f"{setting} of board {self.name}", error) from error
        self._setting = setting
        self._sleep(self._settle_s)
        self._written = self._contents()
        return self.effective()

    def effective(self) -> Setting:
        """The setting in force, by read-back: another's limit or heat may have the last word."""
        values: dict[str, float | None] = {}
        for clock, knob in zip(self._clocks, self._knobs, strict=True):
            if self._setting[clock.name] is not None:
                values[clock.name] = _on_table(clock.limit_mhz(), knob.levels_mhz)
        return Setting(**values)

    def drift(self) -> dict[str, str]:
        """Files that no longer hold what they held after the last write: file -> what changed."""
        now = self._contents()
        live = {file for clock in self._clocks for file in clock.live}
        return {
            file: f"{text.strip()} -> {now.get(file, 'gone').strip()}"
            for file, text in self._written.items()
            if file not in live and now.get(file, "gone") != text
        }

    def capture(self) -> BoardState:
        """Content of every file that may be written.

        Before the first `apply` this waits for cooling to end: limits that heat holds down are not
        as found.

        Raises:
            BoardError: The board stays too hot to tell its limits.
        """
        if self._setting == Setting():
            self._wait_cool()
            self._look()
        return BoardState(self.name, self._contents())

    def restore(self, state: BoardState) -> None:
        """Write every prior content back, in the order the board takes."""
        if state.board != self.name:
            raise LeaseError(f"this state is of board {state.board}, not of {self.name}")
        self._put_back(state.values, "given back")
        self._setting = Setting()
        self._look()

    def close(self) -> None:
        """Let go of what sensors hold; never changes a clock."""
        while self.closers:
            self.closers.pop()()

    def _usable(self, clock: ClockKnob) -> bool:
        if not clock.levels_mhz():
            self.refused[clock.name] = "the board gives no table of its levels"
            return False
        faults = [(f, e) for f in clock.files if (e := self.tree.writer.refusal(f)) is not None]
        # A cluster that is offline takes no part; a knob needs one domain at least.
        serious = [(f, e) for f, e in faults if e.errno not in GONE]
        if serious or len(faults) == len(clock.files):
            file, error = (serious or faults)[0]
            self.refused[clock.name] = f"{file}: {why(error)}"
        return clock.name not in self.refused

    def _look(self) -> None:
        """Take down limits as found."""
        self._found = self._contents()
        self._written = dict(self._found)
        self._knobs = [clock.knob(clock.limit_mhz()) for clock in self._clocks]

    def _contents(self) -> dict[str, str]:
        texts = {f: self.tree.raw(f).value for clock in self._clocks for f in clock.files}
        return {file: text for file, text in texts.items() if text is not None}

    def _nearest(self, clock: ClockKnob, mhz: float) -> float:
        """A level of the table as it is now: a change of power mode may have shortened it."""
        levels = clock.levels_mhz()
        return max((v for v in levels if v <= mhz * (1 + 1e-6)), default=min(levels, default=mhz))

    def _check_ceilings(self, setting: Setting) -> None:
        for knob in self._knobs:
            wanted = setting[knob.name]
            if wanted is not None and wanted > knob.allowed_mhz[-1] + 1e-3:
                raise ConfigError(
                    f"{knob.name}={wanted:g} MHz is above the as-found maximum "
                    f"{knob.allowed_mhz[-1]:g} MHz of board {self.name}"
                )

    def _write(self, setting: Setting) -> None:
        for clock in self._clocks:
            wanted = setting[clock.name]
            if wanted is None:
                clock.put_back(self._found)
            else:
                clock.set(self._nearest(clock, wanted), self._found)

    def _put_back(self, values: Mapping[str, str], what: str) -> None:
        """Every knob as it was, whatever happens to the others."""
        faults = [fault for clock in self._all if (fault := _fault(clock, values))]
        if faults:
            raise BoardError(f"board {self.name} could not be {what}: {'; '.join(faults)}")

    def _wait_cool(self) -> None:
        thermals = Thermals(self.tree)
        waited_s = 0.0
        while hot := [name for name, state in thermals.cooling().items() if state > 0]:
            if waited_s >= self._cool_wait_s:
                raise BoardError(
                    f"board {self.name} is holding its clocks down against heat "
                    f"({', '.join(hot)}), so its as-found limits cannot be told; let it cool"
                )
            self._sleep(1.0)
            waited_s += 1.0

    def _total(self, power_w: Mapping[str, float]) -> float | None:
        if self._rule == NO_RULE:
            return None
        if self._rule != SUM_RULE:
            value = power_w.get(self._rule)
            return None if value is None else max(value, 0.0)
        if not self._summed or not self._summed <= power_w.keys():
            return None  # a sum that lacks a rail is a smaller figure, not an estimate
        parts = {rail.lower(): power_w[rail] for rail in self._summed}
        return total_w(parts, SUM_RULE)


def _whose(tree: Tree) -> dict[str, str]:
    """Says so where the files are not this machine's own."""
    return {} if str(tree.root) == "/" else {"files below": str(tree.root)}


def _fault(clock: ClockKnob, values: Mapping[str, str]) -> str:
    """Put one knob back; what failed, in words, or nothing."""
    try:
        clock.put_back(values)
    except OSError as error:
        return "" if error.errno in GONE else f"{clock.name}: {why(error)}"
    return ""


def _on_table(mhz: float | None, levels: Sequence[float]) -> float | None:
    """The level that a read-back stands for, or the read-back itself where it is none."""
    if mhz is None or not levels:
        return mhz
    nearest = min(levels, key=lambda level: abs(level - mhz))
    return nearest if abs(nearest - mhz) <= 0.01 * nearest else mhz


def _listed(missing: Mapping[str, str]) -> str:
    return "; ".join(f"{name}: {reason}" for name, reason in missing.items()) or "it has none"
