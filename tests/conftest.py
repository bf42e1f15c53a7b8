"""What every test may rely on."""

from __future__ import annotations

import signal


def pytest_configure() -> None:
    """Signals mean what they say: a runner in the background hands them down ignored."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
