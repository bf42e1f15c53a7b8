"""From what the hook counted inside a job to the `Work` of a step."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rlgov.work import Work, make_work

HOST_GHZ = 3.0
"""Assumed clock of the machine that the job runs on: host seconds times this are giga-cycles."""


@dataclass(frozen=True)
class Counted:
    """One counted step of the job, per phase (forward, backward, optimizer).

    Attributes:
        source: ``counted`` or ``estimated``.
        size: Tokens (else samples) of the step that was counted; ``None`` where unknown.
        flop: Operations in fp32, tf32 or fp64.
        flop_half: Operations in fp16 or bf16.
        byte: Bytes read and written.
        launch: Kernels started.
        host_s: Seconds of the training thread outside kernels and loading.
    """

    source: str
    size: float | None
    flop: tuple[float, ...]
    flop_half: tuple[float, ...]
    byte: tuple[float, ...]
    launch: tuple[float, ...]
    host_s: tuple[float, ...]


class WorkBook:
    """The counted steps of one process, and the work of any step by scaling the nearest.

    Args:
        host_ghz: Clock in GHz that turns host seconds into giga-cycles.
    """

    def __init__(self, host_ghz: float = HOST_GHZ) -> None:
        self._host_ghz = host_ghz
        self._counted: dict[float | None, Counted] = {}

    def add(self, message: Mapping[str, object]) -> None:
        """Take in a ``work`` message of the hook; a malformed one is ignored."""
        counted = _parse(message)
        if counted is not None:
            self._counted[counted.size] = counted

    def work(self, samples: int | None, tokens: int | None) -> tuple[Work | None, str]:
        """The work of a step with this many samples and tokens, and where it is from.

        Operations and bytes grow with the step's size. Launches and host time do not; host time is
        the median of all counts, since one step of it is mostly noise.
        """
        size = tokens if tokens is not None else samples
        nearest = self._nearest(size)
        if nearest is None:
            return None, "unknown"
        factor = size / nearest.size if size and nearest.size else 1.0
        ghz = self._host_ghz
        work = make_work(
            flop=_times(nearest.flop, factor),
            flop_half=_times(nearest.flop_half, factor),
            byte=_times(nearest.byte, factor),
            launch=nearest.launch,
            host_gcycle=_times(self._host_s(nearest.source), ghz),
            samples=float(samples or 1),
            tokens=float(tokens or samples or 1),
        )
        return work, nearest.source

    def _host_s(self, source: str) -> tuple[float, ...]:
        counts = [c.host_s for c in self._counted.values() if c.source == source]
        return tuple(statistics.median(phase) for phase in zip(*counts, strict=True))

    def _nearest(self, size: float | None) -> Counted | None:
        if not self._counted:
            return None
        if not size:
            return next(reversed(self._counted.values()))
        known = [c for c in self._counted.values() if c.size]
        if not known:
            return next(reversed(self._counted.values()))
        # A count beats an estimate, even where a compiler came in between and both are there.
        known = [c for c in known if c.source == "counted"] or known
        return min(known, key=lambda c: abs(math.log(size / (c.size or 1.0))))


def _times(values: Sequence[float], factor: float) -> tuple[float, ...]:
    return tuple(value * factor for value in values)


def _phases(value: object) -> tuple[float, ...]:
    if not isinstance(value, list) or len(value) != 3:
        raise ValueError(f"three phases expected, not {value!r}")
    phases = tuple(float(part) for part in value)
    if not all(math.isfinite(part) and part >= 0 for part in phases):
        raise ValueError(f"finite amounts expected, not {value!r}")
    return phases


def _parse(message: Mapping[str, object]) -> Counted | None:
    size = message.get("size")
    try:
        return Counted(
            source="estimated" if message.get("source") == "estimated" else "counted",
            size=float(size) if isinstance(size, (int, float)) and size > 0 else None,
            flop=_phases(message.get("flop")),
            flop_half=_phases(message.get("flop_half")),
            byte=_phases(message.get("byte")),
            launch=_phases(message.get("launch")),
            host_s=_phases(message.get("host_s")),
        )
    except (TypeError, ValueError):
        return None
