"""The governor's end of the watcher: starts it, beats, and replaces it when it is killed."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import rlgov
from rlgov.boards import process
from rlgov.boards.leasefile import LeaseFolder
from rlgov.boards.watcher import BEAT_S, BYE, IGNORED
from rlgov.errors import LeaseError

log = logging.getLogger(__name__)

_DEAF_S = 1.5
"""A watcher that has not answered for so long (SIGSTOP) is replaced."""

_TRIES_S = 10.0
"""So long may a watcher go on trying what the governor itself could not give back."""

_BOOT = (
    "import sys; sys.path.append(sys.argv.pop(1)); "
    "from rlgov.boards.watcher import main; sys.exit(main(sys.argv[1:]))"
)
"""Runs the watcher without site-packages; ours go last, so that none hides a standard module."""


class Watchdog:
    """Keeps a watcher alive for as long as a lease is held.

    Args:
        folder: Where the lease lies.
        run_id: The lease.

    Attributes:
        replaced: How often a killed or stopped watcher was replaced.
    """

    def __init__(self, folder: LeaseFolder, run_id: str) -> None:
        self._folder, self._run_id = folder, run_id
        self.replaced = 0
        self._over = threading.Event()
        self._heard_s = 0.0
        self._watcher = self._spawn()
        self._thread = threading.Thread(target=self._beat, name="rlgov-heartbeat", daemon=True)
        self._thread.start()

    @property
    def pid(self) -> int:
        """Process id of the present watcher."""
        return self._watcher.pid

    def close(self, *, returned: bool) -> None:
        """End the heartbeat. A second call does nothing.

        Args:
            returned: The board was given back; otherwise the watcher is left to try.
        """
        if self._over.is_set():
            return
        self._over.set()
        self._thread.join()
        if returned:
            _send(self._watcher, BYE)
        _close_pipes(self._watcher)
        _end(self._watcher, 1.0 if returned else _TRIES_S)

    def _spawn(self) -> subprocess.Popen[bytes]:
        root = str(Path(rlgov.__file__).parent.parent)
        pid = os.getpid()
        words = [str(self._folder.path), self._run_id, str(pid), process.start_time(pid)]
        # Held back until the watcher ignores them, so that none can end it while it starts.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, IGNORED)
        try:
            watcher = subprocess.Popen(  # noqa: S603
                [sys.executable, "-I", "-S", "-c", _BOOT, root, *words],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                cwd="/",
                start_new_session=True,
            )
        except OSError as error:
            raise LeaseError(
                f"the watcher that gives the board back cannot be started: {error}; "
                "no clock was changed"
            ) from error
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        for pipe in (watcher.stdin, watcher.stdout):
            os.set_blocking(_number(pipe), False)
        self._heard_s = time.monotonic()
        return watcher

    def _beat(self) -> None:
        while not self._over.wait(BEAT_S):
            _send(self._watcher, b".")
            if _hear(self._watcher):
                self._heard_s = time.monotonic()
            deaf = time.monotonic() - self._heard_s > _DEAF_S
            if deaf or self._watcher.poll() is not None:
                self._replace()

    def _replace(self) -> None:
        _end(self._watcher, 0.0)
        try:
            self._watcher, old = self._spawn(), self._watcher
        except LeaseError as error:
            log.error("%s", error)  # next time round; the heartbeat itself must go on
            return
        _close_pipes(old)
        self.replaced += 1
        log.warning("the watcher was killed or stopped; another one has taken its place")


def _number(pipe: object) -> int:
    number: int = pipe.fileno()  # type: ignore[attr-defined]
    return number


def _send(watcher: subprocess.Popen[bytes], data: bytes) -> None:
    try:
        os.write(_number(watcher.stdin), data)
    except OSError:
        return  # full (it is stopped) or broken (it is gone): seen by its silence


def _hear(watcher: subprocess.Popen[bytes]) -> bool:
    try:
        return bool(os.read(_number(watcher.stdout), 4096))
    except OSError:
        return False


def _close_pipes(watcher: subprocess.Popen[bytes]) -> None:
    for pipe in (watcher.stdin, watcher.stdout):
        if pipe is not None:
            pipe.close()


def _end(watcher: subprocess.Popen[bytes], patience_s: float) -> None:
    try:
        watcher.wait(patience_s)
    except subprocess.TimeoutExpired:
        watcher.kill()
        watcher.wait()
