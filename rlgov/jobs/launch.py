"""Start a command with the hook in its Python, and nothing else changed.

The command gets two things more in its environment: the path of our socket, and a private folder
in front of ``PYTHONPATH`` that holds a copy of the hook and a ``sitecustomize``. A Python started
with ``-E``, ``-I`` or ``-S``, or whose ``PYTHONPATH`` is replaced on the way, never sees the hook.

Under sudo the command runs as the user who called it, with that user's groups and home.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from rlgov.errors import JobError
from rlgov.jobs import hook
from rlgov.jobs.user import JobUser

COMMAND_NOT_FOUND = 127
COMMAND_NOT_EXECUTABLE = 126
"""What a shell ends with when it cannot start a command; the `JobError` carries it."""

_LONGEST_SOCKET_PATH = 100
"""Bytes; the kernel takes 107, and truncating silently is not an option."""

SITECUSTOMIZE = '''\
"""Starts rlgov's hook, then makes way for the sitecustomize that would have run without it."""
import os
import sys

_here = os.path.dirname(os.path.abspath(__file__))
try:
    if os.environ.get("RLGOV_SOCKET"):
        import importlib.util

        _spec = importlib.util.spec_from_file_location(
            "_rlgov_hook", os.path.join(_here, "_rlgov_hook.py")
        )
        _hook = importlib.util.module_from_spec(_spec)
        sys.modules["_rlgov_hook"] = _hook
        _spec.loader.exec_module(_hook)
        _hook.install()
except Exception:
    pass
sys.path[:] = [_entry for _entry in sys.path if _entry != _here]
sys.modules.pop("sitecustomize", None)
import sitecustomize  # the job's own; where it has none this fails as it would have without us
'''


def prepare_folder() -> Path:
    """A private folder (0700) with the hook, its ``sitecustomize`` and room for the socket.

    Raises:
        JobError: No temporary folder can be made.
    """
    try:
        folder = Path(tempfile.mkdtemp(prefix="rlgov-"))
        if len(os.fsencode(folder / "s")) > _LONGEST_SOCKET_PATH:
            folder.rmdir()
            folder = Path(tempfile.mkdtemp(prefix="rlgov-", dir="/tmp"))
        site = folder / "site"
        site.mkdir()
        (site / "sitecustomize.py").write_text(SITECUSTOMIZE, encoding="utf-8")
        shutil.copyfile(Path(hook.__file__), site / "_rlgov_hook.py")
    except OSError as error:
        raise JobError(
            f"cannot make a temporary folder for the job's hook ({error}); "
            "set TMPDIR to a folder that can be written"
        ) from error
    return folder


def job_environment(
    folder: Path, env: Mapping[str, str] | None, user: JobUser | None = None
) -> dict[str, str]:
    """The job's environment: ``env`` (default: ours, or the user's) plus the hook of ``folder``."""
    variables = dict(os.environ if env is None else env)
    if user is not None:
        variables = user.environment(variables)
    variables[hook.SOCKET_VARIABLE] = str(folder / "s")
    inherited = variables.get("PYTHONPATH")
    site = str((folder / "site").resolve())
    variables["PYTHONPATH"] = f"{site}{os.pathsep}{inherited}" if inherited else site
    return variables


def start(
    command: Sequence[str],
    env: Mapping[str, str],
    cwd: Path | None,
    user: JobUser | None = None,
) -> subprocess.Popen[bytes]:
    """Start the command in this terminal and process group, as ``user`` where one is given.

    Raises:
        JobError: It cannot be started; ``exit_code`` is 127 (not found) or 126 (not executable).
    """
    try:
        return subprocess.Popen(  # noqa: S603
            list(command),
            env=dict(env),
            cwd=cwd,
            user=None if user is None else user.uid,
            group=None if user is None else user.gid,
            extra_groups=None if user is None else user.groups,
        )
    except OSError as error:
        raise _start_error(command[0], cwd, error) from error


def _start_error(program: str, cwd: Path | None, error: OSError) -> JobError:
    if cwd is not None and not cwd.is_dir():
        return JobError(f"the job's working folder {str(cwd)!r} does not exist")
    if isinstance(error, FileNotFoundError):
        failure = JobError(f"command not found: {program!r}; check the spelling and PATH")
        failure.exit_code = COMMAND_NOT_FOUND
    else:
        failure = JobError(f"cannot execute {program!r}: {error.strerror}")
        failure.exit_code = COMMAND_NOT_EXECUTABLE
    return failure
