"""What ``rlgov traces import|check|show`` do, as plain functions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from rlgov.errors import TraceError
from rlgov.traces.files import write_json
from rlgov.traces.importers import Clock, ImportReport
from rlgov.traces.importers import importer as importer_called
from rlgov.traces.importers.registry import detect_text
from rlgov.traces.profile import KNOB_COLUMNS
from rlgov.traces.profiles import is_profile_header, read_profiles
from rlgov.traces.row import Record, TraceRow
from rlgov.traces.tables import read_trace, write_tables
from rlgov.traces.text import parse_table, read_text


def import_log(
    path: str | Path,
    *,
    importer: str = "auto",
    tz: str | None = None,
    interval_s: float | None = None,
    out: str | Path,
) -> ImportReport:
    """Import another tool's log: ``trace.csv``, Parquet where pyarrow is installed, summary.json.

    Args:
        path: The log.
        importer: Name of an importer, or ``auto``.
        tz: Time zone of the log's local stamps; ``None``: UTC, stated in the report.
        interval_s: Seconds between lines without stamps; ``None``: 1, stated in the report.
        out: Folder for the files; each is replaced whole or not at all, the summary last.

    Raises:
        TraceError: Not one line could be read, or a file cannot be read or written.
        ConfigError: No such importer or time zone.
    """
    path, out = Path(path), Path(out)
    text = read_text(path)
    reader = detect_text(text, path) if importer == "auto" else importer_called(importer)
    try:
        imported = reader.read(text, Clock(tz, interval_s))
    except TraceError as error:
        raise TraceError(f"{path}: {error}") from error
    report = imported.report
    if not imported.rows:
        raise TraceError(f"{path}: none of {report.lines} lines could be read as {reader.name}")
    files = write_tables(imported.rows, out / "trace")
    report.files = [file.name for file in files]
    write_json(out / "summary.json", report.as_dict())
    return report


@dataclass(frozen=True)
class Problem:
    """Something wrong with a file.

    Attributes:
        path: The file.
        text: What, with the line where there is one.
        fatal: Whether the file cannot be used at all.
    """

    path: Path
    text: str
    fatal: bool


@dataclass(frozen=True)
class CheckResult:
    """What `check` found.

    Attributes:
        kind: ``trace``, ``profile`` or ``unreadable``.
        path: The file that was read (of a folder, the one inside).
        rows: Rows that could be read.
        problems: What is wrong; empty for a sound file.
    """

    kind: str
    path: Path
    rows: int
    problems: tuple[Problem, ...]

    @property
    def ok(self) -> bool:
        """Whether the file can be used."""
        return not any(problem.fatal for problem in self.problems)


def check(path: str | Path) -> CheckResult:
    """Validate a trace or profile (file, or folder with a trace); nothing is raised."""
    path = Path(path)
    try:
        if _is_profile(path):
            profiles = read_profiles(path)
            odd = [Problem(path, text, False) for text in profiles[0].warnings]
            return CheckResult("profile", path, sum(map(len, profiles)), tuple(odd))
        trace = read_trace(path)
    except TraceError as error:
        return CheckResult("unreadable", path, 0, (Problem(path, str(error), True),))
    texts = [*trace.problems, *_order_problems(trace.rows)]
    problems = [Problem(trace.path, text, False) for text in texts]
    if not trace.rows:
        problems.append(Problem(trace.path, "no row could be read", True))
    return CheckResult("trace", trace.path, len(trace.rows), tuple(problems))


@dataclass(frozen=True)
class ColumnSummary:
    """One numeric column: how many rows have it, and its range."""

    name: str
    count: int
    minimum: float
    mean: float
    maximum: float


@dataclass(frozen=True)
class Summary:
    """What `show` shows.

    Attributes:
        kind: ``trace`` or ``profile``.
        path: The file that was read.
        rows: Rows in all.
        kinds: Rows by kind (traces) or by job on device (profiles).
        span_s: Seconds from the first to the last row; ``None`` without times.
        first_utc: Label of the first row that has one.
        last_utc: Label of the last row that has one.
        rails: Rails that any row has.
        columns: Every numeric column with at least one value.
        quality: Flag -> rows that carry it.
        problems: See `CheckResult.problems`.
    """

    kind: str
    path: Path
    rows: int
    kinds: dict[str, int]
    span_s: float | None
    first_utc: str | None
    last_utc: str | None
    rails: tuple[str, ...]
    columns: tuple[ColumnSummary, ...]
    quality: dict[str, int]
    problems: tuple[str, ...]


def show(path: str | Path) -> Summary:
    """Sum up a trace or profile.

    Raises:
        TraceError: It cannot be read.
    """
    path = Path(path)
    if _is_profile(path):
        return _show_profile(path)
    trace = read_trace(path)
    times = [row.t_s for row in trace.rows if row.t_s is not None]
    labels = [row.t_utc for row in trace.rows if row.t_utc]
    return Summary(
        kind="trace",
        path=trace.path,
        rows=len(trace.rows),
        kinds=_tally(row.kind for row in trace.rows),
        span_s=max(times) - min(times) if times else None,
        first_utc=labels[0] if labels else None,
        last_utc=labels[-1] if labels else None,
        rails=tuple(dict.fromkeys(rail for row in trace.rows for rail in row.rails)),
        columns=_columns(row.record() for row in trace.rows),
        quality=_tally(flag for row in trace.rows for flag in row.quality),
        problems=trace.problems,
    )


def _show_profile(path: Path) -> Summary:
    profiles = read_profiles(path)
    rows = [row for profile in profiles for row in profile.rows]
    figures = (*KNOB_COLUMNS, "step_time_s", "power_w", "energy_per_step_j")
    records: list[Record] = [
        {name: getattr(row, name) for name in figures}
        | {f"{rail}_w": watts for rail, watts in row.rails.items()}
        for row in rows
    ]
    return Summary(
        kind="profile",
        path=path,
        rows=len(rows),
        kinds={f"{p.job} on {p.device}": len(p) for p in profiles},
        span_s=None,
        first_utc=None,
        last_utc=None,
        rails=tuple(dict.fromkeys(rail for profile in profiles for rail in profile.rails)),
        columns=_columns(records),
        quality={},
        problems=profiles[0].warnings,
    )


def _is_profile(path: Path) -> bool:
    if path.is_dir() or path.suffix == ".jsonl":
        return False
    if path.suffix == ".parquet":
        from rlgov.traces.parquet import read_parquet

        return is_profile_header(read_parquet(path).header)
    first = read_text(path).lstrip("\ufeff\r\n").partition("\n")[0]
    return (
        bool(first.strip())
        and "kind" not in (names := parse_table(first).header)
        and (is_profile_header(names))
    )


def _order_problems(rows: Iterable[TraceRow]) -> list[str]:
    times = [(i, row.t_s) for i, row in enumerate(rows, start=1) if row.t_s is not None]
    back = [i for (_, a), (i, b) in pairwise(times) if b < a]
    return [f"row {i}: t_s goes back" for i in back[:20]]


def _tally(names: Iterable[str]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for name in names:
        counts[name] = counts.get(name, 0) + 1
    return counts


def _columns(records: Iterable[Record]) -> tuple[ColumnSummary, ...]:
    values: dict[str, list[float]] = {}
    for record in records:
        for name, value in record.items():
            if isinstance(value, (int, float)) and not isinstance(value, bool):
                values.setdefault(name, []).append(float(value))
    return tuple(
        ColumnSummary(name, len(seen), min(seen), sum(seen) / len(seen), max(seen))
        for name, seen in values.items()
    )
