"""Gives back what a run left that ended badly: the next start's duty, and ``rlgov restore``'s."""

from __future__ import annotations

import logging
from typing import Any

from rlgov.boards.base import Board, BoardState
from rlgov.boards.giveback import Outcome, is_file_key, place
from rlgov.boards.leasefile import LeaseFolder, is_stale
from rlgov.errors import LeaseError

log = logging.getLogger(__name__)


def repair(folder: LeaseFolder, board: Board | None, *, overwrite: bool = False) -> str | None:
    """Give back what a crashed run left; an earlier boot's lease is put aside unused.

    Args:
        folder: The machine's lease folder; nobody may hold the board.
        board: For values that are no files.
        overwrite: Give back also what somebody else has changed since.

    Returns:
        What was done, in words; ``None`` when there was nothing to do.

    Raises:
        LeaseError: A value could not be given back.
    """
    record = folder.record()
    if record is None or record["returned"]:
        return None
    if is_stale(record):
        aside = folder.archive(record)
        log.warning("the lease of a run before the last boot was put aside: %s", aside)
        return f"the lease was of an earlier boot and was put aside as {aside}; nothing was written"
    if overwrite:
        folder.write({**record, "overwrite": True})
    outcome = folder.give_back(record["run_id"], "repair") or Outcome()
    if outcome.failed:
        raise not_returned(outcome)
    if not all(map(is_file_key, record["values"])):
        _repair_rest(folder, record, board, outcome)
    log.warning(
        "a run that did not end well (process %s) left the board; it was given back as "
        "found before it",
        record["pid"],
    )
    text = f"{len(outcome.restored)} files were given their prior value"
    kept = "".join(
        f"; {path} holds {value}, set by somebody else" for path, value in outcome.kept.items()
    )
    return text + kept


def _repair_rest(
    folder: LeaseFolder, record: dict[str, Any], board: Board | None, outcome: Outcome
) -> None:
    """Give back the values that are no files, through the board."""
    if board is None or board.name != record["board"]:
        raise LeaseError(
            f"a crashed run left board {record['board']} changed, which cannot be opened here; "
            "give it back with rlgov restore, where its driver answers"
        )
    with folder.restoring():
        rest = {
            k: v
            for k, v in record["values"].items()
            if place(record["root"], k) not in outcome.kept
        }
        board.restore(BoardState(record["board"], rest))
        folder.mark_returned(record, "repair", outcome)


def not_returned(outcome: Outcome) -> LeaseError:
    """The error for a board that is not back as it was found."""
    what = "; ".join(f"{path}: {why}" for path, why in outcome.failed.items())
    return LeaseError(
        f"the board could not be given back whole ({what}); try rlgov restore, as root where a "
        "permission is missing; a reboot resets every clock"
    )
