"""The append-only trace store: what was acknowledged is read back, whatever happened after.

One record a line, each with a checksum of its bytes and still valid JSON::

    {"crc":"5d41402a","row":{"kind":"sample","t_s":1.0,...}}

A line counts only with its checksum and its line end, so a tail torn at any byte is recognised.
CSV and Parquet are made from it at the end (`finalise`); they are copies, never the truth.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import logging
import math
import os
import stat
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from io import FileIO
from pathlib import Path
from types import TracebackType

from rlgov.errors import TraceError
from rlgov.traces.files import sync_folder
from rlgov.traces.row import TraceRow, row_of
from rlgov.traces.text import read_bytes

SCHEMA = "rlgov-trace"
VERSION = 1

_log = logging.getLogger(__name__)
_HEAD = b'{"crc":"'
_ROW = b'","row":'
_BLOCK = 65536
_BODY_AT = len(_HEAD) + 8 + len(_ROW)


@dataclass(frozen=True)
class StoredTrace:
    """What a store holds.

    Attributes:
        rows: Every acknowledged row, in the order of appending.
        meta: What the writer said about the run.
        good_bytes: Length of the file without its torn tail.
        torn_bytes: Bytes of an unfinished record at the end that were cut; 0 after an orderly end.
        corrupt: ``(line number, why)`` of damaged lines in the middle that were skipped.
    """

    rows: tuple[TraceRow, ...]
    meta: Mapping[str, object] = field(default_factory=dict)
    good_bytes: int = 0
    torn_bytes: int = 0
    corrupt: tuple[tuple[int, str], ...] = ()


def read_store(path: str | Path) -> StoredTrace:
    """Every acknowledged row of a store; damage is skipped, logged and reported, never fatal.

    Raises:
        TraceError: The file itself cannot be opened.
    """
    path = Path(path)
    whole, newline, tail = read_bytes(path).rpartition(b"\n")
    rows: list[TraceRow] = []
    meta: dict[str, object] = {}
    corrupt: list[tuple[int, str]] = []
    for number, line in enumerate(whole.split(b"\n") if newline else (), start=1):
        found = _read_line(line)
        if isinstance(found, TraceRow):
            rows.append(found)
        elif isinstance(found, dict):
            meta |= found
        elif found is not None:
            corrupt.append((number, found))
            _log.warning("%s: line %d skipped: %s", path, number, found)
    if tail:
        _log.warning("%s: %d bytes of an unfinished record at the end were cut", path, len(tail))
    good = len(whole) + len(newline)
    return StoredTrace(tuple(rows), meta, good, len(tail), tuple(corrupt))


def _read_line(line: bytes) -> TraceRow | dict[str, object] | str | None:
    """A row, the writer's notes, why the line is damaged, or nothing for a blank line."""
    try:
        record = unpack(line)
        if record is None or record.get("kind") == "meta":
            return record
        return row_of(record)
    except TraceError as error:
        return str(error)


def pack(record: Mapping[str, object]) -> bytes:
    """The stored line of a record, with its line end; what is not finite becomes null.

    Raises:
        TraceError: The record holds something that JSON cannot.
    """
    try:
        body = json.dumps(_finite(record), separators=(",", ":"), allow_nan=False).encode()
    except (TypeError, ValueError) as error:
        raise TraceError(f"a trace row holds what JSON cannot: {error}") from error
    return b"%s%08x%s%s}\n" % (_HEAD, zlib.crc32(body), _ROW, body)


def unpack(line: bytes) -> dict[str, object] | None:
    """The record of a stored line without its line end; ``None`` for a blank line.

    Raises:
        TraceError: The line is damaged.
    """
    line = line.rstrip(b"\r")
    if not line:
        return None
    crc, body = line[len(_HEAD) : len(_HEAD) + 8], line[_BODY_AT:-1]
    framed = line.startswith(_HEAD) and line[len(_HEAD) + 8 : _BODY_AT] == _ROW
    if not framed or line[-1:] != b"}":
        raise TraceError("this is no record of a trace")
    if crc != b"%08x" % zlib.crc32(body):
        raise TraceError("the checksum does not fit: the record is damaged")
    try:
        record = json.loads(body)
    except ValueError as error:
        raise TraceError(f"the record is no JSON: {error}") from error
    if not isinstance(record, dict):
        raise TraceError("the record is no JSON object")
    return record


