"""A Linux host: cpufreq policies to set, RAPL to meter."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from rlgov.boards.counter import EnergyCounter
from rlgov.boards.cpufreq import cpu_knob
from rlgov.boards.sensors import Collected, CpuLoad, Thermals
from rlgov.boards.sysfs import Tree
from rlgov.boards.sysfs_board import COOL_WAIT_S, SETTLE_S, SysfsBoard
from rlgov.boards.totals import NO_RULE, SUM_RULE
from rlgov.boards.writer import Writer
from rlgov.errors import NotSupportedError

POWERCAP = "/sys/class/powercap"
DRIVER = "/sys/devices/system/cpu/cpu0/cpufreq/scaling_driver"
_UJ = 1e-6
_INSIDE = ("core", "uncore")
"""Zones whose energy is part of their package's."""


@dataclass
class Zone:
    """One RAPL zone that counts by itself.

    Attributes:
        name: Rail name, such as ``package-0`` or ``package-0/dram``.
        file: File of its energy in microjoules.
        counter: Its counter.
        summed: Whether it is part of the total; ``psys`` contains packages, so it is not.
    """

    name: str
    file: str
    counter: EnergyCounter
    summed: bool


class Rapl:
    """Power of packages, memory and platform from energy counters.

    Attributes:
        zones: The zones found.
    """

    def __init__(self, tree: Tree, now: Callable[[], float]) -> None:
        self._tree = tree
        self._now = now
        self.zones = _zones(tree)
        self._last_s = now()
        self.collect(Collected(self._last_s))

    def collect(self, into: Collected) -> None:
        """Fill in mean watts since the last look, true half-way between the two."""
        if not self.zones:
            into.missing["power"] = "no RAPL zone in /sys/class/powercap"
        for zone in self.zones:
            energy = self._tree.number(zone.file, _UJ)
            if energy.value is None:
                into.missing[f"power {zone.name}"] = energy.reason
                continue
            watts, reason = zone.counter.power(into.t_s, energy.value)
            if watts is None:
                into.missing[f"power {zone.name}"] = reason
            else:
                into.power_w[zone.name] = watts
        into.centre_s = 0.5 * (self._last_s + into.t_s)
        self._last_s = into.t_s

    @property
    def wraps_unresolved(self) -> int:
        """Falls of any counter that could not be resolved."""
        return sum(zone.counter.wraps_unresolved for zone in self.zones)


class LinuxBoard(SysfsBoard):
    """A host with cpufreq, RAPL, or both.

    Args:
        root: ``/`` on a host.
        writer: Who writes; by default this process.
        settle_s: Seconds between a write and reading back.
        cool_wait_s: See `SysfsBoard`.
        sleep: For tests.
        now: Monotonic clock.

    Raises:
        NotSupportedError: Neither is there.
    """

    kind = "linux"

    def __init__(
        self,
        root: Path = Path("/"),
        writer: Writer | None = None,
        *,
        settle_s: float = SETTLE_S,
        cool_wait_s: float = COOL_WAIT_S,
        sleep: Callable[[float], None] = time.sleep,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        tree = Tree(root, writer)
        self.rapl = Rapl(tree, now)
        clock = cpu_knob(tree)
        if clock is None and not self.rapl.zones:
            raise NotSupportedError(
                "this host has neither cpufreq policies nor RAPL: it is a virtual machine or a "
                "container without them"
            )
        zones = self.rapl.zones
        summed = [zone.name for zone in zones if zone.summed]
        super().__init__(
            "linux",
            tree,
            [] if clock is None else [clock],
            [self.rapl, CpuLoad(tree), Thermals(tree)],
            [zone.name for zone in zones],
            SUM_RULE if summed else NO_RULE,
            _rule_text(summed),
            summed=summed,
            settle_s=settle_s,
            cool_wait_s=cool_wait_s,
            sleep=sleep,
            now=now,
        )
        self.rail_roles = {name: "mem" if "dram" in name else "cpu" for name in summed}
        self.facts["cpufreq driver"] = tree.text(DRIVER).value or "unknown"
        if clock is None:
            self.refused["cpu"] = "no cpufreq policy can be read"
        else:
            self.facts["cpu table"] = clock.source


def _zones(tree: Tree) -> list[Zone]:
    zones: list[Zone] = []
    # The same zones appear a second time under intel-rapl-mmio.
    for entry in tree.names(POWERCAP, "intel-rapl:"):
        folder = f"{POWERCAP}/{entry}"
        label = tree.text(f"{folder}/name").value
        if label is None or label in _INSIDE:
            continue
        parent = entry.rpartition(":")[0]
        above = tree.text(f"{POWERCAP}/{parent}/name").value if parent != "intel-rapl" else None
        most = tree.number(f"{folder}/max_energy_range_uj", _UJ).value
        name = label if above is None else f"{above}/{label}"
        if name in {zone.name for zone in zones}:
            name = f"{name} ({entry})"
        file = f"{folder}/energy_uj"
        zones.append(Zone(name, file, EnergyCounter(most), summed=label != "psys"))
    return zones


def _rule_text(summed: list[str]) -> str:
    if not summed:
        return "none: no RAPL zone can be found"
    return f"{SUM_RULE}: {' + '.join(summed)} by RAPL (processor and memory, not the whole host)"
