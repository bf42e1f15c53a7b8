"""CPU clocks through cpufreq, by policy: cores that share a clock share a policy."""

from __future__ import annotations

import numpy as np

from rlgov.boards.clocks import KHZ, ClockRange, RangeKnob
from rlgov.boards.sysfs import Tree

CPUFREQ = "/sys/devices/system/cpu/cpufreq"
SYNTHETIC_LEVELS = 12
_STEP_KHZ = 1000.0


def cpu_knob(tree: Tree) -> RangeKnob | None:
    """The CPU's clock; ``None`` where the kernel offers none.

    Policies of offline clusters, whose files are gone, are left out. Drivers without a table
    (``intel_pstate``, ``amd_pstate``) take any clock in their range, which is then cut into
    `SYNTHETIC_LEVELS` levels.
    """
    folders = [f"{CPUFREQ}/{name}" for name in tree.names(CPUFREQ, "policy")]
    present = [f for f in folders if tree.number(f"{f}/scaling_max_freq").value is not None]
    if not present:
        return None
    ranges = [_range(tree, folder) for folder in present]
    own = any(not part.levels for part in ranges)
    source = "the board's own table" if own else "the range of the driver, cut into levels"
    return RangeKnob("cpu", tree, ranges, source)


def _range(tree: Tree, folder: str) -> ClockRange:
    table = f"{folder}/scaling_available_frequencies"
    return ClockRange(
        low=f"{folder}/scaling_min_freq",
        high=f"{folder}/scaling_max_freq",
        current=f"{folder}/scaling_cur_freq",
        table=table,
        unit=KHZ,
        levels=() if tree.numbers(table) else synthetic(tree, folder),
    )


def synthetic(tree: Tree, folder: str) -> tuple[float, ...]:
    """Evenly spaced levels in kHz from the lowest to the highest clock of a policy, both kept."""
    low = tree.number(f"{folder}/cpuinfo_min_freq").value
    high = tree.number(f"{folder}/cpuinfo_max_freq").value
    if low is None or high is None or not 0 < low < high:
        return ()
    inner = np.linspace(low, high, SYNTHETIC_LEVELS)[1:-1]
    rounded = {float(round(v / _STEP_KHZ) * _STEP_KHZ) for v in inner.tolist()}
    return tuple(sorted({low, high} | {v for v in rounded if low < v < high}))
