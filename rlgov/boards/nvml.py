"""NVIDIA GPUs of desktops and servers, through NVML (``pip install rlgov[nvml]``).

NVML cannot tell which clocks are locked, so as found means the driver's own choice. Locked clocks
outlive whoever locked them: the lease is what resets them.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable, Sequence
from typing import Any

from rlgov.boards.base import Board, BoardState, Knob, Reading, Setting
from rlgov.boards.nvml_device import ENERGY_COUNTER, NvmlDevice, load_nvml
from rlgov.boards.sensors import Collected
from rlgov.boards.sysfs import refused, why
from rlgov.boards.totals import SUM_RULE
from rlgov.boards.visible import Visible, visible_gpus
from rlgov.boards.writer import RESET, NvmlWriter, Writer
from rlgov.errors import BoardError, ConfigError, LeaseError, NotSupportedError

_KEYS = {"gpu": "gpu", "emc": "mem"}
"""Knob -> its clock in the writer's keys."""

SETTLE_S = 0.1


class NvmlBoard(Board):
    """The GPUs that the job sees, set alike.

    Attributes:
        kind: ``nvml``.
        rail_roles: Rail -> ``gpu``.
        refused: Knob -> why it cannot be set.
        facts: What the board is, for people.
        energy_source: ``energy_counter``, ``power_integral`` or ``none``.

    Args:
        lib: The module ``pynvml``, initialised; by default the installed one.
        visible: ``CUDA_VISIBLE_DEVICES``; by default the environment's.
        writer: Who writes; by default this process.
        settle_s: Seconds between a write and the return of `apply`.
        sleep: For tests.
        now: Monotonic clock.

    Raises:
        ConfigError: ``CUDA_VISIBLE_DEVICES`` names what is not there.
        NotSupportedError: No GPU answers anything that a governor needs.
    """

    kind = "nvml"
    name = "nvml"
    emulated = False

    def __init__(
        self,
        lib: Any = None,
        visible: str | None = None,
        writer: Writer | None = None,
        *,
        settle_s: float = SETTLE_S,
        sleep: Callable[[float], None] = time.sleep,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._lib = lib or installed_nvml()
        everything = all_devices(self._lib)
        spec = os.environ.get("CUDA_VISIBLE_DEVICES") if visible is None else visible
        shown = visible_gpus(spec, [device.uuid for device in everything])
        self.devices = _chosen(self._lib, everything, shown)
        self._settle_s, self._sleep, self._now = settle_s, sleep, now
        handles = {device.uuid: device.handle for device in self.devices}
        self._writer = writer or NvmlWriter(self._lib, handles)
        self._locked: dict[str, str] = {}
        self._captured = False
        self._setting = Setting()
        self.refused: dict[str, str] = {}
        self._tables = {name: self._table(name) for name in _KEYS}
        self._refuse(shown)
        self._describe(everything)
        self._last_s = now()
        self.read()

    @property
    def knobs(self) -> Sequence[Knob]:
        """Core and memory clock, where the driver lets us lock them."""
        offered = (name for name in _KEYS if name not in self.refused)
        return [Knob(name, self._tables[name], "pin", self._tables[name][-1]) for name in offered]

    def now_s(self) -> float:
        """Seconds of the kernel's monotonic clock."""
        return self._now()

    def read(self) -> Reading:
        """Look at every GPU once."""
        part = Collected(self._now())
        for device in self.devices:
            self._power(device, part)
            degrees = device.ask("nvmlDeviceGetTemperature", self._lib.NVML_TEMPERATURE_GPU)
            part.temperature_c[device.rail] = None if degrees is None else float(degrees)
            reasons = device.ask("nvmlDeviceGetCurrentClocksThrottleReasons")
            if reasons is not None:
                part.throttle[f"{device.rail} throttle reasons"] = float(reasons)
        self._means(part)
        if self.energy_source == ENERGY_COUNTER:
            part.centre_s = 0.5 * (self._last_s + part.t_s)
        self._last_s = part.t_s
        whole = len(part.power_w) == len(self.devices)
        return part.reading(sum(part.power_w.values()) if whole else None)

    def apply(self, setting: Setting) -> Setting:
        """Lock the clocks of every GPU; a clock that the driver will not lock stays as found."""
        self.check(setting)
        before = dict(self._locked)
        took: dict[str, float | None] = {}
        try:
            for name in _KEYS:
                if name not in self.refused:
                    took[name] = self._set(name, setting[name])
        except OSError as error:
            self._put_back(before)
            raise refused(f"{setting} of board {self.name}", error) from error
        self._setting = Setting(**took)
        self._sleep(self._settle_s)
        return self._setting

    def capture(self) -> BoardState:
        """What is locked by us, by GPU and clock; otherwise the driver's own choice."""
        self._captured = True
        keys = [key for name in _KEYS if self._tables[name] for key in self._keys(name)]
        return BoardState(self.name, {key: self._locked.get(key, RESET) for key in keys})

    def restore(self, state: BoardState) -> None:
        """Reset every clock that was locked, or lock what was locked.

        A board that did not take the state down itself cannot know what is locked: it writes all.
        """
        if state.board != self.name:
            raise LeaseError(f"this state is of board {state.board}, not of {self.name}")
        if not self._captured:
            self._locked |= dict.fromkeys(state.values, "unknown")
        self._put_back(dict(state.values))
        self._setting = Setting()

    def close(self) -> None:
        """Let go of the library."""
        self._lib.nvmlShutdown()

    def _table(self, name: str) -> tuple[float, ...]:
        tables = [set(device.levels_mhz(name)) for device in self.devices]
        return tuple(sorted(set.intersection(*tables))) if tables else ()

    def _keys(self, name: str) -> list[str]:
        return [f"{device.uuid}/{_KEYS[name]}" for device in self.devices]

    def _refuse(self, shown: Visible) -> None:
        if shown.mig or any(device.mig() for device in self.devices):
            text = "MIG instances share their GPU's clocks: setting them would slow other tenants"
            self.refused = dict.fromkeys(_KEYS, text)
            return
        for name, table in self._tables.items():
            fault = self._writer.refusal(self._keys(name)[0]) if table else None
            if len(table) < 2:
                self.refused[name] = "the driver offers no choice of this clock"
            elif fault is not None:
                self.refused[name] = f"{why(fault)} ({fault.strerror})"

    def _describe(self, everything: Sequence[NvmlDevice]) -> None:
        self.rails = tuple(device.rail for device in self.devices)
        self.rail_roles = dict.fromkeys(self.rails, "gpu")
        sources = {device.energy_source or "none" for device in self.devices}
        self.energy_source = sources.pop() if len(sources) == 1 else "none"
        what = f"by NVML, energy from {self.energy_source}"
        self.total_rule = f"{SUM_RULE}: {' + '.join(self.rails)} {what} (GPUs, not the host)"
        self.facts = {
            device.rail: f"{device.model}, {device.uuid}" + _limits(device)
            for device in self.devices
        }
        self.facts["energy source"] = self.energy_source
        if any(device.mig() for device in self.devices):
            self.facts["shared"] = "power and load are of whole GPUs that MIG tenants share"
        if len({device.model for device in everything}) > 1:
            self.facts["order"] = "GPUs differ: set CUDA_DEVICE_ORDER=PCI_BUS_ID for NVML's order"

    def _power(self, device: NvmlDevice, part: Collected) -> None:
        if self.energy_source == "none":
            part.missing[f"power {device.rail}"] = "the GPUs do not all have one source of energy"
            return
        watts, reason = device.power(part.t_s)
        if watts is None:
            part.missing[f"power {device.rail}"] = reason
        else:
            part.power_w[device.rail] = watts

    def _means(self, part: Collected) -> None:
        loads = [device.utilisation() for device in self.devices]
        for place, name in enumerate(_KEYS):
            part.utilisation[name] = _mean([load[place] for load in loads])
            part.clocks_mhz[name] = _mean([device.clock_mhz(name) for device in self.devices])
            if part.utilisation[name] is None:
                part.missing[f"{name} load"] = "not supported by this GPU"
            if part.clocks_mhz[name] is None:
                part.missing[f"{name} clock"] = "not supported by this GPU"

    def _set(self, name: str, mhz: float | None) -> float | None:
        text = RESET if mhz is None else f"{mhz:.0f},{mhz:.0f}"
        try:
            for key in self._keys(name):
                self._write(key, text)
        except OSError as error:
            # Whether a clock can be locked shows only in trying: older GPUs lack the memory's.
            if error.errno != errno.EOPNOTSUPP or any(k in self._locked for k in self._keys(name)):
                raise
            self.refused[name] = why(error)
            return None
        return mhz

    def _write(self, key: str, text: str) -> None:
        """Write, and remember what is locked; nothing is reset that was never locked."""
        if self._locked.get(key, RESET) == text:
            return
        try:
            self._writer.write(key, text)
        except OSError:
            if text != RESET:
                raise
            self._widest(key)
        if text == RESET:
            self._locked.pop(key, None)
        else:
            self._locked[key] = text

    def _widest(self, key: str) -> None:
        """Where a reset is not supported, the whole range is the nearest there is."""
        name = next(n for n, clock in _KEYS.items() if clock == key.rpartition("/")[2])
        table = self._tables[name]
        self._writer.write(key, f"{table[0]:.0f},{table[-1]:.0f}")

    def _put_back(self, values: dict[str, str]) -> None:
        faults = [
            fault
            for key in {*values, *self._locked}
            if (fault := self._fault(key, values.get(key, RESET)))
        ]
        if faults:
            raise BoardError(f"clocks could not be given back: {'; '.join(faults)}")

    def _fault(self, key: str, text: str) -> str:
        try:
            self._write(key, text)
        except OSError as error:
            return f"{key}: {why(error)}"
        return ""


def all_devices(lib: Any) -> list[NvmlDevice]:
    """Every GPU, in NVML's order."""
    try:
        count = lib.nvmlDeviceGetCount()
        handles = [lib.nvmlDeviceGetHandleByIndex(i) for i in range(count)]
    except lib.NVMLError as error:
        raise NotSupportedError(f"NVML cannot list the GPUs: {error}") from error
    return [NvmlDevice(lib, handle, i) for i, handle in enumerate(handles)]


def _chosen(lib: Any, everything: Sequence[NvmlDevice], shown: Visible) -> list[NvmlDevice]:
    parents = [_parent(lib, name, everything) for name in shown.mig]
    chosen = [everything[i] for i in dict.fromkeys([*shown.indices, *parents])]
    if not any(device.answers() for device in chosen):
        raise NotSupportedError(
            f"NVML knows {len(everything)} GPU(s), {len(chosen)} visible to the job, and none "
            "tells power, load or clocks"
        )
    return chosen


def _parent(lib: Any, mig: str, everything: Sequence[NvmlDevice]) -> int:
    """Place of the GPU that a MIG instance is part of."""
    try:
        instance = lib.nvmlDeviceGetHandleByUUID(mig)
        parent = lib.nvmlDeviceGetDeviceHandleFromMigDeviceHandle(instance)
        uuid = lib.nvmlDeviceGetUUID(parent)
    except lib.NVMLError as error:
        raise ConfigError(f"CUDA_VISIBLE_DEVICES={mig} cannot be found: {error}") from error
    return [device.uuid for device in everything].index(str(uuid))


def installed_nvml() -> Any:
    """The installed library, initialised.

    Raises:
        NotSupportedError: It is not installed, or no driver answers.
    """
    try:
        return load_nvml()
    except ImportError as error:
        raise NotSupportedError("NVML needs: pip install 'rlgov[nvml]'") from error
    except Exception as error:
        # The library raises its own error, whose class is known only once it is imported.
        raise NotSupportedError(f"no NVIDIA driver answers: {error}") from error


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def _limits(device: NvmlDevice) -> str:
    limits = device.limits_w()
    return f", power limit {limits['limit']:g} W" if "limit" in limits else ""
