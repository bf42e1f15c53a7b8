"""The files of a fit: ``board.yaml``, ``job.yaml`` and the ensemble, in the shapes of ``conf/``."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import yaml

from rlgov.boards.twin.loadfile import load_from_dict, load_to_dict
from rlgov.boards.twin.physics import Load
from rlgov.boards.twin.spec import TwinSpec
from rlgov.errors import ConfigError, TraceError
from rlgov.files import write_text_atomic
from rlgov.traces.fit import FittedTwin

BOARD_FILE, JOB_FILE, ENSEMBLE_FILE = "board.yaml", "job.yaml", "ensemble.yaml"


def save_fit(fitted: FittedTwin, folder: Path, source: str) -> list[Path]:
    """Write a fit's files and return their paths.

    Several jobs get a file each, ``job-1.yaml`` and so on in the order of the fit.

    Args:
        fitted: The fit.
        folder: Where to; it must exist.
        source: What was fitted, for the files' first line.
    """
    board = replace(fitted.spec, name=fitted_name(fitted.spec.name))
    head = f"# Fitted to {source} by rlgov fit. Emulated: times and joules from a model.\n"
    files = {BOARD_FILE: _board_text(board, fitted, head)}
    several = len(fitted.jobs) > 1
    for index, job in enumerate(fitted.jobs):
        name = f"job-{index + 1}.yaml" if several else JOB_FILE
        values = {"name": job, "load": load_to_dict(fitted.loads, index)}
        files[name] = head + _yaml(values)
    if fitted.members:
        files[ENSEMBLE_FILE] = head + _yaml(_ensemble(fitted, board.name))
    for name, text in files.items():
        write_text_atomic(folder / name, text)
    return [folder / name for name in files]


def read_ensemble(path: Path) -> list[tuple[TwinSpec, list[Load]]]:
    """The twins of an ensemble's file, each a board and its jobs.

    Raises:
        TraceError: It cannot be read or is no ensemble.
    """
    try:
        members = yaml.safe_load(path.read_text(encoding="utf-8"))["members"]
        return [
            (TwinSpec.from_dict(m["board"]), [load_from_dict(load) for load in m["loads"]])
            for m in members
        ]
    except OSError as error:
        raise TraceError(f"cannot read {path}: {error.strerror}") from error
    except (yaml.YAMLError, ConfigError, KeyError, TypeError) as error:
        raise TraceError(f"{path} is no ensemble of rlgov fit: {error}") from error


def _ensemble(fitted: FittedTwin, name: str) -> dict[str, Any]:
    return {
        "jobs": list(fitted.jobs),
        "members": [
            {
                "board": board_to_dict(replace(spec, name=name)),
                "loads": [load_to_dict(load, j) for j in range(len(fitted.jobs))],
            }
            for spec, load in fitted.members
        ],
    }


def board_to_dict(spec: TwinSpec) -> dict[str, Any]:
    """The board as plain values, which `TwinSpec.from_dict` takes back."""
    values: dict[str, Any] = _plain(asdict(spec))
    return values


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(item) for item in value]
    return value


def _board_text(board: TwinSpec, fitted: FittedTwin, head: str) -> str:
    of_board = [c for c in fitted.constraints if ": " not in c.name]
    free = [c.name for c in of_board if not c.constrained]
    note = "# Not constrained by it, as in the board before the fit: " + (", ".join(free) or "none")
    return f"{head}{note}\n{_yaml(board_to_dict(board))}"


def fitted_name(name: str) -> str:
    """Name of the board that a fit of board ``name`` writes."""
    return re.sub(r"(_fitted)?$", "_fitted", name, count=1)


def _yaml(values: Any) -> str:
    text: str = yaml.safe_dump(values, sort_keys=False, allow_unicode=True, default_flow_style=None)
    return text
