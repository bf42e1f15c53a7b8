"""Kernel files of Linux hosts: cpufreq with and without a table, RAPL zones."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tests.fakes.sysfs_tree import CPUFREQ, put

POWERCAP = "/sys/class/powercap"
TABLE = "800000 1600000 2400000 3200000\n"
RANGE_UJ = 262_143_328_850


def host(root: Path, policies: int = 2, table: str | None = TABLE) -> Path:
    """A host with cpufreq; without ``table`` it is ``intel_pstate``'s."""
    files = {"/proc/stat": "cpu0 10 0 10 80 0 0 0 0\n"}
    for n in range(policies):
        folder = f"{CPUFREQ}/policy{n}"
        files |= {
            f"{folder}/scaling_min_freq": "800000\n",
            f"{folder}/scaling_max_freq": "3200000\n",
            f"{folder}/scaling_cur_freq": "1700000\n",
            f"{folder}/cpuinfo_min_freq": "800000\n",
            f"{folder}/cpuinfo_max_freq": "3201000\n" if table is None else "3200000\n",
        }
        if table is not None:
            files[f"{folder}/scaling_available_frequencies"] = table
    put(root, files)
    return root


ZONES = {
    "intel-rapl:0": "package-0",
    "intel-rapl:0:0": "core",
    "intel-rapl:0:1": "uncore",
    "intel-rapl:0:2": "dram",
    "intel-rapl:1": "psys",
    "intel-rapl-mmio:0": "package-0",
}


def rapl(root: Path, joules: Mapping[str, float] | float, zones: Mapping[str, str] = ZONES) -> None:
    """Zones of one package, each at its own joules (by entry) or all at the same."""
    for entry, name in zones.items():
        value = joules if isinstance(joules, (int, float)) else joules.get(entry, 0.0)
        put(
            root,
            {
                f"{POWERCAP}/{entry}/name": f"{name}\n",
                f"{POWERCAP}/{entry}/energy_uj": f"{value * 1e6:.0f}\n",
                f"{POWERCAP}/{entry}/max_energy_range_uj": f"{RANGE_UJ}\n",
            },
        )
