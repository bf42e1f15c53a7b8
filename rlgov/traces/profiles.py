"""Read and write profiles as CSV or Parquet; other people's column names are understood."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rlgov.errors import TraceError
from rlgov.traces.columns import PROFILE_COLUMNS, rail_of
from rlgov.traces.dialects import Dialect, write_rows
from rlgov.traces.parquet import read_parquet
from rlgov.traces.profile import (
    AS_FOUND,
    KNOB_COLUMNS,
    PINNED,
    Profile,
    ProfileRow,
    describe_jobs,
)
from rlgov.traces.text import Table, parse_table, read_text
from rlgov.traces.totals import NO_RULE, SUM_RULE, total_rule, total_w

_ALIASES: Mapping[str, tuple[str, float]] = {
    "gpu_hz": ("gpu_mhz", 1e-6),
    "gpu_khz": ("gpu_mhz", 1e-3),
    "gpu_freq_mhz": ("gpu_mhz", 1.0),
    "cpu_hz": ("cpu_mhz", 1e-6),
    "cpu_khz": ("cpu_mhz", 1e-3),
    "cpu_freq_mhz": ("cpu_mhz", 1.0),
    "emc_hz": ("emc_mhz", 1e-6),
    "emc_khz": ("emc_mhz", 1e-3),
    "emc_freq_mhz": ("emc_mhz", 1.0),
    "emc_mhz_reported": ("emc_mhz", 1.0),
    "power_limit_mw": ("power_limit_w", 1e-3),
    "step_time_ms": ("step_time_s", 1e-3),
    "latency_ms": ("step_time_s", 1e-3),
    "latency_s": ("step_time_s", 1.0),
    "tpot_ms": ("step_time_s", 1e-3),
    "total_w": ("power_w", 1.0),
    "power_mw": ("power_w", 1e-3),
    "energy_per_step_mj": ("energy_per_step_j", 1e-3),
    "energy_per_token_j": ("energy_per_step_j", 1.0),
}
"""Other names of the figures (lower case) -> ours, and the factor to our unit."""

_TEXT_ALIASES = {"model": "job", "board": "device"}
_TEXTS = frozenset(c.name for c in PROFILE_COLUMNS if c.type == "text") | {*_TEXT_ALIASES}
_FIGURES = frozenset(c.name for c in PROFILE_COLUMNS if c.type != "text")
_MEASURES = ("step_time_s", "power_w", "energy_per_step_j")
_AS_FOUND_NAME = re.compile(r"as.?found|default|auto|podgov|maxn", re.IGNORECASE)
_RAIL_MW = re.compile(r"(.+?)(?:_mean)?_mw")


@dataclass(frozen=True)
class _Source:
    """Where a figure's column stands, and how it becomes ours."""

    index: int
    name: str
    factor: float = 1.0


@dataclass(frozen=True)
class _Layout:
    texts: Mapping[str, _Source]
    figures: Mapping[str, _Source]
    rails: Mapping[str, _Source]
    extras: Sequence[_Source]


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
    return _profiles(parse_table(text, _TEXTS))


def is_profile_header(header: Iterable[str]) -> bool:
    """Whether column names look like a profile's: a knob and a figure, and no time axis."""
    names = {name.strip().lower() for name in header}
    ours = {_ALIASES[name][0] if name in _ALIASES else name for name in names}
    figures = ours & {*_MEASURES} or any(_RAIL_MW.fullmatch(name) for name in names)
    return bool(ours & {*KNOB_COLUMNS}) and bool(figures) and not names & {"t_s", "kind", "time"}


def _read_csv(path: Path) -> Table:
    return parse_table(read_text(path), _TEXTS)


def _profiles(table: Table) -> list[Profile]:
    layout = _layout(table.header)
    warnings: list[str] = []
    rows = [_row(table, layout, line, cells, warnings) for line, cells in table.rows]
    if not rows:
        raise TraceError("there is a header but no row")
    pairs = dict.fromkeys((row.device, row.job) for row in rows)
    return [Profile([r for r in rows if (r.device, r.job) == pair], warnings) for pair in pairs]


def _layout(header: Sequence[str]) -> _Layout:
    layout = _Layout({}, {}, {}, [])
    texts, figures, rails = dict(layout.texts), dict(layout.figures), dict(layout.rails)
    extras: list[_Source] = []
    for index, name in enumerate(header):
        low = name.lower()
        target, factor = _ALIASES.get(low, (low, 1.0))
        rail, scale = _rail(low)
        if low in _TEXTS:
            _claim(texts, _TEXT_ALIASES.get(low, low), _Source(index, name))
        elif target in _FIGURES:
            _claim(figures, target, _Source(index, name, factor))
        elif rail is not None:
            _claim(rails, rail, _Source(index, name, scale))
        elif name:
            extras.append(_Source(index, name))
    if not (set(figures) & {*_MEASURES} or rails):
        raise TraceError(
            "no column holds a time, a power or an energy; expected one of "
            f"{', '.join(_MEASURES)} or <rail>_w, found: {', '.join(header)}"
        )
    return _Layout(texts, figures, rails, extras)


