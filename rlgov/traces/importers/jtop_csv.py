"""The CSV that jtop's logger example writes, and the older ``key, value`` dump of jtop 2 and 3.

Figures are milliwatts and percent; memory is a ratio (jtop 4) or kB (before). The total is not
taken on trust: jtop hides the input rail behind ``Power TOT`` where there is one, sums the rails
elsewhere, and some versions put another rail there.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence

from rlgov.errors import TraceError
from rlgov.traces.importers.assemble import Total, assemble, board_total
from rlgov.traces.importers.base import Clock, Imported, Importer, ImportReport, Sample, lines_of
from rlgov.traces.importers.jtop_fields import read_cell
from rlgov.traces.importers.registry import register

_DUMP = re.compile(r"<key>,\s*<value>|time,\s*\d{4}-\d\d-\d\d[ \d:.]*$", re.ASCII)
_TOT = "tot"


@register
class JtopCsv(Importer):
    """Logs of jetson-stats' logger."""

    name = "jtop_csv"

    def accepts(self, head: str) -> bool:
        """See `Importer.accepts`."""
        first = next((line for line in lines_of(head) if line.strip()), "")
        names = {cell.strip().lower() for cell in re.split("[,;\t]", first.replace('"', ""))}
        return {"time", "uptime"} <= names or _DUMP.fullmatch(first.strip()) is not None

    def read(self, text: str, clock: Clock) -> Imported:
        """See `Importer.read`."""
        report = ImportReport(importer=self.name)
        lines = lines_of(text)
        report.lines = len(lines)
        first = next((line for line in lines if line.strip()), "")
        if _DUMP.fullmatch(first.strip()):
            samples = _read_dump(lines, report)
        else:
            samples = _read_table(lines, report)
        return assemble(samples, clock, report, _total(samples, report))


def _read_table(lines: Sequence[str], report: ImportReport) -> list[Sample]:
    header: Sequence[str] | None = None
    delimiter = ","
    samples: list[Sample] = []
    for line in lines:
        if header is None and line.strip():
            delimiter = max(",;\t", key=line.count)
        cells = split_row(line, delimiter)
        if cells and cells[0].strip().strip("\ufeff").lower() == "time":
            # A logger that was started again on the same file writes its header again.
            header = [cell.strip().strip("\ufeff") for cell in cells]
            report.blank += 1
        elif not line.strip():
            report.blank += 1
        else:
            sample = read_row(header or (), cells, delimiter != ",")
            samples += [sample] if sample else []
            report.rejected += sample is None
    if header is None:
        raise TraceError("this is no jtop log: it has no header line that begins with 'time'")
    return samples


def split_row(line: str, delimiter: str = ",") -> list[str]:
    """Cells of one line; none where its quotes cannot be made out."""
    try:
        return next(csv.reader([line], delimiter=delimiter), [])
    except csv.Error:
        return []


def read_row(
    header: Sequence[str], cells: Sequence[str], decimal_comma: bool = False
) -> Sample | None:
    """One line of the table; ``None`` where nothing in it is known."""
    sample = Sample()
    for name, cell in zip(header, cells, strict=False):
        read_cell(sample, name, cell.strip(), decimal_comma)
    sample.bad += [name for name in header[len(cells) :] if name][:1]
    if len(cells) > len(header):
        sample.bad.append("(value)")
    return None if sample.empty and sample.stated_total_w is None else sample


def _read_dump(lines: Sequence[str], report: ImportReport) -> list[Sample]:
    """Blocks of ``key, value`` lines; each ``time`` begins a sample."""
    samples: list[Sample] = []
    for line in lines:
        name, comma, value = line.partition(",")
        name = name.strip()
        if not line.strip() or name == "<key>":
            report.blank += 1
        elif not comma:
            report.rejected += 1
        else:
            if name == "time" or not samples:
                samples.append(Sample())
            read_cell(samples[-1], name, value.strip(), False)
    return [s for s in samples if not s.empty or s.stated_total_w is not None]


def _total(samples: Sequence[Sample], report: ImportReport) -> Total:
    """The total by board, where its rails tell the board; else what jtop says, by that name."""
    rails = {rail for sample in samples for rail in sample.rails}
    stated = any(sample.stated_total_w is not None for sample in samples)
    hidden = _hidden_rail(rails, samples) if stated else None
    if hidden == "vin_sys_5v0":
        _put_back(samples, report)
        return board_total(samples, report)
    if not stated or hidden is None:
        _compare(samples, report)
        return board_total(samples, report)
    report.total_rule = rule = hidden.upper() if hidden != _TOT else "JTOP_TOT"

    def total(sample: Sample) -> tuple[float | None, str]:
        watts = sample.stated_total_w
        return (None if watts is None else max(watts, 0.0)), rule

    return total


def _hidden_rail(rails: set[str], samples: Sequence[Sample]) -> str | None:
    """The rail that ``Power TOT`` is; ``None``: it is only the sum of the others."""
    if {"vdd_in", "pom_5v_in", "vin"} & rails or {"sys5v", "vddrq"} & rails:
        return None
    if {"pom_5v_gpu", "pom_5v_cpu"} & rails:
        return "pom_5v_in"
    if "vdd_gpu_soc" in rails and "vin_sys_5v0" in rails:
        return None
    if "vdd_gpu_soc" in rails:
        return None if _is_sum(samples) else "vin_sys_5v0"
    if "vdd_cpu_soc_mss" in rails:
        return None if _is_sum(samples) else "vin"
    if any(rail.startswith("vdd_") for rail in rails):
        return "vdd_in"
    return None if rails and _is_sum(samples) else _TOT


def _is_sum(samples: Sequence[Sample]) -> bool:
    """Whether the stated total is the sum of the rails on most rows (to a milliwatt a rail)."""
    rows = [(s.stated_total_w, s.rails) for s in samples if s.stated_total_w is not None]
    same = sum(abs(sum(r.values()) - t) <= 1e-3 * (len(r) + 1) for t, r in rows)
    return same * 2 > len(rows)


def _put_back(samples: Sequence[Sample], report: ImportReport) -> None:
    report.warnings.append(
        "'Power TOT' of this AGX Orin log is one rail (VIN_SYS_5V0), not the total: "
        "the total is the sum of the rails"
    )
    for sample in samples:
        if sample.stated_total_w is not None:
            sample.rails["vin_sys_5v0"] = sample.stated_total_w
            sample.stated_total_w = None


def _compare(samples: Sequence[Sample], report: ImportReport) -> None:
    if not all(s.stated_total_w is None for s in samples) and not _is_sum(samples):
        report.warnings.append(
            "'Power TOT' is not the sum of the rails; the total follows this board's rule instead"
        )
