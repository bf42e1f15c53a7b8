"""The memory clock (EMC) of a Jetson: another way on each generation.

Thor has a devfreq node. Before it the clock is locked through debugfs, which needs root and is not
there in most containers; without debugfs JetPack 6 and JetPack 4/5 take a cap.
"""

from __future__ import annotations

from rlgov.boards.clocks import CapKnob, ClockKnob, LockKnob, RangeKnob
from rlgov.boards.jetson_gpu import DEVFREQ, devfreq_range
from rlgov.boards.sensors import Collected
from rlgov.boards.sysfs import Tree

BWMGR = f"{DEVFREQ}/bwmgr"
BPMP = "/sys/kernel/debug/bpmp/debug"
EMC = f"{BPMP}/clk/emc"
HALT = f"{BPMP}/bwmgr/bwmgr_halt"
OVERRIDE = "/sys/kernel/debug/clk/override.emc"
NANO_MIN = "/sys/kernel/debug/tegra_bwmgr/emc_min_rate"
NANO_MAX = "/sys/kernel/debug/tegra_bwmgr/emc_max_rate"
CLK_CAP = "/sys/kernel/nvpmodel_clk_cap/emc"
ISO_CAP = "/sys/kernel/nvpmodel_emc_cap/emc_iso_cap"
ACTMON = (
    "/sys/kernel/actmon_avg_activity/mc_all",
    "/sys/kernel/debug/cactmon/mc_all",
    f"{BPMP}/actmon/mc_all_avg_activity",
)

KNOWN_HZ = {
    "tegra210": (204e6, 408e6, 665.6e6, 800e6, 1065.6e6, 1331.2e6, 1600e6),
    "tegra194": (204e6, 408e6, 665.6e6, 800e6, 1065.6e6, 1331.2e6, 1600e6, 2133e6),
    "tegra234": (204e6, 665.6e6, 2133e6, 3199e6),
}
"""Rates seen on boards of each chip, for where the board cannot be asked (no debugfs).

Every write is read back, so a rate that this board lacks shows as the one it took.
"""

FROM_BOARD = "the board's own table"
FROM_LIST = "rates known of this chip (no debugfs to ask the board)"


def emc_knob(tree: Tree, soc: str) -> ClockKnob | None:
    """The memory clock by the best way there is; ``None`` where there is none."""
    if tree.exists(f"{BWMGR}/max_freq"):
        return RangeKnob("emc", tree, [devfreq_range(BWMGR)], FROM_BOARD)
    if tree.number(f"{EMC}/rate").value is not None:
        return _bpmp(tree, soc)
    if tree.number(f"{OVERRIDE}/clk_rate").value is not None:
        return _override(tree, soc)
    return _cap(tree, soc)


class EmcLoad:
    """Busy share of the memory controller, from the activity monitor (kHz of busy clock)."""

    def __init__(self, tree: Tree, knob: ClockKnob | None) -> None:
        self._tree = tree
        self._knob = knob
        self._file = next((f for f in ACTMON if tree.number(f).value is not None), None)

    def collect(self, into: Collected) -> None:
        """Fill in ``utilisation["emc"]``."""
        into.utilisation["emc"] = None
        if self._file is None:
            into.missing["emc load"] = "the activity monitor is not there, or needs root"
            return
        busy = self._tree.number(self._file, 1e-3)
        clock = None if self._knob is None else self._knob.clock_mhz().value
        if busy.value is None or not clock:
            into.missing["emc load"] = busy.reason or "needs the memory's clock"
            return
        into.utilisation["emc"] = min(max(busy.value / clock, 0.0), 1.0)


def dvfs_rates(tree: Tree) -> tuple[float, ...]:
    """Rates in Hz from the second column of the memory clock's table."""
    rates = set()
    for line in (tree.text(f"{EMC}/dvfs").value or "").splitlines():
        words = line.replace(":", " ").replace(",", " ").split()
        if len(words) >= 2 and words[1].isdigit():
            rates.add(float(words[1]))
    kilo = bool(rates) and max(rates) < 1e8
    return tuple(sorted(rate * (1e3 if kilo else 1.0) for rate in rates if rate > 0))


def _bpmp(tree: Tree, soc: str) -> ClockKnob:
    rates = dvfs_rates(tree)
    levels = _within(rates or KNOWN_HZ.get(soc, ()), tree, f"{EMC}/min_rate", f"{EMC}/max_rate")
    newer = tree.exists(CLK_CAP)
    # The rate lock comes first in put_back's order too: it is what frees the clock.
    wanted = [f"{EMC}/mrq_rate_locked", f"{EMC}/state", HALT] if newer else []
    switches = [f for f in wanted if tree.exists(f)] or [f"{EMC}/mrq_rate_locked"]
    cap = CLK_CAP if newer else ISO_CAP
    return LockKnob(
        "emc",
        tree,
        rate=f"{EMC}/rate",
        switches=switches,
        current=f"{EMC}/rate",
        levels=levels,
        cap=cap if tree.number(cap).value is not None else "",
        lock_first=newer,
        source=FROM_BOARD if rates else FROM_LIST,
    )


def _override(tree: Tree, soc: str) -> ClockKnob:
    levels = _within(KNOWN_HZ.get(soc, ()), tree, NANO_MIN, NANO_MAX)
    return LockKnob(
        "emc",
        tree,
        rate=f"{OVERRIDE}/clk_update_rate",
        switches=[f"{OVERRIDE}/clk_state"],
        current=f"{OVERRIDE}/clk_rate",
        levels=levels,
        cap=ISO_CAP if tree.number(ISO_CAP).value is not None else "",
        lock_first=False,
        source=FROM_LIST,
    )


def _cap(tree: Tree, soc: str) -> ClockKnob | None:
    for file in (CLK_CAP, ISO_CAP):
        present = tree.number(file)
        if present.value is None:
            continue
        levels = KNOWN_HZ.get(soc, ())
        if present.value:
            # What the board says it can reach is a rate of its own, whatever the list says.
            levels = (*(v for v in levels if v < present.value * 0.999), present.value)
        return CapKnob("emc", tree, file, "", levels, FROM_LIST)
    return None


def _within(rates: tuple[float, ...], tree: Tree, low: str, high: str) -> tuple[float, ...]:
    least, most = tree.number(low).value or 0.0, tree.number(high).value
    top = most or float("inf")
    inside = tuple(r for r in rates if least * 0.999 <= r <= top * 1.001)
    ends = tuple(v for v in (least, most) if v)
    return inside or tuple(sorted(set(ends)))