def _claim(places: dict[str, _Source], name: str, source: _Source) -> None:
    if name in places:
        raise TraceError(f"columns {places[name].name!r} and {source.name!r} both mean {name!r}")
    places[name] = source


def _rail(low: str) -> tuple[str | None, float]:
    milliwatts = _RAIL_MW.fullmatch(low)
    if milliwatts and not low.endswith("_sd_mw"):
        return milliwatts.group(1), 1e-3
    if low.endswith(("_sd_w", "_std_w")):
        return None, 1.0
    return rail_of(low), 1.0


def _row(
    table: Table, layout: _Layout, line: int, cells: Sequence[str], warnings: list[str]
) -> ProfileRow:
    if len(cells) > len(table.header) and any(c.strip() for c in cells[len(table.header) :]):
        raise TraceError(
            f"line {line}: {len(cells)} cells for {len(table.header)} columns; "
            "text with a comma must stand in quotes"
        )
    texts = {name: _cell(cells, source).strip() for name, source in layout.texts.items()}
    figures = {name: _figure(table, line, cells, s) for name, s in layout.figures.items()}
    rails = {name: _figure(table, line, cells, source) for name, source in layout.rails.items()}
    known = {rail: watts for rail, watts in rails.items() if watts is not None}
    extra = {s.name: _cell(cells, s).strip() for s in layout.extras if _cell(cells, s).strip()}
    _check_ranges(line, figures, layout)
    config, observed = _config(line, texts.get("config", ""), figures, warnings)
    power, scope = _power(figures.get("power_w"), known, texts.get("energy_scope", ""), figures)
    if power is None and not known and not any(figures.get(name) for name in _MEASURES):
        raise TraceError(f"line {line}: no time, power or energy is given; leave such rows out")
    steps = figures.get("steps")
    return ProfileRow(
        device=texts.get("device", ""),
        job=texts.get("job", ""),
        config=config,
        gpu_mhz=figures.get("gpu_mhz"),
        cpu_mhz=figures.get("cpu_mhz"),
        emc_mhz=figures.get("emc_mhz"),
        power_limit_w=figures.get("power_limit_w"),
        step_time_s=figures.get("step_time_s"),
        power_w=power,
        energy_per_step_j=figures.get("energy_per_step_j"),
        energy_scope=scope,
        steps=None if steps is None else int(steps),
        rails=known,
        note=texts.get("note", ""),
        source=texts.get("source", ""),
        extra=extra | observed,
    )


def _cell(cells: Sequence[str], source: _Source) -> str:
    return cells[source.index] if source.index < len(cells) else ""


def _figure(table: Table, line: int, cells: Sequence[str], source: _Source) -> float | None:
    value = table.number(_cell(cells, source), line, source.name)
    return None if value is None else value * source.factor


def _check_ranges(line: int, figures: Mapping[str, float | None], layout: _Layout) -> None:
    for name, value in figures.items():
        if value is not None and not value > 0:
            raise TraceError(
                f"line {line}, column {layout.figures[name].name!r}: {value:g} must be above 0; "
                "leave the cell empty where it was not measured or left automatic"
            )


def _config(
    line: int, written: str, figures: dict[str, float | None], warnings: list[str]
) -> tuple[str, dict[str, str]]:
    """``(config, extra cells)``; the knobs of an as-found row are moved out of ``figures``."""
    pins = {name: value for name in KNOB_COLUMNS if (value := figures.get(name)) is not None}
    if written == PINNED and not pins:
        raise TraceError(f"line {line}: config is 'pinned', but no knob has a value")
    as_found = written == AS_FOUND or (not pins) or bool(_AS_FOUND_NAME.search(written))
    extra = {"config": written} if written not in ("", PINNED, AS_FOUND) else {}
    if not as_found:
        return PINNED, extra
    for name, value in pins.items():
        warnings.append(f"line {line}: {name}={value:g} of an as-found row is what was seen there")
        figures[name] = None
        extra[f"{name}_seen"] = f"{value:g}"
    return AS_FOUND, extra


def _power(
    power: float | None,
    rails: Mapping[str, float],
    scope: str,
    figures: Mapping[str, float | None],
) -> tuple[float | None, str]:
    """Power and its scope; from the rails where neither power nor energy is stated."""
    rule = total_rule(rails)
    if power is not None or rule == NO_RULE or figures.get("energy_per_step_j") is not None:
        return power, scope
    covered = rule if rule != SUM_RULE else "+".join(rail.upper() for rail in rails)
    return total_w(rails, rule), scope or covered


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
