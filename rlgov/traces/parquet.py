"""Parquet in and out, through pyarrow where it is installed."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from rlgov.errors import TraceError
from rlgov.traces.files import write_bytes
from rlgov.traces.text import Table

_MISSING = "Parquet needs pyarrow: pip install 'rlgov[parquet]'"


def has_parquet() -> bool:
    """Whether pyarrow is installed."""
    return find_spec("pyarrow") is not None


def write_parquet(path: Path, rows: Sequence[Mapping[str, object]], names: Sequence[str]) -> None:
    """Write flat rows to ``path`` atomically; lists are joined by ``|`` as in CSV.

    Raises:
        TraceError: pyarrow is missing, a column mixes types, or the file cannot be written.
    """
    arrow = _pyarrow()
    columns = {name: _column(arrow, [row.get(name) for row in rows]) for name in names}
    buffer = io.BytesIO()
    arrow.parquet.write_table(arrow.table(columns), buffer)
    write_bytes(path, buffer.getvalue())


def read_parquet(path: Path) -> Table:
    """A Parquet file as a table of text cells, so that CSV and Parquet share one reader.

    Raises:
        TraceError: pyarrow is missing, or the file is damaged.
    """
    arrow = _pyarrow()
    try:
        table = arrow.parquet.read_table(path)
    except (OSError, arrow.ArrowException) as error:
        raise TraceError(f"cannot read {path} as Parquet: {error}") from error
    header = tuple(table.column_names)
    numbered = enumerate(table.to_pylist(), start=2)
    cells = tuple((n, tuple(_text(row[name]) for name in header)) for n, row in numbered)
    return Table(header, cells, delimiter=",", decimal_comma=False)


def _text(value: object) -> str:
    if value is None:
        return ""
    return repr(value) if isinstance(value, float) else str(value)


def _column(arrow: Any, values: Sequence[object]) -> Any:
    flat = ["|".join(map(str, v)) if isinstance(v, (list, tuple)) else v for v in values]
    present = [value for value in flat if value is not None]
    if any(isinstance(value, str) for value in present):
        return arrow.array([None if v is None else str(v) for v in flat], arrow.string())
    if any(isinstance(value, float) for value in present):
        return arrow.array([None if v is None else float(str(v)) for v in flat], arrow.float64())
    return arrow.array(flat) if present else arrow.array(flat, arrow.string())


def _pyarrow() -> Any:
    if not has_parquet():
        raise TraceError(_MISSING)
    import pyarrow.parquet

    return pyarrow
