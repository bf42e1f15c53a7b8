"""Write rows as CSV in a stated dialect, whatever the machine's locale."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Literal

from rlgov.errors import ConfigError
from rlgov.traces.files import write_bytes
from rlgov.traces.parquet import write_parquet

Dialect = Literal["default", "excel_eu"]
"""``default``: comma, point, UTF-8, LF. ``excel_eu``: semicolon, decimal comma, BOM, CRLF."""

_DIALECTS = ("default", "excel_eu")


def write_rows(
    path: Path,
    rows: Sequence[Mapping[str, object]],
    documented: Sequence[str],
    dialect: Dialect = "default",
) -> None:
    """Write flat rows to a CSV or Parquet file (by suffix), atomically.

    Args:
        path: The file.
        rows: Flat rows; they may lack columns.
        documented: Columns that come first and are always there.
        dialect: Of a CSV file.

    Raises:
        ConfigError: No such dialect.
        TraceError: It cannot be written, or pyarrow is missing.
    """
    names = list(dict.fromkeys([*documented, *(name for row in rows for name in row)]))
    if path.suffix == ".parquet":
        write_parquet(path, rows, names)
        return
    text = to_csv(rows, names, dialect)
    write_bytes(path, text.encode("utf-8-sig" if dialect == "excel_eu" else "utf-8"))


def to_csv(
    rows: Iterable[Mapping[str, object]], names: Sequence[str], dialect: Dialect = "default"
) -> str:
    """Rows as CSV text with a header.

    Raises:
        ConfigError: No such dialect.
    """
    if dialect not in _DIALECTS:
        raise ConfigError(f"no CSV dialect {dialect!r}; there are: {', '.join(_DIALECTS)}")
    european = dialect == "excel_eu"
    stream = io.StringIO(newline="")
    end = "\r\n" if european else "\n"
    writer = csv.writer(stream, delimiter=";" if european else ",", lineterminator=end)
    writer.writerow(names)
    writer.writerows([_cell(row.get(name), european) for name in names] for row in rows)
    return stream.getvalue()


def _cell(value: object, european: bool) -> str:
    if value is None:
        return ""
    if isinstance(value, (list, tuple)):
        return "|".join(_cell(item, european) for item in value)
    if isinstance(value, float):
        # repr is the shortest text that reads back as the same number, in any locale.
        text = repr(value).removesuffix(".0")
        return text.replace(".", ",") if european else text
    return str(value)
