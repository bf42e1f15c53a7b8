"""Files that are whole or not there: written beside, synced, then renamed."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rlgov.errors import TraceError


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary path beside ``path`` that takes its place once the block ends without error.

    Raises:
        TraceError: The folder cannot be written to, or the disk is full.
    """
    temporary = _temporary(path)
    try:
        yield temporary
        _sync(temporary)
        temporary.replace(path)
        sync_folder(path.parent)
    except OSError as error:
        raise TraceError(f"cannot write {path}: {error.strerror or error}") from error
    finally:
        temporary.unlink(missing_ok=True)


def write_text(path: Path, text: str, encoding: str = "utf-8") -> None:
    """Write ``text`` to ``path`` atomically, line ends as they are.

    Raises:
        TraceError: See `replacing`.
    """
    with replacing(path) as temporary:
        temporary.write_bytes(text.encode(encoding))


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """Write ``value`` to ``path`` atomically as valid JSON (no NaN).

    Raises:
        TraceError: See `replacing`.
    """
    write_text(path, json.dumps(value, indent=2, allow_nan=False) + "\n")


def sync_folder(folder: Path) -> None:
    """Make renames and new files in ``folder`` survive a power cut, where the system can."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _temporary(path: Path) -> Path:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        os.close(handle)
        # mkstemp makes files private; a result is as readable as any other file of the user's.
        Path(name).chmod(0o666 & ~_umask())
    except OSError as error:
        raise TraceError(f"cannot write {path}: {error.strerror or error}") from error
    return Path(name)


def _umask() -> int:
    mask = os.umask(0o022)
    os.umask(mask)
    return mask


def _sync(path: Path) -> None:
    with path.open("rb+") as handle:
        os.fsync(handle.fileno())
