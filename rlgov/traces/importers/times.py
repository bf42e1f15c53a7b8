"""Local stamps to UTC and to seconds that never go back."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone, tzinfo
from itertools import pairwise
from statistics import median
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from rlgov.errors import ConfigError
from rlgov.traces.importers.base import Clock, ImportReport, Sample

_OFFSET = re.compile(r"([+-])(\d\d):?(\d\d)")
_STEP_BACK_OK = timedelta(seconds=5)

_GAP_FACTOR = 5.0
_GAP_FLOOR_S = 10.0
_GAP_CEILING_S = 60.0


def zone(name: str | None) -> tzinfo:
    """The time zone called ``name``: an IANA name, an offset such as ``+02:00``, or UTC.

    Raises:
        ConfigError: There is no such zone here.
    """
    if name is None or name.upper() in {"UTC", "Z"}:
        return timezone.utc
    offset = _OFFSET.fullmatch(name)
    if offset:
        minutes = int(offset.group(2)) * 60 + int(offset.group(3))
        if minutes < 24 * 60:
            return timezone(timedelta(minutes=minutes if offset.group(1) == "+" else -minutes))
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ConfigError(
            f"no time zone {name!r} here; use a name such as Europe/Berlin or an offset such as "
            "+02:00 (names need the system's time zone data, or: pip install tzdata)"
        ) from error


def instants(samples: Sequence[Sample], clock: Clock, report: ImportReport) -> list[datetime]:
    """The UTC instant of every sample, in the order of the file.

    Stamps in the hour that happens twice at the end of summer time are told apart by their order.
    Samples without a stamp follow the one before at the clock's interval.
    """
    local = zone(clock.tz)
    step = timedelta(seconds=clock.interval_s or 1.0)
    first = next((i for i, sample in enumerate(samples) if sample.stamp is not None), None)
    if first is None:
        epoch = datetime(1970, 1, 1, tzinfo=timezone.utc)
        report.interval_s = step.total_seconds()
        if clock.interval_s is None:
            report.warnings.append("no time stamps: rows are taken as 1 s apart; state interval_s=")
        return [epoch + step * i for i in range(len(samples))]
    result: list[datetime] = []
    latest: datetime | None = None
    for sample in samples:
        if sample.stamp is not None:
            latest = _utc(sample.stamp, local, latest)
            result.append(latest)
        else:
            result.append(
                result[-1] + step if result else datetime.min.replace(tzinfo=timezone.utc)
            )
    for i in range(first):
        result[i] = result[first] - step * (first - i)
    _describe_zone(samples, clock, report)
    return result


def _utc(stamp: datetime, local: tzinfo, before: datetime | None) -> datetime:
    if stamp.tzinfo is not None:
        return stamp.astimezone(timezone.utc)
    early = stamp.replace(tzinfo=local, fold=0).astimezone(timezone.utc)
    late = stamp.replace(tzinfo=local, fold=1).astimezone(timezone.utc)
    # In the gap of spring `late` is before `early`, and `early` continues the night's time.
    if before is None or late <= early or early >= before - _STEP_BACK_OK:
        return early
    return late


def _describe_zone(samples: Sequence[Sample], clock: Clock, report: ImportReport) -> None:
    if all(s.stamp is None or s.stamp.tzinfo is not None for s in samples):
        report.tz = "as stamped"
    elif clock.tz is None:
        report.tz = "UTC (assumed)"
        report.warnings.append("the stamps name no time zone: UTC was assumed; state it with tz=")
    else:
        report.tz = clock.tz
    missing = sum(sample.stamp is None for sample in samples)
    if missing:
        report.interval_s = clock.interval_s or 1.0
        report.warnings.append(
            f"{missing} rows without a stamp follow the one before by interval_s"
        )


def spread(times: Sequence[datetime]) -> list[float]:
    """Seconds since the first of ascending ``times``.

    Several rows within one second (a log at more than 1 Hz, stamped in whole seconds) are spread
    evenly over it.
    """
    seconds = [(t - times[0]).total_seconds() for t in times]
    start = 0
    while start < len(seconds):
        end = start
        while end < len(seconds) and seconds[end] == seconds[start]:
            end += 1
        for i in range(start + 1, end):
            seconds[i] = seconds[start] + (i - start) / (end - start)
        start = end
    return seconds


def gap_limit_s(seconds: Sequence[float], clock: Clock) -> float:
    """Time between two rows above which nothing is known of what happened between them."""
    if clock.interval_s is not None:
        return _GAP_FACTOR * clock.interval_s
    steps = [b - a for a, b in pairwise(seconds) if b > a]
    usual = median(steps) if steps else 1.0
    return min(max(_GAP_FACTOR * usual, _GAP_FLOOR_S), _GAP_CEILING_S)
