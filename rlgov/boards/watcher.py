"""The watcher: a small process that gives the board back when its governor no longer can.

It hears the governor's heartbeat through a pipe, and answers through another one. It acts on the
pipe's end (death by whatever signal), on a governor that SIGSTOP holds, and on a heartbeat that
has gone stale; after a hang it goes on watching, since the governor may come back.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import time
from pathlib import Path

from rlgov.boards import process
from rlgov.boards.leasefile import LeaseFolder

BEAT_S = 0.25
"""Seconds between heartbeats, and between the watcher's looks."""

STALE_S = 1.4
"""A heartbeat older than this is a hang; with the restore it stays below two seconds."""

STOPPED_S = 0.5
"""So long may SIGSTOP hold the governor (a moment's debugger is no hang)."""

BYE = b"q"
"""Sent in place of a heartbeat by a governor that has given the board back itself."""

IGNORED = (signal.SIGINT, signal.SIGHUP, signal.SIGTERM, signal.SIGPIPE)
"""Meant for the governor: a terminal or service manager sends them to the watcher as well."""

_RETRIES_S = (0.1, 0.2, 0.5, 1.0, 2.0, 4.0)
"""Pauses between tries to write what the kernel refused."""


class Watcher:
    """Watches one governor.

    Args:
        folder: Where the lease lies.
        run_id: The lease.
        pid: The governor.
        start: When it began, see `process.start_time`.
    """

    def __init__(self, folder: LeaseFolder, run_id: str, pid: int, start: str) -> None:
        self._folder, self._run_id, self._pid, self._start = folder, run_id, pid, start
        self._heard_s = time.monotonic()
        self._running_s = self._heard_s
        self._tripped = False

    def run(self) -> int:
        """Watch to the end of the governor; 0 when the board is as it was found."""
        while True:
            ready, _, _ = select.select([0], [], [], BEAT_S)
            if ready:
                data = os.read(0, 4096)
                if BYE in data:
                    return 0
                if not data:
                    return self._finish()
                self._heard_s = time.monotonic()
            seen = process.look(self._pid)
            if seen is None or seen[0] in "ZX" or seen[1] != self._start:
                return self._finish()
            self._watch_hang(seen[0])
            _answer()

    def _watch_hang(self, state: str) -> None:
        now_s = time.monotonic()
        if state != process.STOPPED:
            self._running_s = now_s
        hangs = now_s - self._heard_s > STALE_S or now_s - self._running_s > STOPPED_S
        if hangs and not self._tripped:
            self._folder.give_back(self._run_id, "watcher", keep=True)
        self._tripped = hangs

    def _finish(self) -> int:
        for pause_s in (*_RETRIES_S, None):
            outcome = self._folder.give_back(self._run_id, "watcher")
            if outcome is None or not outcome.failed:
                return self._rest()
            if pause_s is not None:
                time.sleep(pause_s)
        return 1

    def _rest(self) -> int:
        """Have the values that are no files given back by rlgov itself."""
        record = self._folder.record()
        if record is None or record["returned"] or record["run_id"] != self._run_id:
            return 0
        state = self._folder.path
        where = [f"state_dir={state}", f"out={state / ('restore-' + self._run_id)}"]
        program = record["python"]
        words = [program, "-m", "rlgov", "restore", *where]
        return os.spawnv(os.P_WAIT, program, words)  # noqa: S606


def _answer() -> None:
    try:
        os.write(1, b".")
    except OSError:
        return  # the governor does not listen, or is gone, which the next look finds out


def main(arguments: list[str]) -> int:
    """Run with ``FOLDER RUN_ID PID START``; standard input and output are the two pipes."""
    for number in IGNORED:
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, IGNORED)  # the governor held them back for us
    os.set_blocking(1, False)
    _spare_from_oom()
    folder, run_id, pid, start = arguments
    return Watcher(LeaseFolder(Path(folder)), run_id, int(pid), start).run()


def _spare_from_oom() -> None:
    """Ask the OOM killer to look elsewhere; only root may."""
    try:
        Path("/proc/self/oom_score_adj").write_text("-1000", encoding="ascii")
    except OSError:
        return


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
