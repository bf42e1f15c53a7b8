"""Traces as finished tables (CSV, Parquet), and reading a trace in whatever form it is."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rlgov.errors import TraceError
from rlgov.traces.columns import TRACE_COLUMNS, Column, rail_of, zone_of
from rlgov.traces.dialects import Dialect, write_rows
from rlgov.traces.parquet import has_parquet, read_parquet
from rlgov.traces.row import Plain, TraceRow, row_of
from rlgov.traces.store import read_store
from rlgov.traces.text import Table, parse_table, read_text

_log = logging.getLogger(__name__)
_COLUMNS = {column.name: column for column in TRACE_COLUMNS}
_TEXTS = frozenset(c.name for c in TRACE_COLUMNS if c.type in {"text", "texts", "numbers"})
_READ_ORDER = ("trace.jsonl", "trace.parquet", "trace.csv")


@dataclass(frozen=True)
class ReadTrace:
    """A trace as read.

    Attributes:
        rows: Its rows.
        path: The file that was read.
        problems: What was skipped or odd, in words.
    """

    rows: tuple[TraceRow, ...]
    path: Path
    problems: tuple[str, ...] = ()


def write_trace(rows: Iterable[TraceRow], path: str | Path, dialect: Dialect = "default") -> None:
    """Write rows to a CSV or Parquet file (by suffix), atomically.

    Raises:
        TraceError: It cannot be written, or pyarrow is missing.
    """
    names = [column.name for column in TRACE_COLUMNS]
    write_rows(Path(path), [row.record() for row in rows], names, dialect)


def finalise(store: str | Path, parquet: bool | None = None) -> list[Path]:
    """Make ``trace.csv`` (and Parquet) beside a store; the store is kept.

    Args:
        store: The JSONL file.
        parquet: ``None``: where pyarrow is installed.

    Returns:
        The files that were written.

    Raises:
        TraceError: They cannot be written, or pyarrow is missing and was asked for.
    """
    store = Path(store)
    return write_tables(read_store(store).rows, store.with_suffix(""), parquet)


def write_tables(rows: Sequence[TraceRow], stem: Path, parquet: bool | None = None) -> list[Path]:
    """Write ``<stem>.csv`` and, see `finalise`, ``<stem>.parquet``.

    Raises:
        TraceError: See `finalise`.
    """
    wanted = has_parquet() if parquet is None else parquet
    paths = [stem.with_name(f"{stem.name}.csv")]
    paths += [stem.with_name(f"{stem.name}.parquet")] if wanted else []
    for path in paths:
        write_trace(rows, path)
    return paths


def read_trace(path: str | Path) -> ReadTrace:
    """A trace from a store, CSV, Parquet, or a folder that holds one.

    In a folder the store comes first, and a damaged file gives way to the next with a warning.

    Raises:
        TraceError: There is nothing that can be read.
    """
    path = Path(path)
    if path.is_dir():
        return _read_folder(path)
    if path.suffix == ".jsonl":
        stored = read_store(path)
        problems = [f"line {number}: {why}" for number, why in stored.corrupt]
        if stored.torn_bytes:
            problems.append(f"{stored.torn_bytes} bytes of an unfinished record at the end")
        return ReadTrace(stored.rows, path, tuple(problems))
    if path.suffix == ".parquet":
        return _from_table(read_parquet(path), path)
    return _from_table(parse_table(read_text(path), _TEXTS), path)


def _read_folder(folder: Path) -> ReadTrace:
    problems: list[str] = []
    for name in _READ_ORDER:
        path = folder / name
        if not path.exists():
            continue
        try:
            trace = read_trace(path)
        except TraceError as error:
            problems.append(str(error))
            _log.warning("%s; trying the next file", error)
            continue
        if trace.rows:
            return ReadTrace(trace.rows, path, (*problems, *trace.problems))
        problems += [*trace.problems, f"{path} holds no row"]
    reasons = "; ".join(problems) or f"expected one of {', '.join(_READ_ORDER)}"
    raise TraceError(f"{folder} holds no readable trace: {reasons}")


def _from_table(table: Table, path: Path) -> ReadTrace:
    if "kind" not in table.header or "t_s" not in table.header:
        raise TraceError(f"{path}: no trace: columns 'kind' and 't_s' are missing")
    rows: list[TraceRow] = []
    problems: list[str] = []
    for line, cells in table.rows:
        row = _row(table, line, cells)
        if isinstance(row, TraceRow):
            rows.append(row)
        else:
            problems.append(row)
    return ReadTrace(tuple(rows), path, tuple(problems))


def _row(table: Table, line: int, cells: Sequence[str]) -> TraceRow | str:
    """The row, or why there is none."""
    try:
        return row_of(_record(table, line, cells))
    except TraceError as error:
        text = str(error)
        return text if text.startswith("line ") else f"line {line}: {text}"


def _record(table: Table, line: int, cells: Sequence[str]) -> Mapping[str, Plain]:
    named = zip(table.header, cells, strict=False)
    return {name: _value(table, line, name, cell) for name, cell in named if cell.strip()}


def _value(table: Table, line: int, name: str, cell: str) -> Plain:
    column = _COLUMNS.get(name)
    if column is None and rail_of(name) is None and zone_of(name) is None:
        return _extra(table, line, name, cell)
    if column is not None and column.type != "number":
        return _listed(table, line, column, cell)
    return table.number(cell, line, name)


def _listed(table: Table, line: int, column: Column, cell: str) -> Plain:
    if column.type == "integer":
        value = table.number(cell, line, column.name)
        return None if value is None else int(value)
    if column.type == "numbers":
        numbers = (table.number(part, line, column.name) for part in cell.split("|"))
        return [number for number in numbers if number is not None]
    return cell.split("|") if column.type == "texts" else cell


def _extra(table: Table, line: int, name: str, cell: str) -> Plain:
    try:
        return table.number(cell, line, name)
    except TraceError:
        return cell
