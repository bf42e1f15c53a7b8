"""The promise that a board is given back as it was found.

Before the first write the as-found state lies on disk, in the machine's lease folder and in the
run's; one governor holds a board at a time; and every exit puts the *prior values* back, not
defaults: an orderly one by itself, any other through the watcher, the next start, or
``rlgov restore``. What somebody else wrote meanwhile stays, see `rlgov.boards.giveback`.
"""

from __future__ import annotations

import json
import logging
import os
import secrets
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Any

from rlgov.boards import process
from rlgov.boards.base import Board, BoardState
from rlgov.boards.giveback import (
    Outcome,
    foreign_values,
    on_disk,
    place,
    restore_files,
)
from rlgov.boards.journal import AnnouncingWriter, OnFiles, moving_files
from rlgov.boards.leasefile import (
    LEASE_FILE,
    LOCK_FILE,
    LeaseFolder,
    default_state_dir,
)
from rlgov.boards.lock import OwnerLock
from rlgov.boards.repair import not_returned, repair
from rlgov.boards.watchdog import Watchdog
from rlgov.files import write_json_atomic

__all__ = ["LEASE_FILE", "Lease", "refuse_if_held"]

log = logging.getLogger(__name__)


class Lease:
    """Holds a board from the first change to the last; a context manager.

    A board that ends with its process needs no lock and no watcher.

    Args:
        board: The board.
        folder: The run's folder, which gets a copy of the as-found state.
        state_dir: The machine's lease folder (default: `default_state_dir`).
        overwrite: Give back also what somebody else has changed meanwhile.

    Attributes:
        watchdog: The watcher's keeper, while the lease of a real board is held.
        kept: File -> value of somebody else that was left in it at the end.
    """

    def __init__(
        self,
        board: Board,
        folder: Path,
        *,
        state_dir: Path | None = None,
        overwrite: bool = False,
    ) -> None:
        self._board = board
        self._path = folder / LEASE_FILE
        self._folder = LeaseFolder(state_dir or default_state_dir())
        self._lock = OwnerLock(self._folder.path / LOCK_FILE)
        self._overwrite = overwrite
        self._state: BoardState | None = None
        self._record: dict[str, Any] = {}
        self._journal: int | None = None
        self._announced: set[tuple[str, str]] = set()
        self.watchdog: Watchdog | None = None
        self.kept: dict[str, str] = {}

    def __enter__(self) -> Lease:
        """Save the as-found state before anything is changed.

        Raises:
            LeaseError: Another governor holds the board, a crashed run's clocks cannot be given
                back, or nothing can be saved. No clock was changed then.
        """
        if not outlives_us(self._board):
            self._state = self._board.capture()
            write_json_atomic(self._path, self._new_record())
            return self
        self._folder.make()
        try:
            self._lock.acquire()
            self._take()
        except OSError as error:
            self._abandon()
            raise self._folder.unwritable(error) from error
        except BaseException:
            self._abandon()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Give the board back, whatever happened."""
        self.give_back()

    def give_back(self) -> None:
        """Restore the as-found state; a second call does nothing.

        Raises:
            BoardError: A value could not be written back; the watcher goes on trying.
        """
        if self._state is None:
            return
        state, self._state = self._state, None
        if not outlives_us(self._board):
            self._board.restore(state)
        else:
            self._give_back_real(state)
        try:
            write_json_atomic(self._path, {**self._record, "returned": True, "kept": self.kept})
        except OSError as error:
            # The board is back as it was; restoring the same values again would change nothing.
            log.warning("the board was given back, which could not be recorded: %s", error)

    def _take(self) -> None:
        repair(self._folder, self._board)
        self._state = self._board.capture()
        self._record = self._new_record()
        self._folder.write(self._record)
        write_json_atomic(self._path, self._record)
        if isinstance(self._board, OnFiles):
            path = self._folder.journal(self._record["run_id"])
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
            self._journal = os.open(path, flags, 0o644)
            tree = self._board.tree
            tree.writer = AnnouncingWriter(tree.writer, self._announce)
        self.watchdog = Watchdog(self._folder, self._record["run_id"])

    def _new_record(self) -> dict[str, Any]:
        if self._state is None:
            raise RuntimeError("a lease is recorded before the board was captured")
        pid = os.getpid()
        self._record = {
            "board": self._state.board,
            "values": dict(self._state.values),
            "run_id": secrets.token_hex(6),
            "pid": pid,
            "start": process.start_time(pid),
            "boot_id": process.boot_id(),
            "taken_unix_s": time.time(),
            "root": self._root,
            "journal": isinstance(self._board, OnFiles),
            "overwrite": self._overwrite,
            "python": sys.executable,
            "returned": False,
        }
        return self._record

    @property
    def _root(self) -> str:
        return str(self._board.tree.root) if isinstance(self._board, OnFiles) else "/"

    def _announce(self, key: str, text: str) -> None:
        """Note a write before it is made; no fsync, since a power cut resets the clocks itself."""
        if self._journal is None or (key, text) in self._announced:
            return
        self._announced.add((key, text))
        line = json.dumps([place(self._root, key), text]) + "\n"
        os.write(self._journal, line.encode())

    def _give_back_real(self, state: BoardState) -> None:
        returned = False
        try:
            self._restore(state)
            returned = True
        finally:
            self._let_go(returned=returned)

    def _restore(self, state: BoardState) -> None:
        with self._folder.restoring():
            written = None
            if self._journal is not None:
                written = self._folder.written(self._record["run_id"])
            files = on_disk(self._root, state.values)
            if not self._overwrite:
                self.kept = foreign_values(files, written)
                for key in moving_files(self._board):
                    self.kept.pop(place(self._root, key), None)
            rest = {k: v for k, v in state.values.items() if place(self._root, k) not in self.kept}
            self._board.restore(BoardState(state.board, rest))
            outcome = restore_files(on_disk(self._root, rest), written)  # what restore left undone
            if outcome.failed:
                raise not_returned(outcome)
            outcome.kept = self.kept
            self._folder.mark_returned(self._record, "governor", outcome)
        for path, text in self.kept.items():
            log.warning("%s was set to %s by somebody else meanwhile and is left so", path, text)

    def _let_go(self, *, returned: bool) -> None:
        if self._journal is not None:
            if isinstance(self._board, OnFiles):
                writer = self._board.tree.writer
                if isinstance(writer, AnnouncingWriter):
                    self._board.tree.writer = writer.inner
            os.close(self._journal)
            self._journal = None
        if self.watchdog is not None:
            self.watchdog.close(returned=returned)
        self._lock.release()

    def _abandon(self) -> None:
        """Undo a taking that failed; nothing has been changed on the board yet."""
        if self._record:
            with self._folder.restoring():
                self._folder.mark_returned(self._record, "governor", Outcome())
        self._state = None
        self._let_go(returned=True)


def refuse_if_held(board: Board, state_dir: Path | None = None) -> None:
    """Ask before a job is started for it whether another governor holds the board.

    Raises:
        LeaseError: It does; nothing was changed.
    """
    folder = LeaseFolder(state_dir or default_state_dir())
    if not outlives_us(board) or not folder.path.is_dir():
        return
    lock = OwnerLock(folder.path / LOCK_FILE)
    try:
        lock.acquire()
    except OSError as error:
        raise folder.unwritable(error) from error
    lock.release()


def outlives_us(board: Board) -> bool:
    """Whether the board's clocks stay as they are when this process dies."""
    return isinstance(board, OnFiles) or not board.emulated
