"""``-m``: one run after the other, each in its own folder, ending with a table.

`run_sweep` takes the composed runs as a list and a function that runs one of them, so a launcher
that spreads them over processes or machines would replace the loop here and nothing else.
"""

from __future__ import annotations

import csv
import io
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rlgov.cli.command import Command
from rlgov.cli.compose import Composed
from rlgov.cli.execute import STOPPED, exit_code_of, summary_of
from rlgov.cli.text import table
from rlgov.errors import RlgovError
from rlgov.files import RunFolder, write_text_atomic

RunOne = Callable[[Composed, RunFolder], int]


@dataclass(frozen=True)
class Ended:
    """How one run of a sweep ended."""

    number: int
    swept: Mapping[str, str]
    exit_code: int
    summary: Mapping[str, object]

    @property
    def status(self) -> str:
        """``completed``, ``failed`` or ``interrupted``."""
        if self.exit_code in STOPPED:
            return "interrupted"
        return "completed" if self.exit_code == 0 else "failed"


def run_sweep(
    command: Command, runs: Sequence[Composed], folder: RunFolder, run_one: RunOne
) -> int:
    """Run every configuration of a sweep and compare the results.

    A run that fails is shown at once and the sweep goes on; Ctrl-C ends the sweep.

    Returns:
        0, the exit code of the first run that failed, or that of the one that was stopped.
    """
    ended: list[Ended] = []
    for number, composed in enumerate(runs):
        what = " ".join(f"{key}={value}" for key, value in composed.swept.items())
        print(f"[{number + 1}/{len(runs)}] {what}", flush=True)
        child = folder.child(str(number))
        code = _run_guarded(number, composed, child, run_one)
        ended.append(Ended(number, composed.swept, code, summary_of(child.path)))
        if code in STOPPED:
            break
    return _finish(command, ended, len(runs), folder)


def _run_guarded(number: int, composed: Composed, child: RunFolder, run_one: RunOne) -> int:
    try:
        code = run_one(composed, child)
    except (KeyboardInterrupt, SystemExit) as error:
        return exit_code_of(error)
    except RlgovError as error:
        print(f"run {number} failed: {error}", file=sys.stderr, flush=True)
        return error.exit_code
    except Exception as error:  # the sweep is a boundary: one run's bug must not end the others
        traceback.print_exc()
        print(f"run {number} failed: {type(error).__name__}", file=sys.stderr, flush=True)
        return exit_code_of(error)
    if code:
        print(f"run {number} ended with exit code {code}", file=sys.stderr, flush=True)
    return code


def _finish(command: Command, ended: Sequence[Ended], total: int, folder: RunFolder) -> int:
    failed = [run for run in ended if run.exit_code != 0]
    code = failed[0].exit_code if failed else 0
    if ended[-1].exit_code in STOPPED:
        code = ended[-1].exit_code
    swept = list(ended[0].swept)
    columns = command.sweep_columns or _numbers(ended)[:6]
    header = ["run", *swept, "status", *columns]
    print(table(header, [_row(run, swept, columns) for run in ended]))
    write_text_atomic(folder.path / "sweep.csv", _csv(ended, swept))
    folder.write_summary(
        {
            "runs": total,
            "completed": sum(run.exit_code == 0 for run in ended),
            "failed": [run.number for run in failed],
            "not_started": total - len(ended),
            "sweep": [
                {"run": r.number, "status": r.status, "exit_code": r.exit_code, **r.swept}
                for r in ended
            ],
        }
    )
    status = "interrupted" if code in STOPPED else "failed" if code else "completed"
    folder.write_status(status, code)
    return code


def _row(run: Ended, swept: Sequence[str], columns: Sequence[str]) -> list[object]:
    flat = _flat(run.summary)
    return [
        run.number,
        *(run.swept[key] for key in swept),
        run.status,
        *(flat.get(column) for column in columns),
    ]


def _flat(summary: Mapping[str, Any], prefix: str = "") -> dict[str, object]:
    """Scalars of a summary, inner ones by their dotted path."""
    found: dict[str, object] = {}
    for key, value in summary.items():
        if isinstance(value, Mapping):
            found |= _flat(value, f"{prefix}{key}.")
        elif not isinstance(value, list):
            found[f"{prefix}{key}"] = value
    return found


def _numbers(ended: Sequence[Ended]) -> list[str]:
    return [
        key
        for key, value in _flat(ended[0].summary).items()
        if isinstance(value, (int, float)) and not isinstance(value, bool)
    ]


def _csv(ended: Sequence[Ended], swept: Sequence[str]) -> str:
    keys = list(dict.fromkeys(key for run in ended for key in _flat(run.summary)))
    keys = [key for key in keys if key not in {"exit_code", "status", *swept}]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["run", *swept, "status", "exit_code", *keys])
    for run in ended:
        flat = _flat(run.summary)
        head = [run.number, *(run.swept[key] for key in swept), run.status, run.exit_code]
        writer.writerow([*head, *(flat.get(key) for key in keys)])
    return text.getvalue()
