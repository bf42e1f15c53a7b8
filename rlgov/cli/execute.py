"""One composed run, from its folder to its status."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Sequence
from pathlib import Path

import yaml

from rlgov.cli.arguments import Arguments
from rlgov.cli.command import Command, Invocation
from rlgov.cli.compose import Composed
from rlgov.errors import RlgovError
from rlgov.files import RunFolder, plain

INTERRUPTED = 130
TERMINATED = 143
STOPPED = (INTERRUPTED, TERMINATED)
"""Exit codes of a run that was stopped from outside."""


def config_text(composed: Composed) -> str:
    """The resolved configuration as YAML."""
    text: str = yaml.safe_dump(plain(composed.config), sort_keys=False, allow_unicode=False)
    return text


def run_once(command: Command, composed: Composed, arguments: Arguments, folder: RunFolder) -> int:
    """Run ``command`` in ``folder`` and record how it ended.

    Returns:
        The command's exit code.

    Raises:
        BaseException: Whatever the command raised, after it was recorded.
    """
    folder.write_config(config_text(composed))
    invocation = Invocation(
        config=composed.config,
        folder=folder,
        files=tuple(arguments.files),
        job=tuple(arguments.job),
        overrides=composed.overrides,
        config_dirs=tuple(arguments.config_dirs),
    )
    try:
        code = command.run(invocation)
    except BaseException as error:
        _record_failure(folder, error)
        raise
    with contextlib.suppress(OSError):  # a full disk does not change how the command ended
        folder.write_status(_status_of(code), code)
    return code


def _status_of(code: int) -> str:
    if code in STOPPED:
        return "interrupted"
    return "completed" if code == 0 else "failed"


def exit_code_of(error: BaseException) -> int:
    """The exit code that an exception ends the process with."""
    if isinstance(error, RlgovError):
        return error.exit_code
    if isinstance(error, KeyboardInterrupt):
        return INTERRUPTED
    if isinstance(error, SystemExit) and isinstance(error.code, int):
        return error.code
    return 1


def _record_failure(folder: RunFolder, error: BaseException) -> None:
    code = exit_code_of(error)
    status = "interrupted" if code in STOPPED else "failed"
    try:
        if not summary_of(folder.path):
            text = status if code in STOPPED else str(error) or type(error).__name__
            folder.write_summary({"status": status, "exit_code": code, "error": text})
        folder.write_status(status, code)
    except OSError:
        return  # a full or vanished disk must not hide what really went wrong


def summary_of(path: Path) -> dict[str, object]:
    """The summary in a run folder; empty when there is none that can be read."""
    try:
        data = json.loads((path / "summary.json").read_bytes())
    except (OSError, ValueError):
        return {}
    return data if isinstance(data, dict) else {}


def make_folder(command: Command, composed: Sequence[Composed]) -> RunFolder:
    """The folder of a run, or of a sweep's runs, as ``out``, ``overwrite`` and ``resume`` say."""
    first = composed[0].config
    out = first["out"]
    return RunFolder.create(
        Path(str(out)) if out is not None else None,
        command.name,
        overwrite=first["overwrite"],
        resume=first["resume"],
    )
