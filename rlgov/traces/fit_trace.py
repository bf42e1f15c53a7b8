"""A governed run's trace as a profile: one row a window, at the clocks that were in force."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rlgov.errors import TraceError
from rlgov.traces.profile import AS_FOUND, PINNED, Profile, ProfileRow
from rlgov.traces.row import TraceRow

SPOILT = frozenset({"bad_field", "gap", "total_missing", "time_inferred"})
"""Flags that keep a window out of a profile."""
_KNOBS = ("gpu_mhz", "cpu_mhz", "emc_mhz")


def profile_of_trace(rows: Iterable[TraceRow], job: str = "") -> Profile:
    """The training windows of a trace as a profile of one job.

    A clock that was set counts as set, one left automatic as what it was seen at; windows with no
    clock set are the board as found.

    Args:
        rows: Rows of a trace, see `rlgov.traces.tables.read_trace`.
        job: What to call the job when the trace does not say.

    Raises:
        TraceError: No window has a step time.
    """
    windows = [row for row in rows if row.kind == "window" and _usable(row)]
    made = [made for row in windows if (made := _row(row, job)) is not None]
    if not made:
        raise TraceError(
            "the trace holds no whole training window with a step time; a profile can be fitted "
            "instead (profile=FILE)"
        )
    devices = sorted({(row.device, row.job) for row in made})
    if len(devices) > 1:
        raise TraceError(f"the trace holds several jobs or devices: {devices}; fit them apart")
    return Profile(made)


def _usable(row: TraceRow) -> bool:
    training = row.values.get("phase") in (None, "", "train")
    return training and not SPOILT & set(row.quality)


def _row(row: TraceRow, job: str) -> ProfileRow | None:
    step_s = row.number("step_time_s")
    if step_s is None or step_s <= 0:
        return None
    set_mhz = [row.number(f"{knob}_set") for knob in _KNOBS]
    nothing_set = all(value is None for value in set_mhz)
    gpu, cpu, emc = (None, None, None) if nothing_set else _in_force(row, set_mhz)
    joules, steps = row.number("energy_per_step_j"), row.number("steps")
    return ProfileRow(
        device=str(row.values.get("device") or ""),
        job=str(row.values.get("job") or job),
        config=AS_FOUND if nothing_set else PINNED,
        gpu_mhz=gpu,
        cpu_mhz=cpu,
        emc_mhz=emc,
        step_time_s=step_s,
        power_w=None if joules is None else joules / step_s,
        energy_per_step_j=joules,
        steps=None if steps is None else int(steps),
        rails={name: watts for name, watts in row.rails.items() if watts is not None},
    )


def _in_force(row: TraceRow, set_mhz: Sequence[float | None]) -> list[float | None]:
    seen = (row.number(knob) for knob in _KNOBS)
    return [now if value is None else value for value, now in zip(set_mhz, seen, strict=True)]
