"""A profile: what one job cost at each measured setting of one device."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby

import numpy as np

from rlgov.errors import TraceError
from rlgov.work import FloatArray

PINNED = "pinned"
AS_FOUND = "as_found"

KNOB_COLUMNS = ("gpu_mhz", "cpu_mhz", "emc_mhz", "power_limit_w")
"""What a row may pin, in the order in which 'the highest setting' compares them."""

_NOTE_NUMBER = re.compile(r"(\w+)\s*=\s*([+-]?\d+\.?\d*(?:[eE][+-]?\d+)?)")


@dataclass(frozen=True)
class ProfileRow:
    """One measured setting; ``None`` is "not measured", or "left automatic" for a knob.

    Attributes:
        device: Board or card.
        job: Job that ran.
        config: `PINNED` or `AS_FOUND`.
        gpu_mhz: Pinned GPU clock in MHz.
        cpu_mhz: Pinned CPU clock in MHz.
        emc_mhz: Pinned memory clock in MHz.
        power_limit_w: Power cap in W.
        step_time_s: Seconds a step.
        power_w: Mean power in W over ``energy_scope``.
        energy_per_step_j: Joules a step over ``energy_scope``.
        energy_scope: Rails that power and energy cover, joined by ``+``.
        steps: Steps that were averaged.
        rails: Mean power in W by rail (lower case).
        note: Free text.
        source: Where the row comes from.
        extra: Other cells of the row by column, as they were written.
    """

    device: str
    job: str
    config: str = PINNED
    gpu_mhz: float | None = None
    cpu_mhz: float | None = None
    emc_mhz: float | None = None
    power_limit_w: float | None = None
    step_time_s: float | None = None
    power_w: float | None = None
    energy_per_step_j: float | None = None
    energy_scope: str = ""
    steps: int | None = None
    rails: Mapping[str, float] = field(default_factory=dict)
    note: str = ""
    source: str = ""
    extra: Mapping[str, str] = field(default_factory=dict)

    @property
    def setting(self) -> tuple[float | None, ...]:
        """Values of `KNOB_COLUMNS`."""
        return (self.gpu_mhz, self.cpu_mhz, self.emc_mhz, self.power_limit_w)

    @property
    def as_found(self) -> bool:
        """Whether nothing was pinned."""
        return self.config == AS_FOUND

    def completed(self) -> ProfileRow:
        """With energy = time x power where it was blank; time and power are never made up."""
        if self.energy_per_step_j is not None or self.step_time_s is None or self.power_w is None:
            return self
        return replace(self, energy_per_step_j=self.step_time_s * self.power_w)

    def note_number(self, name: str) -> float | None:
        """The number in a ``name=number`` part of the note, e.g. ``time_per_epoch_s``."""
        found = dict(_NOTE_NUMBER.findall(self.note))
        return float(found[name]) if name in found else None


@dataclass(frozen=True)
class ProfileArrays:
    """The pinned settings of a profile as arrays, one entry a setting (``[n]``).

    Attributes:
        knobs: Column of `KNOB_COLUMNS` -> values; NaN where the knob was automatic.
        step_time_s: Seconds a step; NaN where it was not measured.
        energy_per_step_j: Joules a step; NaN where unknown.
        power_w: Watts; NaN where unknown.
        rails: Rail -> watts; NaN where unknown.
    """

    knobs: Mapping[str, FloatArray]
    step_time_s: FloatArray
    energy_per_step_j: FloatArray
    power_w: FloatArray
    rails: Mapping[str, FloatArray]

    def __len__(self) -> int:
        return len(self.step_time_s)


class Profile:
    """The measured settings of one job on one device.

    Args:
        rows: At least one row, all of one device and job.
        warnings: What was odd when they were read.

    Raises:
        TraceError: There is no row, or rows of several jobs or devices.
    """

    def __init__(self, rows: Iterable[ProfileRow], warnings: Sequence[str] = ()) -> None:
        self.rows: tuple[ProfileRow, ...] = tuple(row.completed() for row in rows)
        self.warnings = tuple(warnings)
        if not self.rows:
            raise TraceError("a profile needs at least one row")
        if len({(row.device, row.job) for row in self.rows}) > 1:
            raise TraceError(f"one profile is one job on one device; {describe_jobs(self.rows)}")

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def device(self) -> str:
        """Device that was measured."""
        return self.rows[0].device

    @property
    def job(self) -> str:
        """Job that was measured."""
        return self.rows[0].job

    @property
    def has_time(self) -> bool:
        """Whether every row has a step time."""
        return all(row.step_time_s is not None for row in self.rows)

    @property
    def has_power(self) -> bool:
        """Whether every row has a power."""
        return all(row.power_w is not None for row in self.rows)

    @property
    def has_energy(self) -> bool:
        """Whether every row has an energy (stated, or from time and power)."""
        return all(row.energy_per_step_j is not None for row in self.rows)

    @property
    def rails(self) -> tuple[str, ...]:
        """Rails of any row, in order of appearance."""
        return tuple(dict.fromkeys(rail for row in self.rows for rail in row.rails))

    @property
    def knobs_varied(self) -> tuple[str, ...]:
        """Those of `KNOB_COLUMNS` with at least two pinned values."""
        return tuple(name for name in KNOB_COLUMNS if len(self.levels(name)) > 1)

    def levels(self, knob: str) -> tuple[float, ...]:
        """Pinned values of ``knob`` (of `KNOB_COLUMNS`), ascending."""
        values = {getattr(row, knob) for row in self.rows if not row.as_found}
        return tuple(sorted(values - {None}))

    def as_found(self) -> ProfileRow | None:
        """The as-found row (the mean of several); ``None`` where there is none."""
        rows = [row for row in self.rows if row.as_found]
        return _mean_row(rows) if rows else None

    def reference(self) -> ProfileRow:
        """The as-found row where there is one, else the highest setting; automatic is highest."""
        found = self.as_found()
        return found if found is not None else max(self.settings(), key=_height)

    def settings(self) -> tuple[ProfileRow, ...]:
        """The pinned rows, repeats of one setting averaged, in ascending order."""
        pinned = sorted((row for row in self.rows if not row.as_found), key=_height)
        return tuple(_mean_row(list(group)) for _, group in groupby(pinned, key=_height))

    def grid(self) -> ProfileArrays:
        """`settings` as arrays."""
        rows = self.settings()
        return ProfileArrays(
            knobs={name: _array(getattr(row, name) for row in rows) for name in KNOB_COLUMNS},
            step_time_s=_array(row.step_time_s for row in rows),
            energy_per_step_j=_array(row.energy_per_step_j for row in rows),
            power_w=_array(row.power_w for row in rows),
            rails={rail: _array(row.rails.get(rail) for row in rows) for rail in self.rails},
        )


def describe_jobs(rows: Iterable[ProfileRow]) -> str:
    """The devices and jobs in ``rows``, for a message."""
    pairs = dict.fromkeys((row.device, row.job) for row in rows)
    return "the file holds: " + "; ".join(f"{job!r} on {device!r}" for device, job in pairs)


def _height(row: ProfileRow) -> tuple[float, ...]:
    return tuple(math.inf if value is None else value for value in row.setting)


def _array(values: Iterable[float | None]) -> FloatArray:
    return np.array([math.nan if value is None else value for value in values], dtype=np.float64)


def _mean_row(rows: Sequence[ProfileRow]) -> ProfileRow:
    """Repeats of one setting as one row; a figure is averaged over the rows that have it."""
    if len(rows) == 1:
        return rows[0]
    rails = dict.fromkeys(rail for row in rows for rail in row.rails)
    figures = ("step_time_s", "power_w", "energy_per_step_j")
    means = {name: _mean(getattr(row, name) for row in rows) for name in figures}
    present = {rail: _mean(row.rails.get(rail) for row in rows) for rail in rails}
    return replace(
        rows[0],
        step_time_s=means["step_time_s"],
        power_w=means["power_w"],
        energy_per_step_j=means["energy_per_step_j"],
        rails={rail: value for rail, value in present.items() if value is not None},
        steps=sum(row.steps or 0 for row in rows) or None,
    )


def _mean(values: Iterable[float | None]) -> float | None:
    present = [value for value in values if value is not None]
    return sum(present) / len(present) if present else None
