"""Keep a launcher alive until its job has ended, and let the job hear what the launcher hears."""

from __future__ import annotations

import os
import signal
import threading
from types import FrameType
from typing import Any

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class ForwardedSignals:
    """Handlers that outlive an interruption instead of dying of it.

    SIGTERM and SIGHUP are passed on to the job. SIGINT is passed on only when it cannot have come
    from the terminal, which sends it to the job by itself: a second one would cut short the
    job's own cleaning up.

    Attributes:
        received: The signals seen so far, in order.
    """

    def __init__(self) -> None:
        self.received: list[int] = []
        self._before: dict[int, Any] = {}
        self._pid = 0

    def install(self, pid: int) -> None:
        """Begin, with ``pid`` as the job (outside the main thread: do nothing)."""
        if threading.current_thread() is not threading.main_thread():
            return
        self._pid = pid
        for number in _SIGNALS:
            # What nohup ignores must stay ignored, here and in the job.
            if signal.getsignal(number) is not signal.SIG_IGN:
                self._before[number] = signal.signal(number, self._handle)

    def restore(self) -> None:
        """Give every handler back."""
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before = {}

    def _handle(self, number: int, _frame: FrameType | None) -> None:
        self.received.append(number)
        if number == signal.SIGINT and _terminal_is_ours():
            return
        try:
            os.kill(self._pid, number)
        except ProcessLookupError:
            return


def _terminal_is_ours() -> bool:
    """Whether our process group is the one that the terminal sends its Ctrl-C to."""
    try:
        terminal = os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY)
    except OSError:
        return False
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:
        return False
    finally:
        os.close(terminal)
