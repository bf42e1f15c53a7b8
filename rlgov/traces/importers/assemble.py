"""Samples to rows: their order, time, total, energy and flags, the same for every importer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timezone
from itertools import pairwise

from rlgov.boards.totals import INPUT_RAILS, NO_RULE, SUM_RULE, total_rule, total_w
from rlgov.traces.importers.base import Clock, Imported, ImportReport, Sample
from rlgov.traces.importers.times import gap_limit_s, instants, spread
from rlgov.traces.row import Plain, TraceRow

Total = Callable[[Sample], tuple[float | None, str]]


def assemble(
    samples: Sequence[Sample], clock: Clock, report: ImportReport, total: Total | None = None
) -> Imported:
    """Rows in time order, and the report filled in.

    Args:
        samples: In the order of the file.
        clock: How their stamps are to be understood.
        report: Line counts so far; the rest is added.
        total: Total and rule of a sample; the default is `board_total` over all samples.
    """
    total = total or board_total(samples, report)
    ordered, seconds, labels = _in_order(samples, clock, report)
    rows = [
        _row(sample, t_s, label, total(sample))
        for sample, t_s, label in zip(ordered, seconds, labels, strict=True)
    ]
    rows = _with_energy(rows, gap_limit_s(seconds, clock), report)
    _count(ordered, rows, report)
    return Imported(rows, report)


def board_total(samples: Sequence[Sample], report: ImportReport) -> Total:
    """The total of each sample by the rule that fits the whole file.

    A file whose board has an input rail never falls back to a sum on the rows that lack it, and a
    sum is formed only where none of its parts is missing.
    """
    rules = Counter(total_rule(sample.rails) for sample in samples)
    inputs = [rule for rule, _ in rules.most_common() if rule.lower() in INPUT_RAILS]
    rule = inputs[0] if inputs else SUM_RULE if rules[SUM_RULE] else NO_RULE
    if len(inputs) > 1:
        report.warnings.append(f"rows of several boards: each by its input rail of {inputs}")
    report.total_rule = rule
    usual = Counter(frozenset(sample.rails) for sample in samples if sample.rails).most_common(1)
    parts = usual[0][0] if usual else frozenset()

    def total(sample: Sample) -> tuple[float | None, str]:
        own = total_rule(sample.rails)
        if own == SUM_RULE and (rule != SUM_RULE or sample.bad_rail or parts > set(sample.rails)):
            return None, rule
        if own == NO_RULE:
            return None, rule
        return total_w(sample.rails, own), own

    return total


def _in_order(
    samples: Sequence[Sample], clock: Clock, report: ImportReport
) -> tuple[Sequence[Sample], list[float], list[str | None]]:
    times = instants(samples, clock, report)
    stamped = any(sample.stamp is not None for sample in samples)
    uptimes = [s.uptime_s for s in samples if s.uptime_s is not None]
    if len(uptimes) == len(samples) and uptimes:
        labels = [_label(t) if s.stamp else None for s, t in zip(samples, times, strict=True)]
        return samples, _monotonic(uptimes, report), labels
    late = _late(times)
    report.out_of_order = len(late)
    if late:
        report.warnings.append(
            f"{len(late)} rows stood out of order and were sorted by their stamps "
            "(a clock that was set back looks the same)"
        )
    for i, sample in enumerate(samples):
        sample.flags += ["out_of_order"] if i in late else []
        sample.flags += ["time_inferred"] if stamped and sample.stamp is None else []
    order = sorted(range(len(times)), key=times.__getitem__)
    ordered = [samples[i] for i in order]
    seconds = spread([times[i] for i in order]) if stamped else _plain(times)
    return ordered, seconds, [_label(times[i]) if stamped else None for i in order]


def _plain(times: Sequence[datetime]) -> list[float]:
    return [(t - times[0]).total_seconds() for t in times]


def _late(times: Sequence[datetime]) -> frozenset[int]:
    late, latest = set(), datetime.min.replace(tzinfo=timezone.utc)
    for i, instant in enumerate(times):
        if instant < latest:
            late.add(i)
        latest = max(latest, instant)
    return frozenset(late)


def _monotonic(uptimes: Sequence[float], report: ImportReport) -> list[float]:
    """Seconds since the first row; a reboot (uptime falls) goes on from where it stopped."""
    seconds, offset, before = [], -uptimes[0], uptimes[0]
    for uptime in uptimes:
        if uptime < before:
            offset += before
            report.warnings.append("the uptime fell (a reboot): the time between is not known")
        seconds.append(uptime + offset)
        before = uptime
    return seconds


def _label(instant: datetime) -> str:
    text = instant.isoformat(timespec="microseconds" if instant.microsecond else "seconds")
    return text.replace("+00:00", "Z")


def _row(
    sample: Sample, t_s: float, label: str | None, total: tuple[float | None, str]
) -> TraceRow:
    watts, rule = total
    values: dict[str, Plain] = {**sample.values, "total_rule": rule}
    if watts is not None:
        values["total_w"] = watts
    quality = [*sample.flags, *(["bad_field"] if sample.bad else [])]
    below = any(w < 0 for w in sample.rails.values()) or (sample.stated_total_w or 0) < 0
    quality += ["negative_power"] if below else []
    quality += ["total_missing"] if watts is None and rule != NO_RULE else []
    return TraceRow(
        kind="sample",
        t_s=t_s,
        t_utc=label,
        values=values,
        rails=sample.rails,
        temperature_c=sample.temperature_c,
        quality=tuple(quality),
        extra=sample.extra,
    )


def _with_energy(rows: Sequence[TraceRow], limit_s: float, report: ImportReport) -> list[TraceRow]:
    """Rows with the energy since the row before (trapezoid); gaps and unknown power have none."""
    done = list(rows[:1])
    for before, row in pairwise(rows):
        step_s = (row.t_s or 0.0) - (before.t_s or 0.0)
        ends = before.number("total_w"), row.number("total_w")
        if step_s > limit_s:
            report.gaps += 1
            done.append(replace(row, quality=(*row.quality, "gap")))
        elif ends[0] is None or ends[1] is None:
            done.append(row)
        else:
            joules = 0.5 * (ends[0] + ends[1]) * step_s
            report.energy_j = (report.energy_j or 0.0) + joules
            done.append(replace(row, values={**row.values, "energy_j": joules}))
    if report.gaps:
        report.warnings.append(
            f"{report.gaps} gaps of more than {limit_s:g} s are left out of the energy; "
            "state interval_s where rows are meant to be that far apart"
        )
    return done


def _count(samples: Sequence[Sample], rows: Sequence[TraceRow], report: ImportReport) -> None:
    report.rows = len(rows)
    report.n_bad = report.rejected
    partial = {"bad_field", "total_missing"}
    report.n_partial = sum(bool(partial & set(row.quality)) for row in rows)
    report.n_ok = report.rows - report.n_partial
    report.span_s = (rows[-1].t_s or 0.0) if rows else 0.0
    for sample in samples:
        report.unknown_fields.update(sample.unknown)
        report.negative_power += sum(watts < 0 for watts in sample.rails.values())
        report.negative_power += (sample.stated_total_w or 0.0) < 0
    if report.rows and report.total_rule == NO_RULE:
        report.warnings.append(
            "no power in this log (was it taken without root?): energy is unknown, not zero"
        )
    if report.negative_power:
        report.warnings.append(f"{report.negative_power} readings below 0 W count as 0 W")
