"""tegrastats logs of every generation.

Fields are told apart by name and shape, one at a time, so that a field of a later release, or a
damaged one, costs no other.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime, timezone
from itertools import pairwise

from rlgov.traces.importers.assemble import assemble
from rlgov.traces.importers.base import (
    Clock,
    Imported,
    Importer,
    ImportReport,
    Sample,
    lines_of,
    plausible,
)
from rlgov.traces.importers.registry import register
from rlgov.traces.importers.tegra_fields import (
    ENGINE,
    bare_rail,
    is_name,
    read_cores,
    read_load,
    read_memory,
    read_rail,
    read_temperature,
)

_STAMP = re.compile(
    r"\[?(?:(?P<us>\d\d-\d\d-\d{4})|(?P<iso>\d{4}-\d\d-\d\d))[ T]"
    r"(?P<time>\d\d:\d\d:\d\d)(?P<fraction>\.\d{1,6})?\d*"
    r"(?P<zone>Z|[+-]\d\d:?\d\d)?\]?(?=\s|$)",
    re.ASCII,
)
_START = re.compile(
    r"(?:\[?(?:\d\d-\d\d-\d{4}|\d{4}-\d\d-\d\d)[ T]\d\d:\d\d:\d\d\S*\s+)?(?<![IV])RAM\s+\d+/",
    re.ASCII,
)
_LOOKS_LIKE = re.compile(r"(?<![IV])RAM\s+\d+/\d+MB|(?:GR3D|EMC)(?:_FREQ)?\s+(?:\d+%|@)")
_NAMES = {"RAM", "SWAP", "IRAM", "CPU", "EMC", "EMC_FREQ", "GR3D", "GR3D_FREQ", "MTS", "EDP"}

Handler = Callable[[Sample, str], bool]


@register
class Tegrastats(Importer):
    """Logs of NVIDIA's ``tegrastats``."""

    name = "tegrastats"

    def accepts(self, head: str) -> bool:
        """See `Importer.accepts`."""
        return _LOOKS_LIKE.search(head) is not None

    def read(self, text: str, clock: Clock) -> Imported:
        """See `Importer.read`."""
        report = ImportReport(importer=self.name)
        samples: list[Sample] = []
        for line in lines_of(text):
            report.lines += 1
            found = [sample for part in split_glued(line) if (sample := parse_line(part))]
            samples += found
            report.blank += not line.strip()
            report.rejected += bool(line.strip()) and not found
        return assemble(samples, clock, report)


def split_glued(line: str) -> list[str]:
    """The lines that a writer without line ends ran together."""
    starts = [match.start() for match in _START.finditer(line)]
    if len(starts) < 2:
        return [line]
    bounds = [0, *starts[1:], len(line)]
    return [line[a:b] for a, b in pairwise(bounds)]


def parse_line(line: str) -> Sample | None:
    """One line of tegrastats; ``None`` where nothing in it is known (a banner, a blank line)."""
    sample = Sample()
    line = _take_stamp(sample, line.strip())
    tokens = line.split()
    i = 0
    while i < len(tokens):
        i = _take(sample, tokens, i)
    return None if sample.empty else sample


def _take_stamp(sample: Sample, line: str) -> str:
    """The rest of the line behind its stamp, or behind what another program put before it."""
    match = _STAMP.match(line)
    if match is not None:
        sample.stamp = _stamp(match)
        if sample.stamp is None:
            sample.bad.append("time")
        return line[match.end() :]
    start = _START.search(line)
    if start is None or start.start() == 0:
        return line
    sample.unknown.append("(prefix)")
    return _take_stamp(sample, line[start.start() :])


