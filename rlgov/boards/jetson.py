"""A Jetson: GPU, CPU and memory clocks through the kernel, power from the board's own monitors.

Nothing is taken from a list of boards that the board itself can tell: nodes are found by scanning,
tables are read, limits in force at the start are ceilings.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from rlgov.boards.clocks import ClockKnob
from rlgov.boards.cpufreq import cpu_knob
from rlgov.boards.jetson_emc import CLK_CAP, EMC, ISO_CAP, EmcLoad, emc_knob
from rlgov.boards.jetson_gpu import DEVFREQ, Gpu, GpuLoad, find_gpu, gpu_knob
from rlgov.boards.jetson_ident import Identity, identify, power_mode
from rlgov.boards.jetson_power import HWMON, PowerRails, roles_of
from rlgov.boards.sensors import Collected, CpuLoad, Sensor, Thermals
from rlgov.boards.sysfs import Tree
from rlgov.boards.sysfs_board import COOL_WAIT_S, SETTLE_S, SysfsBoard
from rlgov.boards.totals import SUM_RULE, total_rule
from rlgov.boards.writer import Writer
from rlgov.errors import NotSupportedError

GPU_WAIT_S = 5.0
"""How long after boot the GPU's node may be late."""


class JetsonBoard(SysfsBoard):
    """A Jetson of any generation since JetPack 4.

    Attributes:
        identity: Who the board says it is.
        power: Its power monitors.

    Args:
        root: ``/`` on a board.
        writer: Who writes; by default this process.
        more: Further sensors, such as jtop or NVML, asked last: they fill in what is missing.
        settle_s: Seconds between a write and reading back.
        cool_wait_s: See `SysfsBoard`.
        sleep: For tests.
        now: Monotonic clock.

    Raises:
        NotSupportedError: This is no Jetson.
    """

    kind = "jetson"

    def __init__(
        self,
        root: Path = Path("/"),
        writer: Writer | None = None,
        more: Sequence[Sensor] = (),
        *,
        settle_s: float = SETTLE_S,
        cool_wait_s: float = COOL_WAIT_S,
        sleep: Callable[[float], None] = time.sleep,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        tree = Tree(root, writer)
        self.identity = identify(tree)
        gpu = _await_gpu(tree, self.identity, sleep)
        self.power = PowerRails(tree)
        clocks = _clocks(tree, gpu, self.identity.soc)
        rails = self.power.names
        lower = [rail.lower() for rail in rails]
        rule = total_rule(lower)
        super().__init__(
            self.identity.name,
            tree,
            clocks,
            [*_sensors(tree, gpu, clocks, self.power), *more],
            rails,
            next((rail for rail in rails if rail.upper() == rule), rule),
            _rule_text(rule, rails),
            settle_s=settle_s,
            cool_wait_s=cool_wait_s,
            sleep=sleep,
            now=now,
        )
        self.rail_roles = roles_of(rails)
        self._tell(tree, clocks)

    def _tell(self, tree: Tree, clocks: Sequence[ClockKnob]) -> None:
        missing = {"gpu", "cpu", "emc"} - {clock.name for clock in clocks}
        for name in sorted(missing):
            self.refused[name] = _why_missing(name, tree)
        identity = self.identity
        self.facts |= {
            "model": identity.model or "unknown",
            "chip": identity.soc or "unknown",
            "jetpack": " ".join(part for part in (identity.jetpack, identity.release) if part),
            "power mode": power_mode(tree) or "unknown",
            **{f"{clock.name} table": clock.source for clock in clocks},
            **{f"{chip} samples": f"{n:g}" for chip, n in self.power.averaging.items()},
        }


class OverCurrent:
    """Counts of over-current events since boot; clocks read unchanged while they are throttled."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree

    def collect(self, into: Collected) -> None:
        """Fill in ``throttle``."""
        for chip in self._tree.names(HWMON, "hwmon"):
            if self._tree.text(f"{HWMON}/{chip}/name").value == "soctherm_oc":
                for n in (1, 2, 3):
                    self._one(f"oc{n}", f"{HWMON}/{chip}/oc{n}_event_cnt", into)

    def _one(self, name: str, file: str, into: Collected) -> None:
        read = self._tree.number(file)
        if read.value is None:
            into.missing[name] = read.reason
        else:
            into.throttle[name] = read.value


def _await_gpu(tree: Tree, identity: Identity, sleep: Callable[[float], None]) -> Gpu | None:
    """The GPU, whose node may appear some time after boot."""
    gpu = find_gpu(tree)
    if gpu is None and not identity.soc:
        raise NotSupportedError("this is no Jetson: no NVIDIA chip in the device tree, no devfreq")
    waited_s = 0.0
    while gpu is None and waited_s < GPU_WAIT_S:
        sleep(0.5)
        waited_s += 0.5
        gpu = find_gpu(tree)
    return gpu


def _clocks(tree: Tree, gpu: Gpu | None, soc: str) -> list[ClockKnob]:
    found = [gpu_knob(tree, gpu) if gpu else None, cpu_knob(tree), emc_knob(tree, soc)]
    return [clock for clock in found if clock is not None]


def _sensors(
    tree: Tree, gpu: Gpu | None, clocks: Sequence[ClockKnob], power: PowerRails
) -> list[Sensor]:
    emc = next((clock for clock in clocks if clock.name == "emc"), None)
    load: list[Sensor] = [GpuLoad(tree, gpu)] if gpu else []
    return [power, *load, CpuLoad(tree), EmcLoad(tree, emc), Thermals(tree), OverCurrent(tree)]


def _rule_text(rule: str, rails: Sequence[str]) -> str:
    if rule == SUM_RULE:
        return f"{SUM_RULE}: {' + '.join(rails)} (not the board's input)"
    if not rails:
        return "none: no power monitor can be read"
    return f"{rule} (the board's input; the other rails are part of it)"


def _why_missing(name: str, tree: Tree) -> str:
    if name == "gpu":
        return f"no GPU below {DEVFREQ}: its driver is not loaded"
    if name == "cpu":
        return "no cpufreq policy can be read"
    reasons = [f"{file}: {tree.number(file).reason}" for file in (f"{EMC}/rate", CLK_CAP, ISO_CAP)]
    return "; ".join(reasons)
