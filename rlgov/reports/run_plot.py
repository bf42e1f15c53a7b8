"""A picture of a governed run: what the clocks did and what a mini-batch cost, window by window."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rlgov.boards.base import KNOB_NAMES
from rlgov.errors import ConfigError
from rlgov.files import read_json
from rlgov.governor.record import TRACE_FILE
from rlgov.traces.row import TraceRow
from rlgov.traces.store import read_store

COLOURS = {"decided": "tab:blue", "reference": "tab:orange", "audit": "tab:red"}
LABELS = {"decided": "governed", "reference": "reference (as found)", "audit": "audit (as found)"}


def plot_run(run: Path, picture: Path) -> None:
    """Draw the run in folder ``run`` into ``picture`` (its ending picks the format).

    Raises:
        ConfigError: The folder holds no windows, or matplotlib is not installed.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ConfigError("plots need matplotlib: pip install 'rlgov[report]'") from error
    summary = read_json(run / "summary.json")
    rows = read_store(run / TRACE_FILE).rows
    if not rows:
        raise ConfigError(f"{run} holds no windows to draw")
    figure = Figure(figsize=(9, 6.5), layout="constrained")
    energy, time, clocks = figure.subplots(3, 1, sharex=True)
    _cost(energy, rows, "energy_per_step_j", "J per mini-batch")
    _cost(time, rows, "step_time_s", "s per mini-batch")
    _budget(time, summary)
    _clocks(clocks, rows)
    energy.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3, fontsize="small")
    clocks.set_xlabel("window")
    figure.suptitle(_title(summary), fontsize="medium")
    figure.savefig(picture, dpi=110)


def _cost(axes: Any, rows: Sequence[TraceRow], column: str, label: str) -> None:
    for kind, colour in COLOURS.items():
        points = [
            (i, row.number(column))
            for i, row in enumerate(rows)
            if row.extra.get("window_kind") == kind and "cut_short" not in row.quality
        ]
        known = [(i, value) for i, value in points if value is not None]
        if known:
            axes.plot(*zip(*known, strict=True), "o", ms=4, color=colour, label=LABELS[kind])
    axes.set_ylabel(label)
    axes.grid(alpha=0.3)


def _budget(axes: Any, summary: dict[str, Any]) -> None:
    reference = summary["reference_s_per_step"]
    if reference is None:
        return
    axes.axhline(reference * (1 + summary["budget"]), ls="--", color="grey", lw=1)
    axes.annotate(
        f"budget: {summary['budget']:.0%} slower than as found",
        (0.01, reference * (1 + summary["budget"])),
        xycoords=("axes fraction", "data"),
        textcoords="offset points",
        xytext=(0, -3),
        va="top",
        fontsize="small",
        color="dimgrey",
    )


def _clocks(axes: Any, rows: Sequence[TraceRow]) -> None:
    for knob in KNOB_NAMES:
        values = [row.number(f"{knob}_mhz") for row in rows]
        shown = [float("nan") if v is None else v for v in values]
        axes.step(range(len(rows)), shown, where="mid", label=knob.upper())
    axes.set_ylabel("clock, MHz")
    axes.set_ylim(bottom=0)
    axes.grid(alpha=0.3)
    axes.legend(loc="lower right", ncols=3, fontsize="small")


def _title(summary: dict[str, Any]) -> str:
    board = f"{summary['board']}{' (EMULATED)' if summary['emulated'] else ''}"
    if summary["saving"] is None:
        return f"{summary['job']} on {board}"
    low, high = summary["saving_ci95"]
    return (
        f"{summary['policy']} on {board}: saves {summary['saving']:.1%} "
        f"({low:.1%} to {high:.1%}), {summary['slowdown']:+.1%} time"
    )
