"""One line of a profile's table as a `ProfileRow`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from rlgov.boards.totals import NO_RULE, SUM_RULE, total_rule, total_w
from rlgov.errors import TraceError
from rlgov.traces.profile import AS_FOUND, KNOB_COLUMNS, PINNED, ProfileRow
from rlgov.traces.profile_layout import MEASURES, Layout, Source
from rlgov.traces.text import Table

_NO_CLOCK_MHZ = 20_000.0
_AS_FOUND_NAME = re.compile(r"as.?found", re.IGNORECASE)


def row_of_line(
    table: Table, layout: Layout, line: int, cells: Sequence[str], warnings: list[str]
) -> ProfileRow:
    """The row of one line; what is odd, but can be used, joins ``warnings``.

    Raises:
        TraceError: A cell cannot be used (with line and column).
    """
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
    if power is None and not known and not any(figures.get(name) for name in MEASURES):
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


def _cell(cells: Sequence[str], source: Source) -> str:
    return cells[source.index] if source.index < len(cells) else ""


def _figure(table: Table, line: int, cells: Sequence[str], source: Source) -> float | None:
    value = table.number(_cell(cells, source), line, source.name)
    return None if value is None else value * source.factor


def _check_ranges(line: int, figures: Mapping[str, float | None], layout: Layout) -> None:
    for name, value in figures.items():
        if value is not None and not value > 0:
            raise TraceError(
                f"line {line}, column {layout.figures[name].name!r}: {value:g} must be above 0; "
                "leave the cell empty where it was not measured or left automatic"
            )
        if value is not None and name.endswith("_mhz") and value > _NO_CLOCK_MHZ:
            unit = "kHz" if value < 1e3 * _NO_CLOCK_MHZ else "Hz"
            raise TraceError(
                f"line {line}, column {layout.figures[name].name!r}: {value:g} MHz is no clock "
                f"(was it meant in {unit}?)"
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
