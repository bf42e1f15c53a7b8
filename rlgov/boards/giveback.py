"""Put prior values back into files, by the rule that both the governor and its watcher follow.

Standard library only, since the watcher's interpreter has no site-packages and must stay small.

The rule, for each file of the as-found state, by what it holds now:

- the prior value: nothing is written;
- a value that we wrote to it or to its min/max partner, the partner's prior value (the kernel
  clamps one against the other), or nothing at all: the prior value is written;
- anything else, or a file that we never wrote: somebody else's, left alone and reported, unless
  the lease says ``overwrite``.

Without a journal of our writes everything that differs is taken for ours.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

Written = Mapping[str, Sequence[str]]
"""File -> every text that we wrote to it."""

_PARTNERS = (
    ("min_freq", "max_freq"),
    ("scaling_min_freq", "scaling_max_freq"),
    ("emc_min_rate", "emc_max_rate"),
)
"""File names of one range: the lower end, the upper end."""

_PASSES = 3
"""A write that one order refuses is tried again once the others are done."""


class Outcome:
    """What a giving back did.

    Attributes:
        restored: Files that were written.
        kept: File -> the value of somebody else that was left in it.
        failed: File -> why the prior value could not be written.
    """

    def __init__(self) -> None:
        self.restored: list[str] = []
        self.kept: dict[str, str] = {}
        self.failed: dict[str, str] = {}


def is_file_key(key: str) -> bool:
    """Whether a key of a board's state is a file that holds its value."""
    return key.startswith("/")


def place(root: str, key: str) -> str:
    """Where the file that reads ``key`` on the board really is."""
    return key if root == "/" else root.rstrip("/") + key


def on_disk(root: str, values: Mapping[str, str]) -> dict[str, str]:
    """The part of a board's state that lies in files, by their real paths."""
    return {place(root, key): text for key, text in values.items() if is_file_key(key)}


def partner(path: str) -> str | None:
    """The other end of the range that ``path`` is one end of."""
    folder, _, name = path.rpartition("/")
    for pair in _PARTNERS:
        if name in pair:
            return folder + "/" + pair[1 - pair.index(name)]
    return None


def same(left: str, right: str) -> bool:
    """Whether two texts mean the same value to the kernel."""
    return left.split() == right.split()


def is_ours(path: str, present: str, values: Mapping[str, str], written: Written | None) -> bool:
    """Whether ``present``, which is not the prior value, got into ``path`` because of us.

    Args:
        path: The file.
        present: What it holds.
        values: The as-found state.
        written: File -> every text that we wrote to it; ``None`` when nobody kept count.
    """
    if written is None or not present.strip():
        return True
    if path not in written:
        return False
    other = partner(path)
    candidates = list(written[path])
    if other is not None:
        candidates += written.get(other, [])
        candidates += [values[other]] if other in values else []
    return any(same(present, text) for text in candidates)


def restore_files(
    values: Mapping[str, str], written: Written | None, keep_foreign: bool = True
) -> Outcome:
    """Give back every file of ``values``.

    Args:
        values: File -> prior text, in the order in which they are to be written.
        written: See `is_ours`.
        keep_foreign: Leave somebody else's values alone.
    """
    outcome = Outcome()
    due = [path for path in values if _is_due(path, values, written, keep_foreign, outcome)]
    for _ in range(_PASSES):
        due = [path for path in _safe_order(due, values) if not _write(path, values, outcome)]
        if not due:
            break
    return outcome


def foreign_values(values: Mapping[str, str], written: Written | None) -> dict[str, str]:
    """File -> what somebody else left in it, by the rule above."""
    outcome = Outcome()
    for path in values:
        _is_due(path, values, written, True, outcome)
    return outcome.kept


def _is_due(
    path: str,
    values: Mapping[str, str],
    written: Written | None,
    keep_foreign: bool,
    outcome: Outcome,
) -> bool:
    try:
        present = read_text(path)
    except OSError:
        # A core that went offline took its files along; trying says why, where it matters.
        return written is None or path in written
    if present == values[path] or (same(present, values[path]) and present.strip()):
        return False
    if keep_foreign and not is_ours(path, present, values, written):
        outcome.kept[path] = present.strip()
        return False
    return True


def _safe_order(due: Sequence[str], values: Mapping[str, str]) -> list[str]:
    """``due`` with the ends of each range in an order that never has min above max."""
    ordered: list[str] = []
    for path in due:
        other = partner(path)
        if path in ordered:
            continue
        if other is None or other not in due:
            ordered.append(path)
            continue
        low, high = sorted((path, other), key=_is_upper)
        ordered += [high, low] if _above(values[low], high) else [low, high]
    return ordered


def _is_upper(path: str) -> bool:
    return any(path.endswith("/" + pair[1]) for pair in _PARTNERS)


def _above(low: str, high_path: str) -> bool:
    """Whether the lower end's new value is above the upper end's present one."""
    try:
        ceiling = int(read_text(high_path))
        return 0 < ceiling < int(low)  # 0 stands for no limit
    except (OSError, ValueError):
        return False


def _write(path: str, values: Mapping[str, str], outcome: Outcome) -> bool:
    try:
        handle = os.open(path, os.O_WRONLY | os.O_TRUNC)
        try:
            os.write(handle, values[path].encode("utf-8", "surrogateescape"))
        finally:
            os.close(handle)
    except OSError as error:
        outcome.failed[path] = error.strerror or str(error)
        return False
    outcome.failed.pop(path, None)
    outcome.restored.append(path)
    return True


def read_text(path: str) -> str:
    """The whole content of a small file."""
    handle = os.open(path, os.O_RDONLY)
    try:
        return os.read(handle, 65536).decode("utf-8", "surrogateescape")
    finally:
        os.close(handle)
