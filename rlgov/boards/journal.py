"""What the lease asks of a board of files: to have each write noted before it is made."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, runtime_checkable

from rlgov.boards.base import Board
from rlgov.boards.sysfs import Tree
from rlgov.boards.writer import Writer


@runtime_checkable
class OnFiles(Protocol):
    """A board of kernel files, all read and written through one tree."""

    tree: Tree


@runtime_checkable
class Moving(Protocol):
    """A board some of whose files also change by themselves, such as a clock that is unlocked."""

    live_files: tuple[str, ...]


class AnnouncingWriter:
    """Has each write of a file noted before it is made.

    Args:
        inner: Who writes.
        announce: Called with the key and the text.
    """

    def __init__(self, inner: Writer, announce: Callable[[str, str], None]) -> None:
        self.inner = inner
        self._announce = announce

    def write(self, key: str, text: str) -> None:
        """See `Writer.write`."""
        self._announce(key, text)
        self.inner.write(key, text)

    def refusal(self, key: str) -> OSError | None:
        """See `Writer.refusal`."""
        return self.inner.refusal(key)


def moving_files(board: Board) -> tuple[str, ...]:
    """Files of the board that also change by themselves."""
    return board.live_files if isinstance(board, Moving) else ()
