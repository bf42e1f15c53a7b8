"""A `Profile` as the surface that `rlgov.boards.surface` interpolates."""

from __future__ import annotations

import numpy as np

from rlgov.boards.base import KNOB_NAMES
from rlgov.boards.surface import Surface
from rlgov.errors import TraceError
from rlgov.traces.profile import Profile, ProfileRow
from rlgov.work import FloatArray


def surface_of(profile: Profile) -> Surface:
    """What ``profile`` measured, knob by knob.

    Rows that leave a knob automatic which others set are left out: where their clock stood is not
    known.

    Raises:
        TraceError: No setting has both a clock and a figure.
        ConfigError: No clock has at least two values.
    """
    varied = [name for name in KNOB_NAMES if f"{name}_mhz" in profile.knobs_varied]
    rows = [
        row
        for row in profile.settings()
        if all(getattr(row, f"{name}_mhz") is not None for name in varied)
    ]
    if not rows:
        raise TraceError("no setting of the profile names every clock that it varies")
    found = profile.as_found()
    return Surface(
        clocks_mhz={n: _column([getattr(row, f"{n}_mhz") for row in rows]) for n in varied},
        figures={name: _column([_figure(row, name) for row in rows]) for name in _names(profile)},
        as_found={} if found is None else _known(found, profile),
        scope=rows[0].energy_scope,
        name=profile.job,
    )


def _names(profile: Profile) -> list[str]:
    return ["time_s", "energy_j", *(f"rail {rail}" for rail in profile.rails)]


def _figure(row: ProfileRow, name: str) -> float | None:
    if name == "time_s":
        return row.step_time_s
    if name == "energy_j":
        return row.energy_per_step_j
    return row.rails.get(name[5:])


def _known(row: ProfileRow, profile: Profile) -> dict[str, float]:
    figures = {name: _figure(row, name) for name in _names(profile)}
    return {name: value for name, value in figures.items() if value is not None}


def _column(values: list[float | None]) -> FloatArray:
    return np.array([np.nan if v is None or v <= 0 else v for v in values], float)
