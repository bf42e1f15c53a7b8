"""One governor a machine."""

from __future__ import annotations

import errno
import fcntl
import json
import logging
import os
from pathlib import Path
from typing import Any

from rlgov.boards import process
from rlgov.errors import LeaseError

log = logging.getLogger(__name__)

_NO_LOCKS = (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS)
"""What file systems without locks answer; there the owner's id and start time decide alone."""


class OwnerLock:
    """A lock that dies with its owner.

    The kernel's lock decides; the owner written into the file is for messages, and for file
    systems without locks. An owner is a process id *and* a start time: a reused id is nobody.

    Args:
        path: The lock file, in a folder that exists.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._handle: int | None = None

    def acquire(self) -> None:
        """Become the owner; the lock of an owner that is gone is taken over with a warning.

        Raises:
            LeaseError: Another governor lives.
            OSError: The file cannot be opened or written.
        """
        handle = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            locked = self._lock(handle)
            owner = _owner(handle)
            if owner is not None:
                self._judge(owner, locked)
            me = {"pid": os.getpid(), "start": process.start_time(os.getpid())}
            _replace(handle, json.dumps(me))
        except BaseException:
            os.close(handle)
            raise
        self._handle = handle

    def release(self) -> None:
        """Let the next governor have the board; a second call does nothing."""
        if self._handle is None:
            return
        handle, self._handle = self._handle, None
        try:
            _replace(handle, "")
        finally:
            os.close(handle)

    def _lock(self, handle: int) -> bool:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise self._held(_owner(handle)) from None
        except OSError as error:
            if error.errno not in _NO_LOCKS:
                raise
            return False
        return True

    def _judge(self, owner: dict[str, Any], locked: bool) -> None:
        if not locked and process.alive(owner["pid"], owner["start"]):
            raise self._held(owner)
        log.warning(
            "the governor that held the board (process %s) is gone; its lock %s is taken over",
            owner["pid"],
            self._path,
        )

    def _held(self, owner: dict[str, Any] | None) -> LeaseError:
        who = "another process"
        if owner is not None:
            who = f"process {owner['pid']} ({process.name(owner['pid']) or 'unknown'})"
        return LeaseError(
            f"the board is held by another governor: {who}, lock {self._path}; "
            "end that run first (its job may go on), or govern another board"
        )


def _owner(handle: int) -> dict[str, Any] | None:
    try:
        data = json.loads(os.pread(handle, 4096, 0))
    except ValueError:
        return None
    if not isinstance(data, dict) or not isinstance(data.get("pid"), int):
        return None
    return {"pid": data["pid"], "start": str(data.get("start", ""))}


def _replace(handle: int, text: str) -> None:
    os.ftruncate(handle, 0)
    os.pwrite(handle, text.encode("ascii"), 0)
