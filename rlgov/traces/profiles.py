"""Read and write profiles as CSV or Parquet; other people's column names are understood."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from rlgov.errors import TraceError
from rlgov.traces.columns import PROFILE_COLUMNS
from rlgov.traces.dialects import Dialect, write_rows
from rlgov.traces.parquet import read_parquet
from rlgov.traces.profile import Profile, ProfileRow, describe_jobs
from rlgov.traces.profile_layout import TEXTS, is_profile_header, layout_of
from rlgov.traces.profile_rows import row_of_line
from rlgov.traces.text import Table, parse_table, read_text

__all__ = [
    "is_profile_header",
    "parse_profiles",
    "read_profile",
    "read_profiles",
    "write_profile",
]


def read_profile(path: str | Path, job: str | None = None, device: str | None = None) -> Profile:
    """The profile in a CSV or Parquet file.

    Args:
        path: The file.
        job: Which job, by its name or an unambiguous part of it; needed where there are several.
        device: Which device, likewise.

    Raises:
        TraceError: The file cannot be read as a profile (with line and column), or holds several
            jobs or devices (they are listed).
    """
    path = Path(path)
    profiles = read_profiles(path)
    rows = [row for profile in profiles for row in profile.rows]
    chosen = _chosen(_chosen(rows, job, _job_of), device, _device_of)
    if not chosen:
        raise TraceError(f"{path}: nothing fits job={job} device={device}; {describe_jobs(rows)}")
    if len({(row.device, row.job) for row in chosen}) > 1:
        raise TraceError(f"{path}: choose one with job= and device=; {describe_jobs(chosen)}")
    kept = (chosen[0].device, chosen[0].job)
    return next(p for p in profiles if (p.device, p.job) == kept)


def read_profiles(path: str | Path) -> list[Profile]:
    """Every job on every device of a profile file, in order of appearance.

    Raises:
        TraceError: The file cannot be read as a profile (with line and column).
    """
    path = Path(path)
    try:
        table = read_parquet(path) if path.suffix == ".parquet" else _read_csv(path)
        return _profiles(table)
    except TraceError as error:
        if str(path) in str(error):
            raise
        raise TraceError(f"{path}: {error}") from error


def write_profile(
    profiles: Profile | Iterable[Profile], path: str | Path, dialect: Dialect = "default"
) -> None:
    """Write one or several profiles to a CSV or Parquet file, atomically.

    Args:
        profiles: What to write.
        path: Its suffix chooses the format.
        dialect: For CSV: ``default`` (comma, point, UTF-8) or ``excel_eu``.

    Raises:
        TraceError: It cannot be written, or pyarrow is missing.
    """
    several = [profiles] if isinstance(profiles, Profile) else list(profiles)
    rows = [_record(row) for profile in several for row in profile.rows]
    write_rows(Path(path), rows, [column.name for column in PROFILE_COLUMNS], dialect)


def parse_profiles(text: str) -> list[Profile]:
    """As `read_profiles`, from the text of a CSV file.

    Raises:
        TraceError: It is no profile (with line and column).
    """
    return _profiles(parse_table(text, TEXTS))


def _read_csv(path: Path) -> Table:
    return parse_table(read_text(path), TEXTS)


def _profiles(table: Table) -> list[Profile]:
    layout = layout_of(table.header)
    warnings: list[str] = []
    rows = [row_of_line(table, layout, line, cells, warnings) for line, cells in table.rows]
    if not rows:
        raise TraceError("there is a header but no row")
    pairs = dict.fromkeys((row.device, row.job) for row in rows)
    return [Profile([r for r in rows if (r.device, r.job) == pair], warnings) for pair in pairs]


def _record(row: ProfileRow) -> dict[str, object]:
    flat: dict[str, object] = {c.name: getattr(row, c.name) for c in PROFILE_COLUMNS}
    flat |= {f"{rail}_w": watts for rail, watts in row.rails.items()}
    # The config as somebody else wrote it must not replace ours.
    flat |= {k if k not in flat else f"{k}_as_written": v for k, v in row.extra.items()}
    return flat


def _job_of(row: ProfileRow) -> str:
    return row.job


def _device_of(row: ProfileRow) -> str:
    return row.device


def _chosen(
    rows: Sequence[ProfileRow], wanted: str | None, name_of: Callable[[ProfileRow], str]
) -> list[ProfileRow]:
    """The rows whose name is ``wanted``, else those whose name contains it; all for ``None``."""
    if wanted is None:
        return list(rows)
    exact = [row for row in rows if name_of(row) == wanted]
    return exact or [row for row in rows if wanted.lower() in name_of(row).lower()]
