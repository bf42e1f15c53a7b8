"""One line that says how far an evaluation is; silent without a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn


class WindowBar:
    """Counts windows.

    Args:
        console: Where the bar goes.
        total: Windows in all.
    """

    def __init__(self, console: Console, total: int) -> None:
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            console=console,
            disable=not console.is_terminal,
        )
        self._task = self._bar.add_task("", total=total)
        self._counting = True

    def __enter__(self) -> WindowBar:
        self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bar.stop()

    def describe(self, what: str) -> None:
        """Say what is under way."""
        self._bar.update(self._task, description=what)

    def advance(self) -> None:
        """A window is done."""
        if self._counting:
            self._bar.advance(self._task)

    @contextmanager
    def paused(self, what: str) -> Iterator[None]:
        """Windows inside are not counted."""
        self.describe(what)
        self._counting = False
        try:
            yield
        finally:
            self._counting = True
