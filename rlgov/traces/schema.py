"""The public face of both schemas: columns, rows and `Profile`."""

from __future__ import annotations

from rlgov.traces.columns import PROFILE_COLUMNS, QUALITY_FLAGS, TRACE_COLUMNS, Column
from rlgov.traces.profile import (
    AS_FOUND,
    KNOB_COLUMNS,
    PINNED,
    Profile,
    ProfileArrays,
    ProfileRow,
)
from rlgov.traces.row import Record, TraceRow, row_of

__all__ = [
    "AS_FOUND",
    "KNOB_COLUMNS",
    "PINNED",
    "PROFILE_COLUMNS",
    "QUALITY_FLAGS",
    "TRACE_COLUMNS",
    "Column",
    "Profile",
    "ProfileArrays",
    "ProfileRow",
    "Record",
    "TraceRow",
    "row_of",
]
