"""Telemetry of jtop's service (``pip install rlgov[jetson]``), to fill in what files do not tell.

The service is another process that may be absent, die, hang while it accepts a connection, or
repeat its last sample for ever. It is followed in a thread of its own, so that none of this ever
holds up the governor; a sample older than ``max_age_s`` counts as no sample.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Protocol

from rlgov.boards.sensors import ABSENT_C, Collected
from rlgov.errors import NotSupportedError

FIRST_RETRY_S = 1.0
LONGEST_RETRY_S = 30.0


class Client(Protocol):
    """What is used of ``jtop.jtop``; ``ok`` waits for the next sample."""

    def __enter__(self) -> Client:
        """Connect."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Disconnect."""

    def ok(self) -> bool:
        """Wait for the next sample; false when the service has gone."""


@dataclass(frozen=True)
class Sample:
    """Units of ours: W, MHz, degrees, shares.

    Attributes:
        power_w: Watts by rail.
        gpu_load: Busy share of the GPU.
        emc_load: Busy share of the memory controller.
        emc_mhz: Memory clock.
        temperature_c: Degrees by zone.
    """

    power_w: Mapping[str, float]
    gpu_load: float | None
    emc_load: float | None
    emc_mhz: float | None
    temperature_c: Mapping[str, float]


class JtopSource:
    """A sensor that fills in what is missing from jtop's newest sample.

    Args:
        connect: Makes a client; by default jtop's own.
        max_age_s: Older samples, and samples unchanged for as long, count as none.
        now: Monotonic clock.

    Attributes:
        reconnects: How often the service was lost.
    """

    def __init__(
        self,
        connect: Callable[[], Client] | None = None,
        max_age_s: float = 5.0,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._connect = connect or _installed()
        self._max_age_s = max_age_s
        self._now = now
        self._latest: tuple[float, Sample] | None = None
        self._fault = "jtop has given no sample yet"
        self._stop = threading.Event()
        self.reconnects = 0
        # A daemon: a client that hangs in connecting cannot be ended, and must not keep us.
        self._thread = threading.Thread(target=self._follow, name="rlgov-jtop", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop following; a hanging client is left behind."""
        self._stop.set()
        self._thread.join(timeout=1.0)

    def collect(self, into: Collected) -> None:
        """Fill in what no file told; never overwrite."""
        latest = self._latest
        if latest is None:
            into.missing["jtop"] = self._fault
            return
        changed_s, sample = latest
        age_s = into.t_s - changed_s
        if age_s > self._max_age_s:
            into.missing["jtop"] = f"stale: its last new sample is {age_s:.0f} s old"
            return
        _fill(into, sample)

    def _follow(self) -> None:
        retry_s = FIRST_RETRY_S
        while not self._stop.is_set():
            try:
                with self._connect() as client:
                    while not self._stop.is_set() and client.ok():
                        self._take(sample_of(client))
                        retry_s = FIRST_RETRY_S
                self._fault = "jtop's service has gone"
            except Exception as error:
                # A foreign client in a thread of ours: whatever it raises means no sample.
                self._fault = f"jtop: {type(error).__name__}: {error}"
            self.reconnects += 1
            self._stop.wait(retry_s)
            retry_s = min(2.0 * retry_s, LONGEST_RETRY_S)

    def _take(self, sample: Sample) -> None:
        latest = self._latest
        if latest is None or latest[1] != sample:
            self._latest = (self._now(), sample)


def sample_of(client: Any) -> Sample:
    """Jtop's units (mW, kHz, percent, -256 for off) as ours; what is absent stays absent."""
    power = _map(client, "power")
    rails = {**_map(power, "rail"), "tot": power.get("tot")}
    emc = _map(_map(client, "memory"), "EMC")
    loads = [_map(gpu, "status").get("load") for gpu in _map(client, "gpu").values()]
    return Sample(
        power_w={
            str(value.get("name") or name): float(value["power"]) / 1e3
            for name, value in rails.items()
            if isinstance(value, Mapping) and "power" in value
        },
        gpu_load=_share(next((load for load in loads if load is not None), None)),
        emc_load=_share(emc.get("val")),
        emc_mhz=float(emc["cur"]) / 1e3 if emc.get("cur", 0) > 1 else None,
        temperature_c=_temperatures(_map(client, "temperature")),
    )


def _temperatures(zones: Mapping[str, Any]) -> dict[str, float]:
    known = {name: zone.get("temp") for name, zone in zones.items() if isinstance(zone, Mapping)}
    return {name: float(c) for name, c in known.items() if c is not None and c > ABSENT_C}


def _map(node: Any, name: str) -> Mapping[str, Any]:
    found = node.get(name) if isinstance(node, Mapping) else getattr(node, name, None)
    return found if isinstance(found, Mapping) else {}


def _share(percent: Any) -> float | None:
    return None if percent is None else min(max(float(percent) / 100.0, 0.0), 1.0)


def _fill(into: Collected, sample: Sample) -> None:
    for knob, share in (("gpu", sample.gpu_load), ("emc", sample.emc_load)):
        if into.utilisation.get(knob) is None and share is not None:
            into.utilisation[knob] = share
            into.missing.pop(f"{knob} load", None)
    if into.clocks_mhz.get("emc") is None and sample.emc_mhz is not None:
        into.clocks_mhz["emc"] = sample.emc_mhz
    for zone, degrees in sample.temperature_c.items():
        if into.temperature_c.get(zone) is None:
            into.temperature_c[zone] = degrees
            into.missing.pop(f"temperature {zone}", None)


def _installed() -> Callable[[], Client]:
    try:
        from jtop import jtop
    except ImportError as error:
        raise NotSupportedError("jtop needs: pip install 'rlgov[jetson]'") from error
    client: Callable[[], Client] = jtop
    return client
