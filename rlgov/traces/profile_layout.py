"""Which column of somebody's table means what."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from rlgov.errors import TraceError
from rlgov.traces.columns import PROFILE_COLUMNS, rail_of
from rlgov.traces.profile import KNOB_COLUMNS

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
TEXTS = frozenset(c.name for c in PROFILE_COLUMNS if c.type == "text") | {*_TEXT_ALIASES}
_FIGURES = frozenset(c.name for c in PROFILE_COLUMNS if c.type != "text")
MEASURES = ("step_time_s", "power_w", "energy_per_step_j")
_RAIL_MW = re.compile(r"(.+?)(?:_mean)?_mw")


@dataclass(frozen=True)
class Source:
    """Where a figure's column stands, and how it becomes ours."""

    index: int
    name: str
    factor: float = 1.0


@dataclass(frozen=True)
class Layout:
    """Where the texts, figures, rails and other columns of a table stand."""

    texts: Mapping[str, Source]
    figures: Mapping[str, Source]
    rails: Mapping[str, Source]
    extras: Sequence[Source]


def layout_of(header: Sequence[str]) -> Layout:
    """Where everything stands, by the names in ``header``.

    Raises:
        TraceError: Nothing was measured, or two columns mean the same.
    """
    texts: dict[str, Source] = {}
    figures: dict[str, Source] = {}
    rails: dict[str, Source] = {}
    extras: list[Source] = []
    for index, name in enumerate(header):
        low = name.lower()
        target, factor = _ALIASES.get(low, (low, 1.0))
        rail, scale = _rail(low)
        if low in TEXTS:
            _claim(texts, _TEXT_ALIASES.get(low, low), Source(index, name))
        elif target in _FIGURES:
            _claim(figures, target, Source(index, name, factor))
        elif rail is not None:
            _claim(rails, rail, Source(index, name, scale))
        elif name:
            extras.append(Source(index, name))
    if not (set(figures) & {*MEASURES} or rails):
        raise TraceError(
            "no column holds a time, a power or an energy; expected one of "
            f"{', '.join(MEASURES)} or <rail>_w, found: {', '.join(header)}"
        )
    return Layout(texts, figures, rails, extras)


def _claim(places: dict[str, Source], name: str, source: Source) -> None:
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


def is_profile_header(header: Iterable[str]) -> bool:
    """Whether column names look like a profile's: a knob and a figure, and no time axis."""
    names = {name.strip().lower() for name in header}
    ours = {_ALIASES[name][0] if name in _ALIASES else name for name in names}
    figures = ours & {*MEASURES} or any(_RAIL_MW.fullmatch(name) for name in names)
    return bool(ours & {*KNOB_COLUMNS}) and bool(figures) and not names & {"t_s", "kind", "time"}
