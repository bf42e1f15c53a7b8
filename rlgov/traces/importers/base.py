"""What an importer is: text of a file in, samples and a report out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime

from rlgov.errors import ConfigError
from rlgov.traces.row import Plain, TraceRow


@dataclass
class Sample:
    """One line of a log as it was read, before its time and total are worked out.

    Attributes:
        stamp: Wall-clock label; naive where the log names no zone.
        uptime_s: Monotonic seconds, where the log has them.
        values: Documented trace columns.
        rails: Signed watts by rail (lower case).
        temperature_c: Degrees by zone; ``None``: off.
        extra: Further columns.
        stated_total_w: A total that the log's writer formed, signed.
        unknown: Names of fields that the importer does not know.
        bad: Names of known fields that could not be read.
        flags: Quality flags so far.
        bad_rail: Whether a rail was among the bad fields, so that a sum would miss a part.
    """

    stamp: datetime | None = None
    uptime_s: float | None = None
    values: dict[str, Plain] = field(default_factory=dict)
    rails: dict[str, float] = field(default_factory=dict)
    temperature_c: dict[str, float | None] = field(default_factory=dict)
    extra: dict[str, Plain] = field(default_factory=dict)
    stated_total_w: float | None = None
    unknown: list[str] = field(default_factory=list)
    bad: list[str] = field(default_factory=list)
    flags: list[str] = field(default_factory=list)
    bad_rail: bool = False

    @property
    def empty(self) -> bool:
        """Whether nothing was recognised."""
        return not (self.values or self.rails or self.temperature_c)


@dataclass(frozen=True)
class Clock:
    """How a log's local time is to be understood.

    Attributes:
        tz: Time zone of stamps without one (``Europe/Berlin``, ``+02:00``); ``None``: UTC.
        interval_s: Seconds between lines without a stamp; ``None``: 1.
    """

    tz: str | None = None
    interval_s: float | None = None

    def __post_init__(self) -> None:
        """Refuse an interval that no logger has."""
        if self.interval_s is not None and not 0 < self.interval_s <= 3600:
            raise ConfigError(
                f"interval_s must be above 0 s and at most 1 h, not {self.interval_s}"
            )


@dataclass
class ImportReport:
    """What became of every line; the content of ``summary.json``.

    Attributes:
        lines: Lines in the file.
        rows: Rows that came out.
        rejected: Lines, blank ones apart, of which nothing could be read.
        unknown_fields: Name of a field that is not known -> how often it was seen.
        total_rule: How the total was formed.
        importer: Importer that read the file.
        blank: Empty lines, and repeated headers.
        n_ok: Rows of which every known field was read.
        n_partial: Rows of which some field was left empty.
        n_bad: As ``rejected``.
        tz: Time zone of the stamps, and whether it was stated or assumed.
        interval_s: Seconds between rows without a stamp, where that was used.
        out_of_order: Rows that stood later in the file than their stamp says; they were sorted.
        negative_power: Readings below 0 W; they count as 0 in totals and energy.
        gaps: Gaps in time that are left out of the energy.
        span_s: Seconds from the first to the last row.
        energy_j: Energy over the parts that could be integrated; ``None``: there is none.
        warnings: What the user should know, in words.
        files: Files that were written.
    """

    lines: int = 0
    rows: int = 0
    rejected: int = 0
    unknown_fields: Counter[str] = field(default_factory=Counter)
    total_rule: str = "none"
    importer: str = ""
    blank: int = 0
    n_ok: int = 0
    n_partial: int = 0
    n_bad: int = 0
    tz: str = "no time stamps"
    interval_s: float | None = None
    out_of_order: int = 0
    negative_power: int = 0
    gaps: int = 0
    span_s: float = 0.0
    energy_j: float | None = None
    warnings: list[str] = field(default_factory=list)
    files: list[str] = field(default_factory=list)

    def as_dict(self) -> dict[str, object]:
        """Plain values for JSON."""
        return asdict(self) | {"unknown_fields": dict(sorted(self.unknown_fields.items()))}


@dataclass(frozen=True)
class Imported:
    """An imported file."""

    rows: Sequence[TraceRow]
    report: ImportReport


class Importer(ABC):
    """Reads one kind of file.

    Attributes:
        name: As in ``importer=NAME``.
    """

    name: str

    @abstractmethod
    def accepts(self, head: str) -> bool:
        """Whether a file that begins with ``head`` (some kilobytes) looks like this kind."""

    @abstractmethod
    def read(self, text: str, clock: Clock) -> Imported:
        """Rows and report of a whole file; a line or field that cannot be read is counted.

        Raises:
            ConfigError: The clock's time zone is not known.
            TraceError: The file as a whole is not of this kind.
        """


def plausible(stamp: datetime) -> bool:
    """Whether a stamp can be a computer's clock (one that was never set says 1970)."""
    return 1970 <= stamp.year <= 2200


def lines_of(text: str) -> list[str]:
    """Lines without their ends; a last line without an end counts, form feeds do not split.

    A lone carriage return ends a line only in a file that has no other line ends; elsewhere it is
    damage within a line.
    """
    lines = text.replace("\r\n", "\n").split("\n" if "\n" in text else "\r")
    return lines[:-1] if lines and not lines[-1] else lines
