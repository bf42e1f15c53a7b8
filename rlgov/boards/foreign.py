"""Somebody else's hands on the same clocks: noticed by reading back, named where they can be.

Minimum and maximum are one shared slot: power-mode tools and daemons write over ours, and the last
writer wins. After a change the governor says `ForeignWatch.applied`; a later `look` compares.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol, get_args, runtime_checkable

from rlgov.boards.base import Board, Reading
from rlgov.boards.process import PROC
from rlgov.errors import ConfigError

Policy = Literal["yield", "reassert", "stop"]
"""On a foreign write: leave the clocks to its writer, write ours again, or stop governing."""

Cause = Literal["foreign", "resume", "heat"]

WRITERS: Mapping[str, str] = {
    "nvpmodel": "let it finish, and start the run in the mode you want",
    "nvpower.sh": "wait a minute after boot: it sets the power mode",
    "jetson_clocks": "undo it with: sudo jetson_clocks --restore",
    "power-profiles-daemon": "stop it for the run: sudo systemctl stop power-profiles-daemon",
    "tlp": "stop it for the run: sudo systemctl stop tlp",
    "tuned": "stop it for the run: sudo systemctl stop tuned",
    "auto-cpufreq": "stop it for the run: sudo systemctl stop auto-cpufreq",
    "cpupower": "let it finish before the run",
    "thermald": "it holds clocks down against heat; leave it running",
    "gamemoded": "end the program that asked for game mode",
    "system76-power": "stop it for the run: sudo systemctl stop com.system76.PowerDaemon",
}
"""Programs that write to clocks -> what to do about each."""

_SLEPT_S = 1.0
"""A step of this size between the clocks that do and do not count sleep is a suspend."""


@runtime_checkable
class Drifting(Protocol):
    """A board that compares its files with what they held after the last write."""

    def drift(self) -> dict[str, str]:
        """File -> what changed, for files that changed."""


@dataclass(frozen=True)
class Suspect:
    """A running program that writes to clocks.

    Attributes:
        name: Of `WRITERS`.
        pid: Its process.
        advice: What to do about it.
    """

    name: str
    pid: int
    advice: str


@dataclass(frozen=True)
class Finding:
    """Clocks that are not as we left them.

    Attributes:
        changes: File or knob -> what changed.
        cause: Somebody wrote, the machine slept (drivers start afresh), or it is too hot.
        suspects: Programs running now that may have done it; those that ended are unknown.
        action: What the policy says.
        wait_s: With ``reassert``: leave the clocks alone for so long first.
        slept_s: With ``resume``: how long.
    """

    changes: Mapping[str, str]
    cause: Cause
    suspects: tuple[Suspect, ...]
    action: Policy
    wait_s: float = 0.0
    slept_s: float = 0.0

    def __str__(self) -> str:
        what = "; ".join(f"{name}: {change}" for name, change in self.changes.items())
        who = ", ".join(f"{s.name} (process {s.pid})" for s in self.suspects)
        reason = {
            "resume": f"the machine slept for {self.slept_s:.0f} s",
            "heat": "the board holds its clocks down against heat",
            "foreign": f"somebody else wrote, perhaps {who}" if who else "somebody else wrote",
        }[self.cause]
        return f"{reason} ({what}): {self.action}"


class ForeignWatch:
    """Notices that clocks are not as we left them, and says what to do.

    A sleep is always answered by writing again at once, and heat by leaving the clocks alone: the
    policy is for other people's writes.

    Args:
        board: The board.
        policy: What to do about them.
        first_wait_s: Back-off of ``reassert`` before the first writing again; it doubles.
        longest_wait_s: Its end. After a quiet stretch of this length it starts over.
        proc: Where processes are listed.
        now: Clock of the back-off, in seconds.
        asleep_s: Seconds that the machine has slept since it was booted.

    Raises:
        ConfigError: No such policy.
    """

    def __init__(
        self,
        board: Board,
        policy: Policy = "yield",
        *,
        first_wait_s: float = 5.0,
        longest_wait_s: float = 300.0,
        proc: Path = PROC,
        now: Callable[[], float] = time.monotonic,
        asleep_s: Callable[[], float] | None = None,
    ) -> None:
        if policy not in get_args(Policy):
            raise ConfigError(f"on foreign writes one of {', '.join(get_args(Policy))}: {policy!r}")
        self._board, self._policy, self._proc, self._now = board, policy, proc, now
        self._first_wait_s, self._longest_wait_s = first_wait_s, longest_wait_s
        self._wait_s = first_wait_s
        self._last_s: float | None = None
        self._asleep_s = asleep_s or slept_since_boot_s
        self._slept_s = self._asleep_s()
        self._expected: Mapping[str, str] = {}
        self.applied()

    def applied(self) -> None:
        """Take the clocks as they are now for ours."""
        if not isinstance(self._board, Drifting):
            self._expected = dict(self._board.capture().values)

    def look(self, reading: Reading | None = None) -> Finding | None:
        """Compare; ``None`` when everything is as we left it.

        Args:
            reading: The latest, to tell heat from people.
        """
        slept_s, before_s = self._asleep_s(), self._slept_s
        self._slept_s = slept_s
        changes = self._changes()
        if not changes:
            return None
        if slept_s - before_s > _SLEPT_S:
            return Finding(changes, "resume", (), "reassert", slept_s=slept_s - before_s)
        if reading is not None and _hot(reading):
            return Finding(changes, "heat", (), "yield")
        return Finding(
            changes, "foreign", tuple(suspects(self._proc)), self._policy, self._next_wait_s()
        )

    def _changes(self) -> dict[str, str]:
        if isinstance(self._board, Drifting):
            return self._board.drift()
        now = self._board.capture().values
        return {
            key: f"{text.strip() or 'auto'} -> {now.get(key, 'gone').strip() or 'auto'}"
            for key, text in self._expected.items()
            if now.get(key) != text
        }

    def _next_wait_s(self) -> float:
        now_s = self._now()
        quiet = self._last_s is None or now_s - self._last_s > self._wait_s + self._longest_wait_s
        self._last_s = now_s
        doubled_s = min(2.0 * self._wait_s, self._longest_wait_s)
        self._wait_s = self._first_wait_s if quiet else doubled_s
        return self._wait_s


def suspects(proc: Path = PROC) -> list[Suspect]:
    """Programs running now that write to clocks."""
    found = []
    for folder in sorted(proc.glob("[0-9]*"), key=lambda p: int(p.name)):
        name = _program(folder)
        if name is not None:
            found.append(Suspect(name, int(folder.name), WRITERS[name]))
    return found


def slept_since_boot_s() -> float:
    """Seconds that the machine has spent suspended since it was booted."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) - time.clock_gettime(time.CLOCK_MONOTONIC)


def _program(folder: Path) -> str | None:
    """Of `WRITERS`, the one that a process runs: itself, or its script under an interpreter."""
    try:
        words = (folder / "cmdline").read_bytes().split(b"\0")[:2]
    except OSError:
        return None  # it has ended
    names = [word.decode("utf-8", "replace").rpartition("/")[2] for word in words]
    for name in names:
        stem = name.removesuffix(".sh") if name not in WRITERS else name
        if stem in WRITERS:
            return stem
        if stem == "powerprofilesd" or stem.startswith("power-profiles-d"):
            return "power-profiles-daemon"
    return None


def _hot(reading: Reading) -> bool:
    return any(state > 0 for name, state in reading.throttle.items() if name.startswith("cooling "))
