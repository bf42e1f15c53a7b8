"""Files that are whole or absent, and run folders that no two runs share."""

from __future__ import annotations

import fcntl
import json
import math
import os
import secrets
import shutil
import tempfile
import weakref
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import rlgov
from rlgov.errors import ConfigError

STATUS_FILE = "status.json"
"""Written first and last; its presence is what marks a folder as a run's."""

RUNS = Path("runs")
"""Where run folders go unless ``out=`` says otherwise, below the launch directory."""


def write_bytes_atomic(path: Path, data: bytes) -> None:
    """Write ``path`` so that a reader, or a power cut, sees the old file or the new one whole."""
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        # mkstemp makes files private; these are meant to be read by whoever may read the folder.
        Path(name).chmod(0o666 & ~_umask())
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    _sync_folder(path.parent)


def write_text_atomic(path: Path, text: str) -> None:
    """`write_bytes_atomic` for UTF-8 text; file names that are not UTF-8 pass through."""
    write_bytes_atomic(path, text.encode("utf-8", "surrogateescape"))


def write_json_atomic(path: Path, data: Any) -> None:
    """Write ``data`` as valid JSON: a number that is not finite becomes ``null``."""
    write_text_atomic(path, json_text(data))


def json_text(data: Any) -> str:
    """``data`` as indented, valid JSON with a final newline."""
    return json.dumps(plain(data), indent=2, allow_nan=False) + "\n"


def read_json(path: Path) -> Any:
    """The content of a JSON file.

    Raises:
        ConfigError: The file cannot be read or is not JSON.
    """
    try:
        return json.loads(path.read_bytes())
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from error
    except ValueError as error:
        raise ConfigError(f"{path} is not valid JSON: {error}") from error


def plain(data: Any) -> Any:
    """``data`` with only JSON's own types; NumPy's are unwrapped, non-finite numbers are ``None``.

    Raises:
        TypeError: A value has no JSON form (our own bug, never the user's).
    """
    if isinstance(data, Mapping):
        return {str(key): plain(value) for key, value in data.items()}
    if isinstance(data, (list, tuple)):
        return [plain(value) for value in data]
    if data is None or isinstance(data, (bool, int, str)):
        return data
    if isinstance(data, float):
        return float(data) if math.isfinite(data) else None
    if isinstance(data, os.PathLike):
        return os.fspath(data)
    if hasattr(data, "tolist"):  # every NumPy scalar and array, without importing NumPy here
        return plain(data.tolist())
    raise TypeError(f"{type(data).__name__} has no JSON form")