def _stamp(match: re.Match[str]) -> datetime | None:
    day = match["iso"] or f"{match['us'][6:]}-{match['us'][:5]}"
    fraction = (match["fraction"] or ".0").ljust(7, "0")
    try:
        stamp = datetime.strptime(f"{day} {match['time']}{fraction}", "%Y-%m-%d %H:%M:%S.%f")
        if match["zone"]:
            zone = match["zone"].replace("Z", "+0000").replace(":", "")
            stamp = stamp.replace(tzinfo=datetime.strptime(zone, "%z").tzinfo or timezone.utc)
    except ValueError:
        return None
    return stamp if plausible(stamp) else None


def _take(sample: Sample, tokens: list[str], i: int) -> int:
    """Read the field that begins at token ``i``; the index behind it."""
    token = tokens[i]
    following = tokens[i + 1] if i + 1 < len(tokens) else ""
    if "@" in token and not token.startswith(("@", "[")):
        _keep(sample, token, read_temperature(sample, token), token.partition("@")[0])
        return i + 1
    if token.startswith("("):
        return _behind_brackets(tokens, i)
    reader = _reader(token, following)
    if reader is not None:
        return _take_value(sample, tokens, i, reader)
    if token in ("MTS", "EDP"):
        return _behind_words(tokens, i + 1)
    return _take_unknown(sample, tokens, i)


def _reader(name: str, value: str) -> Handler | None:
    """How the value of a field called ``name`` is read; ``None`` for a field that is not known."""
    if name in ("RAM", "SWAP", "IRAM"):
        return lambda sample, text: read_memory(sample, name, text)
    if name in ("CPU", "cpu") and not bare_rail(value):
        return read_cores
    if name in ("GR3D", "GR3D_FREQ", "EMC", "EMC_FREQ"):
        return lambda sample, text: read_load(sample, name, text)
    if ENGINE.fullmatch(name):
        return lambda sample, text: read_load(sample, "", text)
    if read_rail(None, name, value) is not None:
        return lambda sample, text: bool(read_rail(sample, name, text))
    return None


def _take_value(sample: Sample, tokens: list[str], i: int, reader: Handler) -> int:
    name = tokens[i]
    value = tokens[i + 1] if i + 1 < len(tokens) else ""
    if not value or _begins_field(value):
        sample.bad.append(name)
        return i + 1
    good = reader(sample, value)
    _keep(sample, name, good, name)
    if not good and is_name(value.partition("@")[0]):
        return i + 1  # the field has lost its value: this is the next field
    return _behind_brackets(tokens, i + 1) if "(" in value else i + 2


def _keep(sample: Sample, token: str, good: bool, name: str) -> None:
    if not good:
        sample.bad.append(name or token)


def _begins_field(token: str) -> bool:
    return token in _NAMES or ENGINE.fullmatch(token) is not None or token.startswith("(")


def _behind_brackets(tokens: list[str], i: int) -> int:
    """The index behind ``(lfb 4x4MB)``; a bracket that a cut left open ends at the next field."""
    for j in range(i, min(i + 4, len(tokens))):
        if ")" in tokens[j]:
            return j + 1
        if j > i and _begins_field(tokens[j]):
            return j
    return i + 1


def _behind_words(tokens: list[str], i: int) -> int:
    """The index behind ``fg 0% bg 0%`` of MTS or ``limit 0`` of EDP."""
    while i + 1 < len(tokens) and tokens[i] in ("fg", "bg", "limit"):
        if _begins_field(tokens[i + 1]):
            return i + 1
        i += 2
    return i


def _take_unknown(sample: Sample, tokens: list[str], i: int) -> int:
    """Count a field that is not known by its name, and step over it and its value."""
    token = tokens[i]
    if not is_name(token):
        sample.bad.append("(value)")
        return i + 1
    sample.unknown.append(token)
    if i + 1 >= len(tokens):
        return i + 1
    value, behind = tokens[i + 1], tokens[i + 2] if i + 2 < len(tokens) else ""
    its_own = _begins_field(value) or "@" in value.lstrip("@") or _reader(value, behind) is not None
    return i + 1 if its_own or value in ("MTS", "EDP") else i + 2
