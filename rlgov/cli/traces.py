"""``rlgov traces import|check|show``."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlgov.cli.command import Command, Invocation, Key
from rlgov.cli.text import definitions, table
from rlgov.errors import RlgovError, TraceError

if TYPE_CHECKING:  # the readers are heavier than the help should be
    from rlgov.traces.api import CheckResult, Summary
    from rlgov.traces.importers import ImportReport

IMPORTERS = ("auto", "tegrastats", "jtop_csv", "profile_csv")
"""Written out, so that the help needs no reader; a test keeps it equal to the registry."""


def run_import(invocation: Invocation) -> int:
    """Import every file; with several, each gets a numbered folder inside the run's."""
    from rlgov.traces.api import import_log

    config, folder = invocation.config, invocation.folder
    several = len(invocation.files) > 1
    reports: list[dict[str, Any]] = []
    worst = 0
    for number, path in enumerate(invocation.files):
        out = folder.path / f"{number:03d}-{path.stem}" if several else folder.path
        out.mkdir(exist_ok=True)
        try:
            report = import_log(
                path,
                importer=config["importer"],
                tz=config["tz"],
                interval_s=config["interval_s"],
                out=out,
            )
        except RlgovError as error:
            if not several:
                raise
            print(f"not imported: {error}", file=sys.stderr)
            reports.append({"file": path, "error": str(error)})
            worst = worst or error.exit_code
            continue
        print(_import_text(path, report, out))
        reports.append({"file": path, "folder": out, **report.as_dict()})
    folder.write_summary({"files": reports} if several else reports[0])
    return worst


def _import_text(path: Path, report: ImportReport, out: Path) -> str:
    energy = "none" if report.energy_j is None else f"{report.energy_j:.1f} J"
    head = (
        f"{path}: {report.rows} rows from {report.lines} lines by {report.importer}: "
        f"{report.n_ok} whole, {report.n_partial} in part, {report.n_bad} rejected"
    )
    lines = [
        head,
        definitions(
            [
                ("time", f"{report.span_s:.1f} s; {report.tz}"),
                ("total", report.total_rule),
                ("energy", energy),
                ("files", ", ".join(str(out / name) for name in report.files)),
            ]
        ),
    ]
    return "\n".join([*lines, *(f"  warning: {text}" for text in report.warnings)])


def run_check(invocation: Invocation) -> int:
    """Check every file; the exit code is that of a trace error when one cannot be used."""
    from rlgov.traces.api import check

    results = [check(path) for path in invocation.files]
    for path, result in zip(invocation.files, results, strict=True):
        print(_check_text(path, result))
    invocation.folder.write_summary(
        {
            "ok": all(result.ok for result in results),
            "files": [{**asdict(result), "ok": result.ok} for result in results],
        }
    )
    return 0 if all(result.ok for result in results) else TraceError.exit_code


def _check_text(path: Path, result: CheckResult) -> str:
    verdict = "can be used" if result.ok else "cannot be used"
    head = f"{path}: {verdict} ({result.kind}, {result.rows} rows)"
    return "\n".join([head, *(f"  {problem.text}" for problem in result.problems)])


def run_show(invocation: Invocation) -> int:
    """Sum up every file."""
    from rlgov.traces.api import show

    summaries = [show(path) for path in invocation.files]
    print("\n\n".join(_show_text(summary) for summary in summaries))
    invocation.folder.write_summary({"files": [asdict(summary) for summary in summaries]})
    return 0


def _show_text(summary: Summary) -> str:
    kinds = ", ".join(f"{count} {kind}" for kind, count in summary.kinds.items())
    facts = [("rows", f"{summary.rows} ({kinds})" if kinds else str(summary.rows))]
    if summary.span_s is not None:
        facts.append(("time", f"{summary.span_s:.1f} s"))
    if summary.first_utc is not None:
        facts.append(("from, to", f"{summary.first_utc}, {summary.last_utc}"))
    facts.append(("rails", ", ".join(summary.rails) or "none"))
    facts += [("flag", f"{flag}: {count} rows") for flag, count in summary.quality.items()]
    columns = [(c.name, c.count, c.minimum, c.mean, c.maximum) for c in summary.columns]
    return "\n".join(
        [
            f"{summary.path}: a {summary.kind}",
            definitions(facts),
            *([table(("column", "rows", "least", "mean", "most"), columns)] if columns else []),
            *(f"  warning: {text}" for text in summary.problems),
        ]
    )


IMPORT = Command(
    name="traces import",
    summary="read logs of tegrastats, jtop or measured profiles into traces",
    help="""
    Reads other tools' logs and writes trace.csv (and trace.parquet where pyarrow is installed) to
    the run's folder. One odd field never loses a line and one odd line never loses the file; what
    was left out is counted. A missing reading stays empty, it is never 0.
    """,
    examples=(
        ("rlgov traces import tegrastats.log tz=Asia/Tokyo out=traces/night", "a board's log"),
        ("rlgov traces import 'my logs/a=1.csv' interval_s=1", "a log without time stamps"),
    ),
    config="traces_import",
    run=run_import,
    keys={
        "importer": Key(choices=IMPORTERS),
        "tz": Key(type=str),
        "interval_s": Key(type=float, above=0),
    },
    files="FILE...",
    files_rule="required",
    exit_codes=(("6", "of one of the files not a line could be read; the others were imported"),),
)

CHECK = Command(
    name="traces check",
    summary="say whether traces and profiles are sound",
    help="Reads traces and profiles (or folders that hold one) and lists what is wrong with each.",
    examples=(("rlgov traces check runs/*/trace.csv", "every trace of every run"),),
    config="traces_check",
    run=run_check,
    files="FILE...",
    files_rule="required",
    exit_codes=(("6", "one of the files cannot be used"),),
)

SHOW = Command(
    name="traces show",
    summary="sum up traces and profiles",
    help="Prints what a trace or profile holds: rows, time, rails, and the range of each column.",
    examples=(("rlgov traces show traces/night/trace.csv", "one trace"),),
    config="traces_show",
    run=run_show,
    files="FILE...",
    files_rule="required",
)
