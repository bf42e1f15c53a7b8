"""Every window of a run, as rows of a trace, kept as the run goes."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from datetime import datetime, timezone
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rlgov.boards.base import KNOB_NAMES, Board
from rlgov.errors import TraceError
from rlgov.governor.ledger import Kind
from rlgov.governor.live import LiveWindow, hottest
from rlgov.traces.row import TraceRow
from rlgov.traces.store import TraceWriter

TRACE_FILE = "trace.jsonl"

log = logging.getLogger(__name__)


class WindowLog:
    """Writes one row a window; a disk that is full silences it, never the governor.

    Args:
        folder: The run's folder.
        board: The board.
        job: Name of the job.

    Attributes:
        complete: False once a row could not be stored.
    """

    def __init__(self, folder: Path, board: Board, job: str) -> None:
        self.complete = True
        self._board, self._job = board, job
        self._index = 0
        self._writer: TraceWriter | None = None
        try:
            meta = {"device": board.name, "emulated": board.emulated, "job": job}
            self._writer = TraceWriter(folder / TRACE_FILE, meta=meta)
        except TraceError as error:
            self._give_up(error)

    def add(
        self, kind: Kind, window: LiveWindow, complete: bool, acts: Mapping[str, NDArray[np.bool_]]
    ) -> None:
        """Append a window."""
        if self._writer is None or window.metered is None:
            return
        row = self._row(kind, window, complete, acts)
        self._index += 1
        try:
            self._writer.append(row)
        except TraceError as error:
            self._give_up(error)

    def close(self) -> None:
        """Close the file; a second call does nothing."""
        writer, self._writer = self._writer, None
        if writer is None:
            return
        try:
            writer.close()
        except TraceError as error:
            self._give_up(error)

    def _give_up(self, error: TraceError) -> None:
        if self.complete:
            log.warning("windows are no longer recorded: %s", error)
        self.complete = False
        self.close()

    def _row(
        self, kind: Kind, window: LiveWindow, complete: bool, acts: Mapping[str, NDArray[np.bool_]]
    ) -> TraceRow:
        stretch = window.metered
        if stretch is None:
            raise TraceError("a window without steps has no row")
        seconds = stretch.t1_s - stretch.t0_s
        values: dict[str, object] = {
            "device": self._board.name,
            "job": self._job,
            "phase": "train",
            "window": self._index,
            "steps": stretch.steps,
            "duration_s": seconds,
            "step_time_s": stretch.train_s / stretch.steps,
            "total_w": stretch.energy.mean_w,
            "total_rule": self._board.total_rule,
            "energy_j": stretch.energy.total_j,
        }
        if stretch.train_j is not None:
            values["energy_per_step_j"] = stretch.train_j / stretch.steps
        values |= _knob_columns(window)
        known = {k: v for k, v in values.items() if v is not None}
        return TraceRow(
            kind="window",
            t_s=stretch.t1_s,
            t_utc=datetime.now(timezone.utc).isoformat().replace("+00:00", "Z"),
            values=known,  # type: ignore[arg-type]
            rails={rail: joules / seconds for rail, joules in stretch.energy.rail_j.items()},
            temperature_c={"hottest": hottest(window.readings)} if window.readings else {},
            quality=_quality(window, complete),
            guard=tuple(name for name, acted in acts.items() if acted[0]),
            extra={"window_kind": kind, "tokens": stretch.tokens, "samples": stretch.samples},
        )


def _knob_columns(window: LiveWindow) -> dict[str, object]:
    columns: dict[str, object] = {}
    for name in KNOB_NAMES:
        columns[f"{name}_mhz_set"] = window.asked[name]
        columns[f"{name}_mhz"] = _mean([r.clocks_mhz.get(name) for r in window.readings])
        columns[f"{name}_util"] = _mean([r.utilisation.get(name) for r in window.readings])
    return columns


def _mean(values: list[float | None]) -> float | None:
    known = [v for v in values if v is not None]
    return float(np.mean(known)) if known else None


def _quality(window: LiveWindow, complete: bool) -> tuple[str, ...]:
    flags = [] if complete else ["cut_short"]
    if window.metered is not None:
        flags += [f"{name}: {why}" for name, why in window.metered.energy.quality.items()]
    return tuple(flags)
