"""Files of the emulated kernel, each with a kernel attribute's manners."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable


def refusal(number: int) -> OSError:
    """The error that the kernel answers with."""
    return OSError(number, os.strerror(number))


class Node:
    """One file.

    Args:
        show: Its content, made anew at each reading.
        store: Takes what is written; ``None`` for a file that cannot be written.
        mode: Permission bits; by default 0644, or 0444 where nothing can be stored.
        present: Whether the file is there: an offline core takes its files along.
        moves: Whether its content changes by itself.
    """

    def __init__(
        self,
        show: Callable[[], str],
        store: Callable[[str], None] | None = None,
        *,
        mode: int | None = None,
        present: Callable[[], bool] = lambda: True,
        moves: bool = False,
    ) -> None:
        self.present = present
        self.moves = moves
        self.mode = mode if mode is not None else (0o444 if store is None else 0o644)
        self._show, self._store = show, store

    def read(self) -> bytes:
        """The content.

        Raises:
            OSError: As the kernel would.
        """
        return self._show().encode()

    def write(self, data: bytes) -> None:
        """Take one write, whatever its offset, as an attribute does.

        Raises:
            OSError: As the kernel would.
        """
        if self._store is None:
            raise refusal(errno.EACCES)
        self._store(data.decode("utf-8", "replace"))


def constant(text: str, mode: int = 0o444) -> Node:
    """A file that always says the same."""
    return Node(lambda: text, mode=mode)


def live(show: Callable[[], float], mode: int = 0o444) -> Node:
    """A file with a whole number that moves by itself."""
    return Node(lambda: f"{show():.0f}\n", mode=mode, moves=True)


class Number:
    """A stored whole number.

    Args:
        value: At the start.
        allowed: The values that may be stored; empty for any.
    """

    def __init__(self, value: int, allowed: tuple[int, ...] = ()) -> None:
        self.value = value
        self._allowed = allowed

    def node(self, mode: int = 0o644) -> Node:
        """The file."""
        return Node(lambda: f"{self.value}\n", self._store, mode=mode)

    def _store(self, text: str) -> None:
        value = whole(text)
        if self._allowed and value not in self._allowed:
            raise refusal(errno.EINVAL)
        self.value = value


def whole(text: str) -> int:
    """The number that the kernel reads from ``text``: decimal or hexadecimal, not negative.

    Raises:
        OSError: EINVAL, for anything else.
    """
    word = text.strip().removesuffix("\0")
    try:
        value = int(word, 16 if word.lower().startswith("0x") else 10)
    except ValueError:
        raise refusal(errno.EINVAL) from None
    if value < 0:
        raise refusal(errno.EINVAL)
    return value