class TraceWriter:
    """Append rows to a store; one writer at a time.

    Args:
        path: The file; it is continued where there is one, its torn tail cut first.
        fsync_every: Rows after which a sync makes them survive a power cut. 1: each row is
            acknowledged before `append` returns. 0: only `flush` and `close` acknowledge.
        meta: About the run, stored once at the head of each session.

    Attributes:
        acknowledged: Rows of this session that survive whatever comes.
        cut_bytes: Length of the torn tail that was cut on opening.

    Raises:
        TraceError: The file cannot be opened, or another process writes to it.
    """

    def __init__(
        self,
        path: str | Path,
        fsync_every: int = 1,
        meta: Mapping[str, object] | None = None,
    ) -> None:
        self.path = Path(path)
        self.acknowledged = 0
        self._every = fsync_every
        self._pending = 0
        self._file = _open(self.path)
        self._length, self.cut_bytes = _cut_tail(self._file, self.path)
        head = {"kind": "meta", "schema": SCHEMA, "version": VERSION, **(meta or {})}
        self._write(pack(head))
        self._sync()
        sync_folder(self.path.parent)

    def append(self, row: TraceRow) -> None:
        """Add a row; see `fsync_every` for when it is acknowledged.

        Raises:
            TraceError: The row was not stored (disk full, say); the store stays whole and later
                rows may be tried.
        """
        self._write(pack(row.record()))
        self._pending += 1
        if self._every and self._pending >= self._every:
            self.flush()

    def flush(self) -> None:
        """Acknowledge every row so far.

        Raises:
            TraceError: The disk refused.
        """
        if self._pending:
            self._sync()
            self.acknowledged += self._pending
            self._pending = 0

    def close(self) -> None:
        """Acknowledge every row and let go of the file. Idempotent."""
        if not self._file.closed:
            try:
                self.flush()
            finally:
                self._file.close()

    def __enter__(self) -> TraceWriter:
        """Return the writer."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close it."""
        self.close()

    def _write(self, line: bytes) -> None:
        try:
            written = self._file.write(line)
            if written != len(line):
                raise OSError(28, "the disk is full")
        except OSError as error:
            # Part of the line may be there; the next row must not be glued to it.
            with contextlib.suppress(OSError):
                self._file.truncate(self._length)
                self._file.seek(self._length)
            raise TraceError(f"cannot append to {self.path}: {error.strerror}") from error
        self._length += len(line)

    def _sync(self) -> None:
        try:
            os.fsync(self._file.fileno())
        except OSError as error:
            raise TraceError(f"cannot sync {self.path}: {error.strerror}") from error


def _open(path: Path) -> FileIO:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = FileIO(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666), "r+")
    except OSError as error:
        raise TraceError(f"cannot open {path} for appending: {error.strerror}") from error
    if not stat.S_ISREG(os.fstat(handle.fileno()).st_mode):
        handle.close()
        raise TraceError(f"{path} is no regular file: a trace cannot be appended to it")
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        handle.close()
        raise TraceError(f"{path} is being written by another process") from error
    return handle


def _cut_tail(handle: FileIO, path: Path) -> tuple[int, int]:
    """``(length kept, bytes cut)``; the last line end is looked for from the end backwards."""
    size = end = handle.seek(0, os.SEEK_END)
    good = 0
    while end > 0 and not good:
        begin = max(0, end - _BLOCK)
        at = os.pread(handle.fileno(), end - begin, begin).rfind(b"\n")
        good, end = (begin + at + 1 if at >= 0 else 0), begin
    if good < size:
        _log.warning("%s: %d bytes of an unfinished record were cut", path, size - good)
        handle.truncate(good)
    handle.seek(good)
    return good, size - good


def _finite(value: object) -> object:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    return value
