"""The one place that writes to a board: a key and a text, or the error a kernel would give.

Back-ends hold a `Writer` and nothing else that can write, so that a helper with more rights than
the governor can take its place. Errors are plain `OSError`, whose number says what to do.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any, Protocol

NVML_NOT_SUPPORTED = 3
NVML_NO_PERMISSION = 4
RESET = "reset"


class Writer(Protocol):
    """Whoever may write to the board."""

    def write(self, key: str, text: str) -> None:
        """Write ``text`` to ``key``.

        Raises:
            OSError: The board refused it.
        """

    def refusal(self, key: str) -> OSError | None:
        """Why ``key`` could not be written now; ``None`` if it could. Changes nothing."""


class FileWriter:
    """Writes files below ``root``; a key is a path as it reads on the board (``/sys/…``)."""

    def __init__(self, root: Path = Path("/")) -> None:
        self._root = root

    def write(self, key: str, text: str) -> None:
        """One write, as the kernel's attributes want it; never creates a file."""
        handle = os.open(self._path(key), os.O_WRONLY | os.O_TRUNC)
        try:
            os.write(handle, text.encode())
        finally:
            os.close(handle)

    def refusal(self, key: str) -> OSError | None:
        """Open for writing, and close again."""
        try:
            os.close(os.open(self._path(key), os.O_WRONLY))
        except OSError as error:
            return error
        return None

    def _path(self, key: str) -> Path:
        return self._root / key.lstrip("/")


class NvmlWriter:
    """Sets clocks through NVML; a key is ``UUID/gpu`` or ``UUID/mem``.

    The text is ``LOW,HIGH`` in MHz, or ``reset`` for the driver's own choice.

    Args:
        lib: The module ``pynvml``.
        handles: Device handle by UUID.
    """

    def __init__(self, lib: Any, handles: dict[str, Any]) -> None:
        self._lib = lib
        self._handles = handles

    def write(self, key: str, text: str) -> None:
        """Lock or reset one clock of one device."""
        uuid, _, clock = key.rpartition("/")
        handle = self._handles[uuid]
        try:
            if text == RESET:
                self._call("Reset", clock)(handle)
            else:
                low, high = (int(word) for word in text.split(","))
                self._call("Set", clock)(handle, min(low, high), max(low, high))
        except self._lib.NVMLError as error:
            raise nvml_os_error(error) from error

    def refusal(self, key: str) -> OSError | None:
        """Set the power limit to what it is: needs the same right, and changes nothing."""
        handle = self._handles[key.rpartition("/")[0]]
        try:
            limit = self._lib.nvmlDeviceGetPowerManagementLimit(handle)
            self._lib.nvmlDeviceSetPowerManagementLimit(handle, limit)
        except self._lib.NVMLError as error:
            found = nvml_os_error(error)
            if found.errno == errno.EOPNOTSUPP:
                return None if os.geteuid() == 0 else PermissionError(errno.EACCES, "not root")
            return found
        return None

    def _call(self, verb: str, clock: str) -> Any:
        kind = "Gpu" if clock == "gpu" else "Memory"
        return getattr(self._lib, f"nvmlDevice{verb}{kind}LockedClocks")


def nvml_os_error(error: Any) -> OSError:
    """NVML's error as the `OSError` that says the same."""
    numbers = {NVML_NOT_SUPPORTED: errno.EOPNOTSUPP, NVML_NO_PERMISSION: errno.EACCES}
    return OSError(numbers.get(int(getattr(error, "value", 0)), errno.EIO), str(error))
