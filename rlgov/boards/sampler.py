"""Reads a board at a steady rate in a thread of its own, for whoever needs what lay in between."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from types import TracebackType

from rlgov.boards.base import Board, Reading
from rlgov.errors import BoardError

STALE_PERIODS = 10.0
MOST_KEPT = 100_000
LONGEST_RETRY_S = 5.0

log = logging.getLogger(__name__)


def _asleep_s() -> float:
    """Seconds since boot that the machine was suspended, which the monotonic clock leaves out."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) - time.monotonic()


class Sampler:
    """Collects readings of ``board``; a context manager.

    A board that cannot be read is asked again with growing pauses, never given up: what is missing
    meanwhile is a gap that the meter sees.

    Args:
        board: The board.
        period_s: Seconds between readings.
        asleep_s: Seconds the machine was suspended so far; for tests.

    Attributes:
        failures: Readings that failed.
        last_error: Why the last one failed; ``None`` once one has succeeded again.
        suspends: How often the machine slept.
    """

    def __init__(
        self, board: Board, period_s: float = 0.1, asleep_s: Callable[[], float] = _asleep_s
    ) -> None:
        self._board = board
        self._period_s = period_s
        self._asleep_s = asleep_s
        self._slept_s = asleep_s()
        self._queue: deque[Reading] = deque(maxlen=MOST_KEPT)
        self._newest_s: float | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._loop, name="rlgov-sampler", daemon=True)
        self.failures = 0
        self.suspends = 0
        self.last_error: str | None = None

    def __enter__(self) -> Sampler:
        """Start."""
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop; the board is not read any more."""
        self._stop.set()
        self._thread.join(timeout=5.0)

    def drain(self) -> list[Reading]:
        """Every reading since the last call, in order of time."""
        readings = []
        while self._queue:
            readings.append(self._queue.popleft())
        return readings

    @property
    def age_s(self) -> float | None:
        """Age of the newest reading; ``None`` before the first."""
        return None if self._newest_s is None else self._board.now_s() - self._newest_s

    @property
    def stale(self) -> bool:
        """Whether the newest reading is too old to act upon, or there is none."""
        age_s = self.age_s
        return age_s is None or age_s > STALE_PERIODS * self._period_s

    def sample(self) -> bool:
        """Take one reading; whether there was one."""
        self._notice_sleep()
        try:
            reading = self._board.read()
        except (BoardError, OSError) as error:
            if self.last_error is None:
                log.warning("the board cannot be read: %s", error)
            self.failures += 1
            self.last_error = str(error)
            return False
        self.last_error = None
        self._newest_s = reading.t_s
        self._queue.append(reading)
        return True

    def _notice_sleep(self) -> None:
        slept_s = self._asleep_s()
        if slept_s - self._slept_s > 1.0:
            self.suspends += 1
            log.warning("the machine slept for %.0f s", slept_s - self._slept_s)
        self._slept_s = slept_s

    def _loop(self) -> None:
        pause_s = self._period_s
        due_s = time.monotonic()
        while not self._stop.is_set():
            good = self.sample()
            pause_s = self._period_s if good else min(2.0 * pause_s, LONGEST_RETRY_S)
            # Late readings do not make the next ones come in a burst.
            due_s = max(due_s + pause_s, time.monotonic())
            self._stop.wait(due_s - time.monotonic())
