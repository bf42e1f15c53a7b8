"""A stand-in for jtop's client, in jtop's own units, that can die, hang and repeat itself."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any


class JtopException(Exception):  # noqa: N818 - jtop's own name
    pass


def sample(**more: Any) -> dict[str, Any]:
    """What the client's attributes hold: mW, kHz, percent, -256 for a zone that is off."""
    return {
        "power": {
            "rail": {"VDD_GPU_SOC": {"power": 3205, "volt": 19096, "curr": 168}},
            "tot": {"name": "VDD_IN", "power": 12377},
        },
        "gpu": {"ga10b": {"status": {"load": 97.0}, "freq": {"cur": 1300500}}},
        "memory": {"EMC": {"cur": 3199000, "val": 42}},
        "temperature": {"tj": {"temp": 53.0}, "cv0": {"temp": -256}},
        **more,
    }


class Service:
    """Connects clients; each connection plays the next script, then is gone.

    A script's items: attributes of a sample, or an exception to raise. ``done`` is set once every
    script has been played.
    """

    def __init__(self, *scripts: list[Any]) -> None:
        self._scripts = iter(scripts)
        self.connections = 0
        self.done = threading.Event()

    def __call__(self) -> Client:
        self.connections += 1
        script = next(self._scripts, None)
        if script is None:
            self.done.set()
            raise JtopException("The jtop.service is not active")
        return Client(iter(script))


class Client:
    def __init__(self, script: Iterator[Any]) -> None:
        self._script = script

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def ok(self) -> bool:
        item = next(self._script, None)
        if item is None:
            return False
        if isinstance(item, BaseException):
            raise item
        for name, value in item.items():
            setattr(self, name, value)
        return True
