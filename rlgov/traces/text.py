"""Text and tables as people's tools leave them: BOM, CRLF, UTF-16, semicolons, decimal commas."""

from __future__ import annotations

import codecs
import csv
import io
import math
import re
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from rlgov.errors import TraceError

_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_COMMA_NUMBER = re.compile(r"[+-]?\d+,\d+(?:[eE][+-]?\d+)?")
_DOT_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")


def read_bytes(path: Path) -> bytes:
    """All of a file.

    Raises:
        TraceError: It is missing, a folder or unreadable.
    """
    try:
        if stat.S_ISCHR(path.stat().st_mode):
            raise TraceError(f"cannot read {path}: a device has no end")
        return path.read_bytes()
    except OSError as error:
        raise TraceError(f"cannot read {path}: {error.strerror or error}") from error


def read_text(path: Path) -> str:
    """All of a text file, whatever tool saved it.

    Raises:
        TraceError: It cannot be read.
    """
    return decode(read_bytes(path))


def decode(data: bytes) -> str:
    """Text of ``data``: by its BOM, UTF-16 by its zero bytes, else UTF-8.

    Bytes that are no text become U+FFFD, and zero bytes (what a power cut leaves at the end of a
    file) are dropped, so that one bad spot costs one field.
    """
    for bom, encoding in _BOMS:
        if data.startswith(bom):
            return data[len(bom) :].decode(encoding, errors="replace").replace("\0", "")
    return data.decode(_guess(data[:512]), errors="replace").replace("\0", "")


def _guess(head: bytes) -> str:
    even, odd = head[0::2], head[1::2]
    if len(odd) > 1 and odd.count(0) > 0.8 * len(odd) and even.count(0) < 0.1 * len(even):
        return "utf-16-le"
    if len(odd) > 1 and even.count(0) > 0.8 * len(even) and odd.count(0) < 0.1 * len(odd):
        return "utf-16-be"
    return "utf-8"


@dataclass(frozen=True)
class Table:
    """A delimited table.

    Attributes:
        header: Column names, stripped.
        rows: ``(line number, cells)`` of every row that is not blank.
        delimiter: ``,``, ``;`` or tab.
        decimal_comma: Whether its numbers are written like ``22,5``.
    """

    header: tuple[str, ...]
    rows: tuple[tuple[int, tuple[str, ...]], ...]
    delimiter: str
    decimal_comma: bool

    def number(self, cell: str, line: int, column: str) -> float | None:
        """The number in ``cell``; ``None`` when it is empty.

        Raises:
            TraceError: It is no number, or may be read in two ways.
        """
        text = cell.strip()
        if not text or text.lower() in {"na", "n/a", "nan", "null", "none", "-"}:
            return None
        value = math.nan
        if self.decimal_comma and _COMMA_NUMBER.fullmatch(text):
            value = float(text.replace(",", "."))
        elif _DOT_NUMBER.fullmatch(text) and not (self.decimal_comma and "." in text):
            value = float(text)
        if math.isfinite(value):
            return value
        raise TraceError(f"line {line}, column {column!r}: {_why_no_number(text, self)}")


def _why_no_number(text: str, table: Table) -> str:
    if _COMMA_NUMBER.fullmatch(text):
        return (
            f"{text!r} has a decimal comma in a file whose columns are split by commas; "
            "save it with points, or with semicolons between the columns"
        )
    if table.decimal_comma and "." in text:
        return f"{text!r} has a point where the file's other numbers have decimal commas"
    return f"{text!r} is not a number (did a spreadsheet turn it into a date?)"


def parse_table(text: str, text_columns: frozenset[str] = frozenset()) -> Table:
    """The table in ``text``; its delimiter and decimal sign are found out.

    Args:
        text: The whole file.
        text_columns: Columns (lower case) that say nothing about the decimal sign.

    Raises:
        TraceError: There is no header, or a name stands in it twice.
    """
    lines = text.lstrip("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    delimiter, lines, skipped = _delimiter(lines)
    reader = _records(lines, delimiter, skipped)
    header = tuple(cell.strip().strip("\ufeff") for cell in next(reader, (0, []))[1])
    if not any(header):
        raise TraceError("the file is empty: a header line with column names is expected")
    doubled = sorted({name for name in header if name and header.count(name) > 1})
    if doubled:
        raise TraceError(f"these columns stand in the header twice: {', '.join(doubled)}")
    rows = tuple((n, tuple(cells)) for n, cells in reader if any(c.strip() for c in cells))
    comma = delimiter != "," and _has_decimal_comma(header, rows, text_columns)
    return Table(header, rows, delimiter, comma)


def _delimiter(text: str) -> tuple[str, str, int]:
    """``(delimiter, text without Excel's ``sep=`` line, lines dropped)``."""
    first, _, rest = text.partition("\n")
    declared = re.fullmatch(r'"?sep=(.)"?\s*', first, flags=re.IGNORECASE)
    if declared:
        return declared.group(1), rest, 1
    bare = re.sub(r'"[^"]*"', "", first)
    return max(",;\t", key=bare.count), text, 0


def _records(text: str, delimiter: str, skipped: int) -> Iterator[tuple[int, Sequence[str]]]:
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    while True:
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise TraceError(f"line {reader.line_num + skipped}: {error}") from error
        if cells or reader.line_num > 1:
            yield reader.line_num + skipped, cells


def _has_decimal_comma(
    header: Sequence[str],
    rows: Sequence[tuple[int, Sequence[str]]],
    text_columns: frozenset[str],
) -> bool:
    numeric = [i for i, name in enumerate(header) if name.lower() not in text_columns]
    return any(
        _COMMA_NUMBER.fullmatch(cells[i].strip())
        for _, cells in rows
        for i in numeric
        if i < len(cells)
    )
