"""Power rails of a Jetson: INA3221 by iio (JetPack 4) or hwmon (since 5), INA238 on Thor.

Values stay signed: a gated rail may read below zero by the amplifier's offset. Monitors are found
by name and label, since hwmon numbers change between boots, and are looked for again when one
vanishes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from rlgov.boards.sensors import Collected
from rlgov.boards.sysfs import Number, Tree
from rlgov.boards.totals import is_unconnected

HWMON = "/sys/class/hwmon"
IIO = "/sys/bus/i2c/drivers/ina3221x"

ROLES = {
    "VDD_IN": "sys",
    "POM_5V_IN": "sys",
    "POM_5V_GPU": "gpu",
    "POM_5V_CPU": "cpu",
    "VIN": "sys",
    "VDD_CPU_GPU_CV": "gpu",
    "VDD_SOC": "mem",
    "VDD_GPU_SOC": "gpu",
    "VDD_CPU_CV": "cpu",
    "VIN_SYS_5V0": "sys",
    "VDDQ_VDD2_1V8AO": "mem",
    "GPU": "gpu",
    "CPU": "cpu",
    "SOC": "sys",
    "VDDRQ": "mem",
    "VDD_SYS_GPU": "gpu",
    "VDD_SYS_CPU": "cpu",
    "VDD_SYS_DDR": "mem",
    "VDD_SYS_SOC": "sys",
    "VDD_GPU": "gpu",
    "VDD_CPU_SOC_MSS": "cpu",
}
"""What each rail mostly feeds, the same as on the twins."""

_INPUTS = {"VIN": ("VIN_SYS_5V0",)}
"""Where a role is also covered by a larger rail, the smaller one is left out of the roles."""


class Rail(Protocol):
    """One rail of a monitor."""

    @property
    def name(self) -> str:
        """The label on the board."""

    def watts(self, tree: Tree) -> Number:
        """Power in W."""


@dataclass(frozen=True)
class Product:
    """A rail whose power is volts times amperes (mV and mA files)."""

    name: str
    volts: str
    amperes: str

    def watts(self, tree: Tree) -> Number:
        """Power in W."""
        volts, amperes = tree.number(self.volts, 1e-3), tree.number(self.amperes, 1e-3)
        if volts.value is None:
            return volts
        return amperes.times(volts.value)


@dataclass(frozen=True)
class Direct:
    """A rail with a file of its own power, in ``1 / factor`` W."""

    name: str
    file: str
    factor: float

    def watts(self, tree: Tree) -> Number:
        """Power in W."""
        return tree.number(self.file, self.factor)


class PowerRails:
    """Every power rail of the board.

    Attributes:
        rails: The rails found, in the order of the monitors.
        averaging: Monitor -> samples in its moving average, where it says so.
    """

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self.rails = find_rails(tree)
        self.averaging = _averaging(tree)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the rails."""
        return tuple(rail.name for rail in self.rails)

    def collect(self, into: Collected) -> None:
        """Fill in watts by rail."""
        if any(rail.watts(self._tree).code for rail in self.rails):
            known = set(self.names)
            self.rails = [rail for rail in find_rails(self._tree) if rail.name in known] or (
                self.rails
            )
        if not self.rails:
            into.missing["power"] = "no power monitor (INA3221, INA238) can be found or read"
        for rail in self.rails:
            watts = rail.watts(self._tree)
            if watts.value is None:
                into.missing[f"power {rail.name}"] = watts.reason
            else:
                into.power_w[rail.name] = watts.value


def find_rails(tree: Tree) -> list[Rail]:
    """The rails of every monitor; one that is not connected (``NC``) is none."""
    rails: list[Rail] = []
    for chip in tree.names(HWMON, "hwmon"):
        folder = f"{HWMON}/{chip}"
        name = tree.text(f"{folder}/name").value
        if name == "ina3221":
            rails += _ina3221(tree, folder)
        elif name == "ina238":
            rails.append(Direct(_ina238_label(tree, folder), f"{folder}/power1_input", 1e-6))
    return rails or _iio(tree)


def roles_of(rails: tuple[str, ...]) -> dict[str, str]:
    """What each rail mostly feeds; a rail inside the board's input rail does not count twice."""
    inside = {name for whole in _INPUTS if whole in rails for name in _INPUTS[whole]}
    return {rail: ROLES[rail] for rail in rails if rail in ROLES and rail not in inside}


def _ina3221(tree: Tree, folder: str) -> list[Rail]:
    # Channels 4 and above are sums and shunt voltages, not rails.
    rails: list[Rail] = []
    for n in (1, 2, 3):
        label = tree.text(f"{folder}/in{n}_label").value
        if label and not is_unconnected(label.lower()):
            rails.append(Product(label, f"{folder}/in{n}_input", f"{folder}/curr{n}_input"))
    return rails


def _ina238_label(tree: Tree, folder: str) -> str:
    for file in ("power1_label", "in1_label"):
        label = tree.text(f"{folder}/{file}").value
        if label:
            return label
    return "VIN"


def _iio(tree: Tree) -> list[Rail]:
    rails: list[Rail] = []
    for address in tree.names(IIO):
        for device in tree.names(f"{IIO}/{address}", "iio:device"):
            folder = f"{IIO}/{address}/{device}"
            for n in (0, 1, 2):
                label = tree.text(f"{folder}/rail_name_{n}").value
                if label and not is_unconnected(label.lower()):
                    rails.append(Direct(label, f"{folder}/in_power{n}_input", 1e-3))
    return rails


def _averaging(tree: Tree) -> dict[str, float]:
    found = {}
    for chip in tree.names(HWMON, "hwmon"):
        samples = tree.number(f"{HWMON}/{chip}/samples").value
        if samples is not None:
            found[tree.text(f"{HWMON}/{chip}/name").value or chip] = samples
    return found
