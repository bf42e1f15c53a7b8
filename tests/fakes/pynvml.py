"""A stand-in for ``pynvml``, as unforgiving as the library: errors by number, order of arguments.

One instance is one machine: ``PyNvml(gpus=[Gpu(...)])`` has the functions of the module.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace

NAMES = {3: "Not Supported", 4: "Insufficient Permissions", 6: "Not Found", 999: "Unknown"}


class NVMLError(Exception):
    def __init__(self, value: int) -> None:
        super().__init__(NAMES.get(value, str(value)))
        self.value = value


@dataclass
class Gpu:
    uuid: str
    name: str = "NVIDIA Test GPU"
    core_mhz: tuple[int, ...] = (210, 705, 1200, 1410)
    memory_mhz: tuple[int, ...] = (405, 9501)
    watts: float = 100.0
    energy_mj: float | None = 5e6
    averaged_w: float | None = None
    util: tuple[int, int] = (50, 20)
    mig: tuple[str, ...] = ()
    core_lock: tuple[int, int] | None = None
    memory_lock: tuple[int, int] | None = None
    refuse: dict[str, int] = field(default_factory=dict)
    calls: list[tuple[object, ...]] = field(default_factory=list)

    def spend(self, seconds: float) -> None:
        """Let time pass."""
        if self.energy_mj is not None:
            self.energy_mj += self.watts * seconds * 1e3


@dataclass
class _Instance:
    gpu: Gpu


class PyNvml:
    """The module."""

    NVMLError = NVMLError
    NVML_CLOCK_SM = 1
    NVML_CLOCK_MEM = 2
    NVML_TEMPERATURE_GPU = 0

    def __init__(self, gpus: list[Gpu], deaf: bool = False) -> None:
        self.gpus = gpus
        self.deaf = deaf
        self.open = True

    def __getattr__(self, name: str):
        if not name.startswith("nvmlDevice"):
            raise AttributeError(name)
        answer = getattr(self, "_" + name.removeprefix("nvmlDevice"), None)
        if answer is None:
            raise AttributeError(name)

        def call(handle, *args):
            if isinstance(handle, Gpu):
                handle.calls.append((name, *args))
                if self.deaf:
                    raise NVMLError(3)
                code = handle.refuse.get(name)
                if code:
                    raise NVMLError(code)
            return answer(handle, *args)

        return call

    def nvmlShutdown(self):  # noqa: N802
        self.open = False

    def nvmlDeviceGetCount(self):  # noqa: N802
        return len(self.gpus)

    def nvmlDeviceGetHandleByIndex(self, index):  # noqa: N802
        return self.gpus[index]

    def nvmlDeviceGetHandleByUUID(self, uuid):  # noqa: N802
        for gpu in self.gpus:
            if uuid in gpu.mig:
                return _Instance(gpu)
        raise NVMLError(6)

    def _GetDeviceHandleFromMigDeviceHandle(self, instance):  # noqa: N802
        return instance.gpu

    def _GetUUID(self, gpu):  # noqa: N802
        return gpu.uuid

    def _GetName(self, gpu):  # noqa: N802
        return gpu.name

    def _GetMigMode(self, gpu):  # noqa: N802
        return (1, 1) if gpu.mig else (0, 0)

    def _GetSupportedMemoryClocks(self, gpu):  # noqa: N802
        return sorted(gpu.memory_mhz, reverse=True)

    def _GetSupportedGraphicsClocks(self, gpu, memory):  # noqa: N802
        assert memory in gpu.memory_mhz
        return sorted(gpu.core_mhz, reverse=True)

    def _GetClockInfo(self, gpu, kind):  # noqa: N802
        lock = gpu.core_lock if kind == self.NVML_CLOCK_SM else gpu.memory_lock
        table = gpu.core_mhz if kind == self.NVML_CLOCK_SM else gpu.memory_mhz
        return lock[1] if lock else max(table)

    def _GetUtilizationRates(self, gpu):  # noqa: N802
        return SimpleNamespace(gpu=gpu.util[0], memory=gpu.util[1])

    def _GetTemperature(self, gpu, kind):  # noqa: N802
        return 55

    def _GetCurrentClocksThrottleReasons(self, gpu):  # noqa: N802
        return 4

    def _GetPowerUsage(self, gpu):  # noqa: N802
        return int((gpu.watts if gpu.averaged_w is None else gpu.averaged_w) * 1e3)

    def _GetTotalEnergyConsumption(self, gpu):  # noqa: N802
        if gpu.energy_mj is None:
            raise NVMLError(3)
        return int(gpu.energy_mj)

    def _GetPowerManagementLimit(self, gpu):  # noqa: N802
        return 300_000

    def _GetPowerManagementLimitConstraints(self, gpu):  # noqa: N802
        return (100_000, 350_000)

    def _SetPowerManagementLimit(self, gpu, limit):  # noqa: N802
        assert limit == 300_000, "only a write of the present limit is harmless"

    def _SetGpuLockedClocks(self, gpu, low, high):  # noqa: N802
        if low > high:
            raise NVMLError(2)
        gpu.core_lock = (low, high)

    def _ResetGpuLockedClocks(self, gpu):  # noqa: N802
        gpu.core_lock = None

    def _SetMemoryLockedClocks(self, gpu, low, high):  # noqa: N802
        if low > high:
            raise NVMLError(2)
        gpu.memory_lock = (low, high)

    def _ResetMemoryLockedClocks(self, gpu):  # noqa: N802
        gpu.memory_lock = None
