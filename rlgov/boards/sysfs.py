"""Kernel files: typed reads that say why there is no value, and writes in the order that holds.

A value that cannot be read is ``None`` with a reason; nothing here turns it into zero.
"""

from __future__ import annotations

import errno
import re
from dataclasses import dataclass
from pathlib import Path

from rlgov.boards.writer import FileWriter, Writer
from rlgov.errors import BoardError

GONE = frozenset({errno.ENOENT, errno.ENODEV, errno.ENXIO})
"""Error numbers of a file whose device is not there (any more): an offlined core, a driver."""

_REASONS = {
    errno.ENOENT: "not there (driver not loaded, core offline, or not mounted into this container)",
    errno.ENODEV: "its device is gone",
    errno.ENXIO: "its device is gone",
    errno.EACCES: "permission denied: start with sudo (the job drops back to your user)",
    errno.EPERM: "not permitted, even to root: kernel lockdown, or no --privileged container",
    errno.EROFS: "read-only file system: in a container, add -v /sys:/sys (or --privileged)",
    errno.EAGAIN: "no value at present (powered down)",
    errno.EINVAL: "the kernel refused the value",
    errno.EBUSY: "busy: another program holds it",
    errno.EOPNOTSUPP: "not supported by this device",
}


def why(error: OSError) -> str:
    """What an error of a kernel file means to the user, and what to do about it."""
    known = _REASONS.get(error.errno or 0)
    return known or (error.strerror or str(error))


def refused(name: str, error: OSError) -> BoardError:
    """The error for a write that failed."""
    return BoardError(f"{name} could not be set: {why(error)}")


@dataclass(frozen=True)
class Text:
    """Content of a file; ``None`` with a reason where there is none."""

    value: str | None
    reason: str = ""
    code: int = 0


@dataclass(frozen=True)
class Number:
    """A number from a file; ``None`` with a reason where there is none."""

    value: float | None
    reason: str = ""
    code: int = 0

    def times(self, factor: float) -> Number:
        """The number in another unit."""
        return self if self.value is None else Number(self.value * factor)


class Tree:
    """The kernel's files below ``root``.

    Args:
        root: ``/`` on a board; a folder that holds ``sys`` and ``proc`` elsewhere.
        writer: Who writes; by default this process.
    """

    def __init__(self, root: Path = Path("/"), writer: Writer | None = None) -> None:
        self.root = root
        self.writer = writer or FileWriter(root)

    def path(self, name: str) -> Path:
        """Where the board's file ``name`` (``/sys/…``) really is."""
        return self.root / name.lstrip("/")

    def raw(self, name: str) -> Text:
        """Content, byte for byte as far as it is text."""
        try:
            return Text(self.path(name).read_bytes().decode("utf-8", "replace"))
        except OSError as error:
            return Text(None, why(error), error.errno or errno.EIO)

    def text(self, name: str) -> Text:
        """Content without the newline (or NUL) at its end."""
        raw = self.raw(name)
        return raw if raw.value is None else Text(raw.value.strip("\n\0 "))

    def number(self, name: str, factor: float = 1.0) -> Number:
        """The one number that the file holds, times ``factor``."""
        text = self.text(name)
        if text.value is None:
            return Number(None, text.reason, text.code)
        try:
            return Number(float(text.value) * factor)
        except ValueError:
            return Number(None, f"holds no number but {text.value[:40]!r}", errno.EINVAL)

    def numbers(self, name: str) -> tuple[float, ...]:
        """Every number in the file, ascending and once each; empty where it cannot be read."""
        words = (self.text(name).value or "").split()
        return tuple(sorted({float(word) for word in words if word.isdigit()}))

    def names(self, folder: str, prefix: str = "") -> list[str]:
        """Entries of a folder, ``policy2`` before ``policy10``; none where it is not there."""
        try:
            found = [p.name for p in self.path(folder).iterdir() if p.name.startswith(prefix)]
        except OSError:
            return []
        return sorted(found, key=_natural)

    def exists(self, name: str) -> bool:
        """Whether the file is there, readable or not."""
        try:
            return self.path(name).exists()
        except OSError:
            return False

    def write(self, name: str, text: str) -> None:
        """Write through the writer.

        Raises:
            OSError: The kernel refused it.
        """
        self.writer.write(name, text)


def _natural(name: str) -> list[tuple[int, str]]:
    return [(int(part or 0), text) for text, part in re.findall(r"(\D*)(\d*)", name)]


def write_range(tree: Tree, low: tuple[str, str], high: tuple[str, str]) -> None:
    """Write a minimum and a maximum so that minimum <= maximum holds throughout.

    Raising writes the maximum first, lowering the minimum: kernels before 5 refuse the other order
    with EINVAL. When the second write fails, the first is undone.

    Args:
        tree: The board's files.
        low: File and text of the minimum.
        high: File and text of the maximum.

    Raises:
        OSError: A write failed; both files hold what they held.
    """
    present = tree.number(high[0])
    if present.value is None:
        raise OSError(present.code, present.reason)
    raising = float(high[1]) > present.value
    first, second = (high, low) if raising else (low, high)
    prior = tree.raw(first[0])
    tree.write(*first)
    try:
        tree.write(*second)
    except OSError:
        if prior.value is not None:
            tree.write(first[0], prior.value)
        raise
