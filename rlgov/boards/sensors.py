"""What sensors fill in, and the sensors that every Linux has."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from rlgov.boards.base import Reading
from rlgov.boards.sysfs import Tree


@dataclass
class Collected:
    """A reading in the making; see `Reading` for the fields.

    Attributes:
        t_s: When it was begun.
        centre_s: When its power was true, where that is not ``t_s``: half-way, for a difference of
            energy counters.
    """

    t_s: float
    centre_s: float | None = None
    power_w: dict[str, float] = field(default_factory=dict)
    clocks_mhz: dict[str, float | None] = field(default_factory=dict)
    utilisation: dict[str, float | None] = field(default_factory=dict)
    temperature_c: dict[str, float | None] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)
    throttle: dict[str, float] = field(default_factory=dict)

    def says_nothing(self) -> bool:
        """Whether no sensor gave anything."""
        parts = (self.power_w, self.clocks_mhz, self.utilisation, self.temperature_c)
        return all(value is None for part in parts for value in part.values())

    def reading(self, total_w: float | None) -> Reading:
        """The finished reading."""
        if total_w is None:
            self.missing.setdefault("total", "no power rail gives a total")
        return Reading(
            t_s=self.t_s if self.centre_s is None else self.centre_s,
            power_w=self.power_w,
            total_w=total_w,
            clocks_mhz=self.clocks_mhz,
            utilisation=self.utilisation,
            temperature_c=self.temperature_c,
            missing=self.missing,
            throttle=self.throttle,
        )


class Sensor(Protocol):
    """Adds to a reading what it knows, and to ``missing`` what it should know but does not."""

    def collect(self, into: Collected) -> None:
        """Add to a reading."""


class CpuLoad:
    """Busy share of the processor between two looks at ``/proc/stat``.

    Cores that are offline are not in the file; one that comes or goes moves the sum of all, so only
    cores seen both times count.
    """

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._before = self._jiffies()

    def collect(self, into: Collected) -> None:
        """Fill in ``utilisation["cpu"]``."""
        now, before = self._jiffies(), self._before
        self._before = now
        common = now.keys() & before.keys()
        total = sum(now[c][1] - before[c][1] for c in common)
        busy = sum(now[c][0] - before[c][0] for c in common)
        if not now:
            into.missing["cpu load"] = self._tree.text("/proc/stat").reason or "no cores listed"
        elif total <= 0:
            into.missing["cpu load"] = "needs a second look"
        into.utilisation["cpu"] = min(max(busy / total, 0.0), 1.0) if total > 0 else None

    def _jiffies(self) -> dict[str, tuple[float, float]]:
        """Busy and all jiffies by core."""
        found = {}
        for line in (self._tree.text("/proc/stat").value or "").splitlines():
            name, *words = line.split()
            if name.startswith("cpu") and name != "cpu" and len(words) >= 5:
                ticks = [float(word) for word in words[:8]]
                found[name] = (sum(ticks) - ticks[3] - ticks[4], sum(ticks))
        return found


_CONSTANT = ("pmic",)
"""Zones that always say the same (50 or 100 degrees)."""

ABSENT_C = -200.0
"""Colder than this is the kernel's way of saying that a zone is off (-256)."""


class Thermals:
    """Every thermal zone, and the cooling devices that hold clocks back."""

    folder = "/sys/class/thermal"

    def __init__(self, tree: Tree) -> None:
        self._tree = tree

    def collect(self, into: Collected) -> None:
        """Fill in temperatures by zone and the cooling states in force."""
        for zone in self._tree.names(self.folder, "thermal_zone"):
            name = self._tree.text(f"{self.folder}/{zone}/type").value or zone
            if not name.lower().startswith(_CONSTANT):
                self._zone(name, f"{self.folder}/{zone}/temp", into)
        for name, state in self.cooling().items():
            into.throttle[f"cooling {name}"] = state

    def cooling(self) -> dict[str, float]:
        """State of every cooling device that lowers clocks, 0 for none."""
        states = {}
        for device in self._tree.names(self.folder, "cooling_device"):
            name = self._tree.text(f"{self.folder}/{device}/type").value or device
            state = self._tree.number(f"{self.folder}/{device}/cur_state").value
            if state is not None and any(w in name.lower() for w in ("cpufreq", "devfreq", "gpu")):
                states[name] = state
        return states

    def _zone(self, name: str, file: str, into: Collected) -> None:
        read = self._tree.number(file, 1e-3)
        value = read.value
        if value is not None and value <= ABSENT_C:
            value = None
        into.temperature_c[name] = value
        if value is None:
            into.missing[f"temperature {name}"] = read.reason or "the zone is powered down"
