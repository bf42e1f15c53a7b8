from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest

from rlgov.traces.columns import (
    PROFILE_COLUMNS,
    QUALITY_FLAGS,
    TRACE_COLUMNS,
    Column,
    rail_of,
    zone_of,
)
from rlgov.traces.importers import ImportReport
from rlgov.traces.profile import ProfileRow

DOCS = Path(__file__).resolve().parents[2] / "docs" / "traces.md"


@pytest.mark.parametrize("column", [*PROFILE_COLUMNS, *TRACE_COLUMNS], ids=lambda c: c.name)
def test_every_column_is_documented_word_for_word(column: Column) -> None:
    doc = column.doc.replace("|", "&#124;")
    assert f"| `{column.name}` | {column.type} | {column.unit} | {doc} |" in DOCS.read_text()


def test_every_flag_and_every_key_of_the_summary_is_documented() -> None:
    text = DOCS.read_text()
    assert all(f"- `{name}`: {doc}." in text for name, doc in QUALITY_FLAGS.items())
    assert [f.name for f in fields(ImportReport) if f"`{f.name}`" not in text] == []


def test_every_documented_column_of_a_profile_is_a_field() -> None:
    assert {column.name for column in PROFILE_COLUMNS} <= {f.name for f in fields(ProfileRow)}


@pytest.mark.parametrize(
    ("column", "rail", "zone"),
    [
        ("vdd_in_w", "vdd_in", None),
        ("power_w", None, None),
        ("total_w", None, None),
        ("power_limit_w", None, None),
        ("_w", None, None),
        ("temp_tj_c", None, "tj"),
        ("temp__c", None, None),
        ("t_s", None, None),
    ],
)
def test_rails_and_zones_by_name(column: str, rail: str | None, zone: str | None) -> None:
    assert (rail_of(column), zone_of(column)) == (rail, zone)
