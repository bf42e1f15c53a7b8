"""Whole files or none, with errors that name the trace."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Mapping
from pathlib import Path

from rlgov.errors import TraceError
from rlgov.files import write_bytes_atomic


def write_bytes(path: Path, data: bytes) -> None:
    """Write ``path`` atomically, with the folders above it.

    Raises:
        TraceError: It cannot be written; an old file is still as it was.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_bytes_atomic(path, data)
    except OSError as error:
        raise TraceError(f"cannot write {path}: {error.strerror or error}") from error


def write_json(path: Path, value: Mapping[str, object]) -> None:
    """Write ``value`` to ``path`` atomically as valid JSON (no NaN).

    Raises:
        TraceError: See `write_bytes`.
    """
    write_bytes(path, (json.dumps(value, indent=2, allow_nan=False) + "\n").encode())


def sync_folder(folder: Path) -> None:
    """Make new files in ``folder`` survive a power cut, where the system can."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