class RunFolder:
    """The folder of one run.

    It holds ``config.yaml``, ``status.json``, ``summary.json`` and whatever else the run leaves.

    Attributes:
        path: The folder.
        command: The command whose run it is.
        resumed: True when an earlier run of the same folder is being continued.
    """

    def __init__(self, path: Path, command: str, *, resumed: bool = False) -> None:
        self.path = path
        self.command = command
        self.resumed = resumed
        self._release: Callable[[], object] | None = None

    @classmethod
    def create(
        cls,
        out: Path | None,
        command: str,
        *,
        overwrite: bool = False,
        resume: bool = False,
        runs: Path = RUNS,
    ) -> RunFolder:
        """Make ``out``, or a new folder ``runs/<date-time>-<command>-<short id>``.

        Raises:
            ConfigError: ``out`` holds files and neither ``overwrite`` nor ``resume`` allows it,
                or the folder cannot be made. Nothing has been touched then.
        """
        if overwrite and resume:
            raise ConfigError("overwrite=true and resume=true exclude each other: give one of them")
        try:
            if out is None:
                return cls._create_new(runs, command)
            return cls._create_at(out, command, overwrite=overwrite, resume=resume)
        except OSError as error:
            where = out if out is not None else runs
            raise ConfigError(
                f"cannot make a run folder at {where}: {error.strerror}; give another with out=DIR"
            ) from error

    @classmethod
    def _create_new(cls, runs: Path, command: str) -> RunFolder:
        runs.mkdir(parents=True, exist_ok=True)
        while True:
            stamp = datetime.now().strftime("%Y%m%d-%H%M%S")
            name = "-".join([stamp, *command.split(), secrets.token_hex(3)])
            try:
                (runs / name).mkdir()
            except FileExistsError:
                continue
            folder = cls(runs / name, command)
            folder._lock()
            _claim(folder.path)
            folder.write_status("running")
            return folder

    @classmethod
    def _create_at(cls, out: Path, command: str, *, overwrite: bool, resume: bool) -> RunFolder:
        resumed = False
        if out.exists() and not out.is_dir():
            raise ConfigError(f"out={out} is a file; give a folder")
        if out.is_dir() and any(out.iterdir()):
            if not (resume or overwrite or _never_started(out)):
                raise _not_empty(out)
            resumed = resume
            overwrite = not resume
        out.mkdir(parents=True, exist_ok=True)
        folder = cls(out, command, resumed=resumed)
        folder._lock()
        if overwrite and not resumed and any(out.iterdir()):
            _clear_run(out)
        if not resumed:
            _claim(out)
        folder.write_status("running")
        return folder

    def _lock(self) -> None:
        """Keep other processes out of the folder for as long as this object lives."""
        handle = os.open(self.path, os.O_RDONLY)
        self._release = weakref.finalize(self, os.close, handle)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._release()
            raise ConfigError(f"out={self.path}: a run is still going on there") from None
        except OSError:
            return  # a file system without locks; the claim below still stands between new runs

    def close(self) -> None:
        """Let other runs have the folder (with resume=true or overwrite=true)."""
        if self._release is not None:
            self._release()

    def child(self, name: str, command: str | None = None) -> RunFolder:
        """A run folder inside this one."""
        (self.path / name).mkdir(exist_ok=self.resumed)
        child = RunFolder(self.path / name, command or self.command, resumed=self.resumed)
        child.write_status("running")
        return child

    def write_config(self, text: str) -> Path:
        """Write the resolved configuration (YAML) as ``config.yaml``."""
        path = self.path / "config.yaml"
        write_text_atomic(path, text)
        return path

    def write_summary(self, data: Mapping[str, Any]) -> Path:
        """Write ``summary.json``: ``data`` after the command's name and the version."""
        path = self.path / "summary.json"
        head = {"command": self.command, "rlgov_version": rlgov.__version__}
        write_json_atomic(path, {**head, **data})
        return path

    def write_status(self, status: str, exit_code: int | None = None) -> None:
        """Write ``status.json``: ``running``, ``completed``, ``failed`` or ``interrupted``."""
        write_json_atomic(
            self.path / STATUS_FILE,
            {"command": self.command, "status": status, "exit_code": exit_code, "pid": os.getpid()},
        )


def _claim(path: Path) -> None:
    try:
        # Exclusive, so that of two runs given the same empty folder only one gets it.
        (path / STATUS_FILE).open("x").close()
    except FileExistsError:
        raise _not_empty(path) from None


def _never_started(out: Path) -> bool:
    """Whether all that ``out`` holds is the record of a run that was refused before it began."""
    if {path.name for path in out.iterdir()} - {STATUS_FILE, "config.yaml", "summary.json"}:
        return False
    try:
        status = json.loads((out / STATUS_FILE).read_bytes())
    except (OSError, ValueError):
        return False
    return isinstance(status, dict) and status.get("exit_code") == ConfigError.exit_code


def _not_empty(out: Path) -> ConfigError:
    return ConfigError(
        f"out={out} already holds files; give another folder, "
        "or resume=true to go on there, or overwrite=true to replace that run"
    )


def _clear_run(out: Path) -> None:
    if not (out / STATUS_FILE).is_file():
        raise ConfigError(
            f"out={out} holds files that no run of rlgov wrote (it has no {STATUS_FILE}), "
            "so overwrite=true will not remove them; give another folder"
        )
    for entry in out.iterdir():
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            entry.unlink()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
