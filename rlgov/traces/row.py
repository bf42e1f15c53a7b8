"""A row of a trace, and the same row as a flat record of plain values."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from rlgov.errors import TraceError
from rlgov.traces.columns import TRACE_COLUMNS, Column, rail_of, zone_of

Plain: TypeAlias = "str | int | float | bool | list[str] | list[float] | None"
Record: TypeAlias = dict[str, Plain]

KINDS = ("window", "sample")
_COLUMNS = {column.name: column for column in TRACE_COLUMNS}


@dataclass(frozen=True)
class TraceRow:
    """One window or one sample; ``None`` is "not known", never zero.

    Attributes:
        kind: ``window`` or ``sample``.
        t_s: Monotonic seconds.
        t_utc: UTC label (ISO-8601, ``Z``).
        values: Any other documented column (`rlgov.traces.columns.TRACE_COLUMNS`) that is known.
        rails: Watts by rail, signed as read.
        temperature_c: Degrees by thermal zone; ``None``: the zone is there, but off.
        quality: Flags.
        guard: What the guard did.
        extra: Further columns of the writer's own.
    """

    kind: str
    t_s: float | None
    t_utc: str | None = None
    values: Mapping[str, Plain] = field(default_factory=dict)
    rails: Mapping[str, float | None] = field(default_factory=dict)
    temperature_c: Mapping[str, float | None] = field(default_factory=dict)
    quality: tuple[str, ...] = ()
    guard: tuple[str, ...] = ()
    extra: Mapping[str, Plain] = field(default_factory=dict)

    def number(self, column: str) -> float | None:
        """A numeric column's value; ``None`` when it is not known."""
        if column == "t_s":
            return self.t_s
        value = self.values.get(column)
        return float(value) if isinstance(value, (int, float)) else None

    def record(self) -> Record:
        """The row flat, documented columns first; what is not known is left out.

        A number that is not finite is not known either.
        """
        flat: dict[str, Plain] = {"kind": self.kind, "t_s": self.t_s, "t_utc": self.t_utc}
        flat |= {name: self.values[name] for name in _COLUMNS if name in self.values}
        flat |= {f"{rail}_w": watts for rail, watts in self.rails.items()}
        flat |= {f"temp_{zone}_c": degrees for zone, degrees in self.temperature_c.items()}
        flat |= {"quality": list(self.quality) or None, "guard": list(self.guard) or None}
        flat |= self.extra
        return {name: value for name, value in flat.items() if _known(value)}


def row_of(record: Mapping[str, object]) -> TraceRow:
    """The row of a flat record.

    Raises:
        TraceError: A documented column holds another type than it should.
    """
    kind = record.get("kind")
    if kind not in KINDS:
        raise TraceError(f"kind is {kind!r}; it must be one of {', '.join(KINDS)}")
    parts: dict[str, dict[str, Plain]] = {"values": {}, "rails": {}, "zones": {}, "extra": {}}
    for name, value in record.items():
        room, key, column = _place(name)
        parts[room][key] = typed(value, column)
    values = parts["values"]
    values.pop("kind")
    return TraceRow(
        kind=str(kind),
        t_s=_number(values.pop("t_s", None)),
        t_utc=_text(values.pop("t_utc", None)),
        quality=_texts(values.pop("quality", None)),
        guard=_texts(values.pop("guard", None)),
        values={name: value for name, value in values.items() if value is not None},
        rails={rail: _number(value) for rail, value in parts["rails"].items()},
        temperature_c={zone: _number(value) for zone, value in parts["zones"].items()},
        extra=parts["extra"],
    )


def typed(value: object, column: Column | None) -> Plain:
    """``value`` as ``column`` wants it; any plain value for ``None``.

    Raises:
        TraceError: It is of another type.
    """
    if column is None:
        return _plain(value)
    if value is None:
        return None
    checks = {"text": str, "number": (int, float), "integer": int, "texts": list, "numbers": list}
    if isinstance(value, bool) or not isinstance(value, checks[column.type]):  # type: ignore[arg-type]
        raise TraceError(f"column {column.name!r} holds {value!r}, which is no {column.type}")
    items = value if isinstance(value, list) else ()
    wanted = str if column.type == "texts" else (int, float)
    if not all(isinstance(item, wanted) for item in items):
        raise TraceError(f"column {column.name!r} holds {value!r}, which are no {column.type}")
    return value  # type: ignore[return-value]


def _place(name: str) -> tuple[str, str, Column | None]:
    if name in _COLUMNS:
        return "values", name, _COLUMNS[name]
    rail, zone = rail_of(name), zone_of(name)
    if rail is not None:
        return "rails", rail, Column(name, "number", "W", "")
    if zone is not None:
        return "zones", zone, Column(name, "number", "C", "")
    return "extra", name, None


def _plain(value: object) -> Plain:
    if value is None or isinstance(value, (str, int, float)):
        return value
    return str(value)


def _known(value: Plain) -> bool:
    return value is not None and not (isinstance(value, float) and not math.isfinite(value))


def _number(value: Plain) -> float | None:
    return float(value) if isinstance(value, (int, float)) else None


def _text(value: Plain) -> str | None:
    return value if isinstance(value, str) else None


def _texts(value: Plain) -> tuple[str, ...]:
    return tuple(str(item) for item in value) if isinstance(value, list) else ()
