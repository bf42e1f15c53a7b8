"""What a lease leaves on disk, and how any process gives a board back from it.

One folder a machine holds the lock, the as-found state and the journal of writes. The governor,
its watcher, the next governor and ``rlgov restore`` all go through this module; it keeps to the
standard library, since the watcher must stay small.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rlgov.boards import process
from rlgov.boards.giveback import Outcome, is_file_key, on_disk, restore_files
from rlgov.errors import LeaseError

STATE_DIR_VARIABLE = "RLGOV_STATE_DIR"
LEASE_FILE = "lease.json"
LOCK_FILE = "lock"


def default_state_dir(environ: Mapping[str, str] = os.environ) -> Path:
    """Where this machine's lease lies: the first that is set or can be written.

    ``$RLGOV_STATE_DIR``; ``/run/rlgov`` for root; ``$XDG_RUNTIME_DIR/rlgov``;
    ``~/.local/state/rlgov``.
    """
    if environ.get(STATE_DIR_VARIABLE):
        return Path(environ[STATE_DIR_VARIABLE])
    if os.geteuid() == 0 and os.access("/run", os.W_OK):
        return Path("/run/rlgov")
    if environ.get("XDG_RUNTIME_DIR"):
        return Path(environ["XDG_RUNTIME_DIR"]) / "rlgov"
    return Path.home() / ".local" / "state" / "rlgov"


class LeaseFolder:
    """The folder of this machine's lease.

    Args:
        path: The folder; it is made when something is written.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def make(self) -> None:
        """Make the folder.

        Raises:
            LeaseError: It cannot be made or written.
        """
        try:
            self.path.mkdir(mode=0o755, parents=True, exist_ok=True)
        except OSError as error:
            raise self.unwritable(error) from error

    def unwritable(self, error: OSError) -> LeaseError:
        """The error for a folder that takes no file."""
        return LeaseError(
            f"the as-found state cannot be kept in {self.path}: {error.strerror or error}; "
            f"no clock was changed. Give a folder that can be written: {STATE_DIR_VARIABLE}=DIR"
        )

    def record(self) -> dict[str, Any] | None:
        """The latest lease; ``None`` when there is none.

        Raises:
            LeaseError: The file is there but cannot be read.
        """
        try:
            data = json.loads((self.path / LEASE_FILE).read_bytes())
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise LeaseError(
                f"the lease in {self.path / LEASE_FILE} is unreadable: {error}; "
                "check the clocks, then remove that file"
            ) from error
        if not isinstance(data, dict) or not isinstance(data.get("values"), dict):
            raise LeaseError(
                f"{self.path / LEASE_FILE} is no lease; check the clocks, then remove that file"
            )
        return data

    def write(self, record: Mapping[str, Any]) -> None:
        """Write the lease so that a reader, or a power cut, sees the old or the new one whole."""
        write_atomic(self.path / LEASE_FILE, record)

    def journal(self, run_id: str) -> Path:
        """The journal of one run's writes."""
        return self.path / f"writes-{run_id}.jsonl"

    def written(self, run_id: str) -> dict[str, list[str]]:
        """File -> every text that the run wrote, or was about to write, to it."""
        written: dict[str, list[str]] = {}
        try:
            lines = self.journal(run_id).read_bytes().splitlines()
        except OSError:
            return written
        for line in lines:
            try:
                path, text = json.loads(line)
            except ValueError:
                continue  # cut short by a kill; the write that it announced never happened
            written.setdefault(path, []).append(text)
        return written

    @contextlib.contextmanager
    def restoring(self) -> Iterator[None]:
        """Only one process at a time gives the board back."""
        handle = os.open(self.path / "restore.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            # Without locks two may write the same prior values at once, which does no harm.
            with contextlib.suppress(OSError):
                fcntl.flock(handle, fcntl.LOCK_EX)
            yield
        finally:
            os.close(handle)

    def give_back(self, run_id: str, by: str, *, keep: bool = False) -> Outcome | None:
        """Give back the files of a lease, unless another process has done so already.

        Args:
            run_id: The lease; a later one is left alone.
            by: Who does it, for the record.
            keep: Leave the lease standing (its governor hangs, and may come back).

        Returns:
            What was done; ``None`` when there was nothing to do.

        Raises:
            OSError: The outcome cannot be recorded.
        """
        with self.restoring():
            record = self.record()
            if record is None or record["run_id"] != run_id or record["returned"]:
                return None
            outcome = self._restore(record)
            if not outcome.failed and not keep and all(map(is_file_key, record["values"])):
                self.mark_returned(record, by, outcome)
            return outcome

    def _restore(self, record: Mapping[str, Any]) -> Outcome:
        written = self.written(record["run_id"]) if record["journal"] else None
        return restore_files(
            on_disk(record["root"], record["values"]), written, not record["overwrite"]
        )

    def mark_returned(self, record: Mapping[str, Any], by: str, outcome: Outcome) -> None:
        """Record that the board was given back. Hold `restoring`."""
        done = {"returned": True, "returned_by": by, "kept": outcome.kept}
        self.write({**record, **done})
        self.journal(record["run_id"]).unlink(missing_ok=True)

    def archive(self, record: Mapping[str, Any]) -> Path:
        """Put a lease of an earlier boot aside: its values mean nothing any more."""
        target = self.path / f"archived-{record['run_id']}.json"
        (self.path / LEASE_FILE).replace(target)
        self.journal(record["run_id"]).unlink(missing_ok=True)
        return target


def is_stale(record: Mapping[str, Any]) -> bool:
    """Whether a lease is of an earlier boot, since which the kernel has reset every clock."""
    return bool(record["boot_id"]) and record["boot_id"] != process.boot_id()


def write_atomic(path: Path, data: Mapping[str, Any]) -> None:
    """Write JSON whole or not at all."""
    new = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with new.open("w", encoding="utf-8") as file:
            json.dump(data, file, indent=2)
            file.flush()
            os.fsync(file.fileno())
        new.replace(path)
    except BaseException:
        new.unlink(missing_ok=True)
        raise
    handle = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
