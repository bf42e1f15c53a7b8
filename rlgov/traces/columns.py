"""The documented columns of profiles and traces; `docs/traces.md` shows them as tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

ColumnType = Literal["text", "number", "integer", "texts", "numbers"]


@dataclass(frozen=True)
class Column:
    """One documented column.

    Attributes:
        name: As in the header; the suffix is the unit.
        type: ``texts`` and ``numbers`` are lists, joined by ``|`` in CSV.
        unit: Unit in words, empty for text.
        doc: What it holds and what an empty cell means.
    """

    name: str
    type: ColumnType
    unit: str
    doc: str


PROFILE_COLUMNS = (
    Column("device", "text", "", "Board or card that was measured."),
    Column("job", "text", "", "Job that ran; a file may hold several, one is chosen on reading."),
    Column("config", "text", "", "`pinned` (some knob was set) or `as_found` (none was)."),
    Column("gpu_mhz", "number", "MHz", "Pinned GPU clock; empty: left automatic."),
    Column("cpu_mhz", "number", "MHz", "Pinned CPU clock; empty: left automatic."),
    Column("emc_mhz", "number", "MHz", "Pinned memory clock; empty: left automatic."),
    Column("power_limit_w", "number", "W", "Power cap; empty: none was set."),
    Column("step_time_s", "number", "s", "Seconds an optimizer step; empty: not measured."),
    Column("power_w", "number", "W", "Mean power over `energy_scope`; empty: not measured."),
    Column("energy_per_step_j", "number", "J", "Empty: time x power where both are there."),
    Column("energy_scope", "text", "", "Rails (joined by +) that power and energy cover."),
    Column("steps", "integer", "steps", "Steps that were averaged."),
    Column("note", "text", "", "Free text; `name=number` parts can be looked up."),
    Column("source", "text", "", "Where the row comes from."),
)
"""Columns of a profile: one row a setting. Any other ``<rail>_w`` is the mean power of a rail."""

TRACE_COLUMNS = (
    Column("kind", "text", "", "`window` (a decision's outcome) or `sample` (one look)."),
    Column("t_utc", "text", "", "UTC label, ISO-8601 with Z; never used for durations."),
    Column("t_s", "number", "s", "Monotonic seconds; never goes back within a file."),
    Column("run", "text", "", "Identity of the run."),
    Column("device", "text", "", "Board."),
    Column("job", "text", "", "Job."),
    Column("phase", "text", "", "train, eval, checkpoint or resume; empty: unknown."),
    Column("window", "integer", "", "Index of the window that the row belongs to."),
    Column("steps", "integer", "steps", "Optimizer steps in the window."),
    Column("duration_s", "number", "s", "Length of the window."),
    Column("step_time_s", "number", "s", "Mean seconds a step in the window."),
    Column("gpu_mhz_set", "number", "MHz", "GPU clock asked for; empty: automatic."),
    Column("cpu_mhz_set", "number", "MHz", "CPU clock asked for; empty: automatic."),
    Column("emc_mhz_set", "number", "MHz", "Memory clock asked for; empty: automatic."),
    Column("gpu_mhz", "number", "MHz", "GPU clock in effect (the highest of several)."),
    Column("cpu_mhz", "number", "MHz", "CPU clock in effect (the highest online core's)."),
    Column("emc_mhz", "number", "MHz", "Memory clock in effect."),
    Column("total_w", "number", "W", "Board total by `total_rule`, never below 0."),
    Column("total_rule", "text", "", "Rail of the board's input, `sum_of_rails` or `none`."),
    Column("energy_j", "number", "J", "Energy since the row before; empty: unknown, with a flag."),
    Column("energy_per_step_j", "number", "J", "Window's energy by step; empty: unknown."),
    Column("gpu_util", "number", "0 to 1", "Busy share of the GPU; empty: unknown, not idle."),
    Column("cpu_util", "number", "0 to 1", "Mean busy share of the online cores."),
    Column("emc_util", "number", "0 to 1", "Busy share of the memory."),
    Column("gpu_clocks_mhz", "numbers", "MHz", "Every GPU clock where there are several."),
    Column("cpu_utils", "texts", "%", "Busy share of each core; `off`: offline."),
    Column("cpu_clocks_mhz", "texts", "MHz", "Clock of each core; `off`: offline."),
    Column("ram_used_mb", "number", "MB", "Memory in use."),
    Column("ram_total_mb", "number", "MB", "Memory there is."),
    Column("swap_used_mb", "number", "MB", "Swap in use."),
    Column("swap_total_mb", "number", "MB", "Swap there is; 0: none."),
    Column("quality", "texts", "", "Flags; empty: nothing is wrong with the row."),
    Column("guard", "texts", "", "What the guard did, with its reasons."),
    Column("note", "text", "", "Free text."),
)
"""Columns of a trace. Any other ``<rail>_w`` is a rail and any ``temp_<zone>_c`` a temperature."""

QUALITY_FLAGS = {
    "bad_field": "a known field could not be read and was left empty",
    "negative_power": "a rail read below zero; it counts as 0 in the total",
    "total_missing": "the total's rail, or part of the sum, is not on this row",
    "gap": "too long since the row before (suspend, pause or a clock that was set): not integrated",
    "time_inferred": "the row carried no usable time stamp; its time follows from its neighbours",
    "out_of_order": "the row stood later in the file than its time stamp says",
}
"""Flags that the importers set; a governor may add its own."""

_PROFILE_NAMES = frozenset(c.name for c in PROFILE_COLUMNS)
_TRACE_NAMES = frozenset(c.name for c in TRACE_COLUMNS)


def rail_of(column: str) -> str | None:
    """Rail that ``column`` holds (``vdd_in_w`` -> ``vdd_in``), or ``None`` for other columns."""
    if not column.endswith("_w") or column in _PROFILE_NAMES or column in _TRACE_NAMES:
        return None
    return column[:-2] or None


def zone_of(column: str) -> str | None:
    """Thermal zone of a ``temp_<zone>_c`` column, or ``None`` for other columns."""
    if column.startswith("temp_") and column.endswith("_c") and len(column) > len("temp__c"):
        return column[len("temp_") : -len("_c")]
    return None
