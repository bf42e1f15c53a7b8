"""The promise that a board is given back as it was found.

Before the first write the as-found state lies on disk; every orderly exit puts the *prior values*
back, not defaults.
"""

from __future__ import annotations

import logging
import os
from pathlib import Path
from types import TracebackType

from rlgov.boards.base import Board, BoardState
from rlgov.files import write_json_atomic

LEASE_FILE = "lease.json"

log = logging.getLogger(__name__)


class Lease:
    """Holds a board from the first change to the last; a context manager.

    Args:
        board: The board.
        folder: Where the as-found state is kept while the lease is held.
    """

    def __init__(self, board: Board, folder: Path) -> None:
        self._board = board
        self._path = folder / LEASE_FILE
        self._state: BoardState | None = None

    def __enter__(self) -> Lease:
        """Save the as-found state before anything is changed."""
        self._state = self._board.capture()
        record = {
            "board": self._state.board,
            "values": dict(self._state.values),
            "pid": os.getpid(),
            "returned": False,
        }
        write_json_atomic(self._path, record)
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
            BoardError: A value could not be written back.
        """
        if self._state is None:
            return
        state, self._state = self._state, None
        self._board.restore(state)
        record = {"board": state.board, "values": dict(state.values), "returned": True}
        try:
            write_json_atomic(self._path, record)
        except OSError as error:
            # The board is back as it was; restoring the same values again would change nothing.
            log.warning("the board was given back, which could not be recorded: %s", error)
