"""Measured profiles as arrays that a fit compares a twin with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import NDArray

from rlgov.boards.base import KNOB_NAMES
from rlgov.boards.twin.spec import COMPONENTS, TwinSpec
from rlgov.errors import TraceError
from rlgov.traces.profile import Profile, ProfileRow
from rlgov.work import FloatArray

TIME, POWER, ENERGY = "time", "power", "energy"


@dataclass(frozen=True)
class Points:
    """Settings that were measured (``m``), and the figures observed at them (``k``).

    Attributes:
        jobs: Names of the jobs.
        job: Index into ``jobs`` of each setting, ``[m]``.
        clocks_ghz: Clocks of `KNOB_NAMES`, ``[m, 3]``; automatic ones stand at the table's end.
        limit_w: Power limit, ``[m]``; infinite where there was none.
        row: Setting of each figure, ``[k]``.
        kind: `TIME`, `POWER` or `ENERGY` of each figure, ``[k]``.
        value: Seconds, watts or joules, ``[k]``.
        weights: Which components of the twin a power or energy covers, ``[k, components]``.
        surface: What each figure belongs to in an error table, ``[k]``.
        ignored: Rails of the file that the board's twin does not have.
        varied: Knobs that were set to at least two values.
    """

    jobs: tuple[str, ...]
    job: NDArray[np.int64]
    clocks_ghz: FloatArray
    limit_w: FloatArray
    row: NDArray[np.int64]
    kind: NDArray[np.str_]
    value: FloatArray
    weights: FloatArray
    surface: NDArray[np.str_]
    ignored: tuple[str, ...]
    varied: frozenset[str]

    def keep(self, settings: NDArray[np.bool_]) -> Points:
        """The figures at the marked settings only (``[m]``); the settings stay in place."""
        figures = settings[self.row]
        names = ("row", "kind", "value", "weights", "surface")
        return replace(self, **{name: getattr(self, name)[figures] for name in names})

    def of_job(self, job: int) -> Points:
        """The settings and figures of one job, as points of that job alone."""
        rows = self.job == job
        kept = self.keep(rows)
        place = np.cumsum(rows) - 1
        return replace(
            kept,
            jobs=(self.jobs[job],),
            job=np.zeros(int(rows.sum()), np.int64),
            clocks_ghz=self.clocks_ghz[rows],
            limit_w=self.limit_w[rows],
            row=place[kept.row],
        )


@dataclass(frozen=True)
class _Figure:
    row: int
    kind: str
    value: float
    weights: FloatArray
    surface: str


def points_of(profiles: Sequence[Profile], spec: TwinSpec) -> Points:
    """The pinned settings of ``profiles``, each one job on the board of ``spec``.

    Raises:
        TraceError: There is no pinned setting with a time, a power or an energy.
    """
    job: list[int] = []
    clocks: list[list[float]] = []
    limits: list[float] = []
    figures: list[_Figure] = []
    ignored: dict[str, None] = {}
    for index, profile in enumerate(profiles):
        for measured in profile.settings():
            figures += _figures(measured, len(job), spec, ignored)
            job.append(index)
            clocks.append(_clocks(measured, spec))
            limits.append(np.inf if measured.power_limit_w is None else measured.power_limit_w)
    if not figures:
        raise TraceError("nothing to fit: no pinned setting has a time, a power or an energy")
    columns = {f.name: [getattr(figure, f.name) for figure in figures] for f in fields(_Figure)}
    return Points(
        jobs=tuple(profile.job for profile in profiles),
        job=np.array(job, np.int64),
        clocks_ghz=np.array(clocks),
        limit_w=np.array(limits),
        row=np.array(columns["row"], np.int64),
        kind=np.array(columns["kind"]),
        value=np.array(columns["value"]),
        weights=np.stack(columns["weights"]),
        surface=np.array(columns["surface"]),
        ignored=tuple(ignored),
        varied=frozenset(knob for profile in profiles for knob in profile.knobs_varied),
    )


def _clocks(row: ProfileRow, spec: TwinSpec) -> list[float]:
    pinned = (row.gpu_mhz, row.cpu_mhz, row.emc_mhz)
    tops = (spec.knobs[knob].levels_mhz[-1] for knob in KNOB_NAMES)
    return [(top if mhz is None else mhz) / 1e3 for mhz, top in zip(pinned, tops, strict=True)]


def _figures(
    row: ProfileRow, index: int, spec: TwinSpec, ignored: dict[str, None]
) -> list[_Figure]:
    nothing = np.zeros(len(COMPONENTS))
    scope = scope_weights(row.energy_scope, spec)
    found = []
    if row.step_time_s is not None:
        found.append(_Figure(index, TIME, row.step_time_s, nothing, TIME))
    if row.power_w is not None:
        found.append(_Figure(index, POWER, row.power_w, scope, POWER))
    derived = row.step_time_s is not None and row.power_w is not None
    if row.energy_per_step_j is not None and not derived:
        found.append(_Figure(index, ENERGY, row.energy_per_step_j, scope, ENERGY))
    names = {rail.lower(): rail for rail in spec.rails}
    for rail, watts in row.rails.items():
        if rail not in names:
            ignored[rail] = None
        elif watts > 0:
            found.append(_Figure(index, POWER, watts, _weights(names[rail], spec), f"rail {rail}"))
    return found


def scope_weights(scope: str, spec: TwinSpec) -> FloatArray:
    """Weights over `COMPONENTS` of the rails in ``scope`` (joined by ``+``); else of the total."""
    names = {rail.lower(): rail for rail in spec.rails}
    asked = [part.strip().lower() for part in scope.split("+") if part.strip()]
    known = [names[part] for part in asked if part in names]
    rails = known if asked and len(known) == len(asked) else list(spec.total_rails)
    total: FloatArray = np.sum([_weights(rail, spec) for rail in rails], axis=0)
    return total


def _weights(rail: str, spec: TwinSpec) -> FloatArray:
    return np.array([spec.rails[rail].get(name, 0.0) for name in COMPONENTS])
