"""One NVIDIA GPU through NVML: what it can tell, asked call by call.

That the library is there says little: on a Jetson it loads and answers almost nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rlgov.boards.counter import EnergyCounter
from rlgov.boards.sensors import Collected

ENERGY_COUNTER = "energy_counter"
POWER_INTEGRAL = "power_integral"


class NvmlDevice:
    """One GPU.

    Attributes:
        uuid: Its UUID.
        rail: Name of its power rail, ``GPU0`` and on.
        model: What NVIDIA calls it.
        energy_source: ``energy_counter``, ``power_integral``, or ``None`` where neither answers;
            decided once, so that a run never mixes the two.

    Args:
        lib: The module ``pynvml``.
        handle: The device's handle.
        index: Its place in NVML's order.
    """

    def __init__(self, lib: Any, handle: Any, index: int) -> None:
        self._lib = lib
        self.handle = handle
        self.rail = f"GPU{index}"
        self.uuid = str(self.ask("nvmlDeviceGetUUID") or f"index-{index}")
        self.model = str(self.ask("nvmlDeviceGetName") or "unknown GPU")
        self._counter = EnergyCounter(None)
        self.energy_source = self._choose()

    def ask(self, call: str, *args: Any) -> Any:
        """What NVML answers, or ``None`` where it does not."""
        try:
            return getattr(self._lib, call)(self.handle, *args)
        except (self._lib.NVMLError, AttributeError):
            return None

    def answers(self) -> bool:
        """Whether the device tells anything that a governor needs."""
        return bool(self.energy_source or self.levels_mhz("gpu") or self.utilisation()[0])

    def mig(self) -> bool:
        """Whether the GPU is cut into MIG instances."""
        mode = self.ask("nvmlDeviceGetMigMode")
        return bool(mode and mode[0])

    def levels_mhz(self, knob: str) -> tuple[float, ...]:
        """The clocks that the driver offers; of the core, those at the highest memory clock."""
        memory = self.ask("nvmlDeviceGetSupportedMemoryClocks") or []
        if knob == "emc":
            return tuple(sorted({float(mhz) for mhz in memory}))
        if not memory:
            return ()
        core = self.ask("nvmlDeviceGetSupportedGraphicsClocks", max(memory)) or []
        return tuple(sorted({float(mhz) for mhz in core}))

    def clock_mhz(self, knob: str) -> float | None:
        """The present clock."""
        kind = self._lib.NVML_CLOCK_SM if knob == "gpu" else self._lib.NVML_CLOCK_MEM
        value = self.ask("nvmlDeviceGetClockInfo", kind)
        return None if value is None else float(value)

    def utilisation(self) -> tuple[float | None, float | None]:
        """Busy share of the core and of the memory controller."""
        rates = self.ask("nvmlDeviceGetUtilizationRates")
        return (None, None) if rates is None else (rates.gpu / 100.0, rates.memory / 100.0)

    def limits_w(self) -> dict[str, float]:
        """The power limit in force, and the range that it may have."""
        limit = self.ask("nvmlDeviceGetPowerManagementLimit")
        ends = self.ask("nvmlDeviceGetPowerManagementLimitConstraints")
        found = {} if limit is None else {"limit": limit / 1e3}
        return found if ends is None else {**found, "least": ends[0] / 1e3, "most": ends[1] / 1e3}

    def power(self, t_s: float) -> tuple[float | None, str]:
        """Watts by the device's source of energy, or ``None`` with the reason."""
        if self.energy_source == ENERGY_COUNTER:
            millijoules = self.ask("nvmlDeviceGetTotalEnergyConsumption")
            if millijoules is None:
                return None, "the energy counter stopped to answer"
            return self._counter.power(t_s, millijoules / 1e3)
        milliwatts = self.ask("nvmlDeviceGetPowerUsage")
        if milliwatts is None:
            return None, "NVML tells neither energy nor power of this GPU"
        return milliwatts / 1e3, ""

    def _choose(self) -> str | None:
        if self.ask("nvmlDeviceGetTotalEnergyConsumption") is not None:
            return ENERGY_COUNTER
        return None if self.ask("nvmlDeviceGetPowerUsage") is None else POWER_INTEGRAL


class NvmlLoad:
    """Fills in the GPU's busy share where the kernel has none (Thor)."""

    def __init__(self, device: NvmlDevice) -> None:
        self._device = device

    def collect(self, into: Collected) -> None:
        """Fill in ``utilisation["gpu"]`` unless a file has."""
        if into.utilisation.get("gpu") is not None:
            return
        share = self._device.utilisation()[0]
        if share is not None:
            into.utilisation["gpu"] = share
            into.missing.pop("gpu load", None)


def load_nvml() -> Any:
    """The module ``pynvml``, initialised.

    Raises:
        ImportError: nvidia-ml-py is not installed.
        Exception: The library's own ``NVMLError``: no driver.
    """
    import pynvml

    pynvml.nvmlInit()
    return pynvml


Loader = Callable[[], Any]
