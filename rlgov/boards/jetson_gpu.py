"""The GPU of a Jetson: found by scanning devfreq, never by name of a board."""

from __future__ import annotations

from dataclasses import dataclass

from rlgov.boards.clocks import HZ, ClockRange, RangeKnob
from rlgov.boards.sensors import Collected
from rlgov.boards.sysfs import Tree

DEVFREQ = "/sys/class/devfreq"
THOR_GPU = "gpu-gpc-0"
_NODES = ("gv11b", "gp10b", "ga10b", "gb10b", "gm20b")


@dataclass(frozen=True)
class Gpu:
    """Where the GPU's files are.

    Attributes:
        folder: Its devfreq folder.
        load: File of the busy share in per mille; empty where the GPU has none.
    """

    folder: str
    load: str


def find_gpu(tree: Tree) -> Gpu | None:
    """The GPU's devfreq node.

    The node's own file name is the last resort: on a board it may say no more than an address.
    """
    entries = tree.names(DEVFREQ)
    if THOR_GPU in entries:
        return Gpu(f"{DEVFREQ}/{THOR_GPU}", "")
    for entry in entries:
        node = tree.text(f"{DEVFREQ}/{entry}/device/of_node/name").value or entry
        if _is_gpu(node.lower()):
            return Gpu(f"{DEVFREQ}/{entry}", f"{DEVFREQ}/{entry}/device/load")
    return None


def gpu_knob(tree: Tree, gpu: Gpu) -> RangeKnob:
    """The GPU's clock."""
    return RangeKnob("gpu", tree, [devfreq_range(gpu.folder)], "the board's own table")


def devfreq_range(folder: str) -> ClockRange:
    """The clock of a devfreq node."""
    return ClockRange(
        low=f"{folder}/min_freq",
        high=f"{folder}/max_freq",
        current=f"{folder}/cur_freq",
        table=f"{folder}/available_frequencies",
        unit=HZ,
    )


class GpuLoad:
    """Busy share of the GPU, relative to its present clock."""

    def __init__(self, tree: Tree, gpu: Gpu) -> None:
        self._tree = tree
        self._file = gpu.load

    def collect(self, into: Collected) -> None:
        """Fill in ``utilisation["gpu"]``; a GPU without a load file leaves it to NVML."""
        if not self._file:
            into.utilisation["gpu"] = None
            into.missing["gpu load"] = "this GPU has no load file; NVML tells it"
            return
        read = self._tree.number(self._file, 1e-3)
        into.utilisation["gpu"] = None if read.value is None else min(max(read.value, 0.0), 1.0)
        if read.value is None:
            into.missing["gpu load"] = read.reason


def _is_gpu(node: str) -> bool:
    words = node.split(".")
    return any(word in _NODES or "gpu" in word for word in words)
