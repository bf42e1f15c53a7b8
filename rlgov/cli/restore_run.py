"""The work of ``rlgov restore``."""

from __future__ import annotations

import os
from pathlib import Path

from rlgov.boards.base import Board
from rlgov.boards.giveback import is_file_key
from rlgov.boards.leasefile import LOCK_FILE, LeaseFolder, default_state_dir
from rlgov.boards.lock import OwnerLock
from rlgov.boards.repair import repair
from rlgov.boards.select import KINDS, BoardSpec, open_board
from rlgov.cli.command import Invocation
from rlgov.errors import BoardError


def run(invocation: Invocation) -> int:
    """Give back what the lease says, and print what was done."""
    given = invocation.config["state_dir"]
    folder = LeaseFolder(Path(given) if given is not None else default_state_dir())
    text = _restore(folder, overwrite=invocation.config["foreign"] == "overwrite")
    text = text or f"nothing to give back (lease folder {folder.path})"
    print(f"rlgov: {text}")
    invocation.folder.write_summary({"done": text, "state_dir": str(folder.path)})
    return 0


def _restore(folder: LeaseFolder, *, overwrite: bool) -> str | None:
    if not folder.path.is_dir():
        return None
    lock = OwnerLock(folder.path / LOCK_FILE)
    try:
        lock.acquire()
        try:
            return repair(folder, _board(folder), overwrite=overwrite)
        finally:
            lock.release()
    except OSError as error:
        raise folder.unwritable(error) from error


def _board(folder: LeaseFolder) -> Board | None:
    """The board of a lease whose values are not all files; they need its own back-end."""
    record = folder.record()
    if record is None or record["returned"] or all(map(is_file_key, record["values"])):
        return None
    os.environ.pop("CUDA_VISIBLE_DEVICES", None)  # the crashed run's may have been others
    for kind in KINDS:
        try:
            board = open_board(BoardSpec(kind, root=record["root"]))
        except BoardError:
            continue
        if board.name == record["board"]:
            return board
        board.close()
    return None
