from __future__ import annotations

import json

import pytest

from rlgov.boards.base import KNOB_NAMES
from rlgov.governor.record import TRACE_FILE
from rlgov.traces.store import read_store
from tests.fakes.synthetic_job import SyntheticJob
from tests.governor.runs import govern


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return govern(tmp_path_factory.mktemp("run"), SyntheticJob(400), "random", budget=0.2)


@pytest.fixture(scope="module")
def stored(run):
    return read_store(run.folder / TRACE_FILE)


def test_there_is_one_row_a_window_in_order_of_time(run, stored):
    windows = sum(run.summary["windows_by_kind"].values())
    assert len(stored.rows) == windows + (run.result.ledger.tail.steps > 0)
    assert [row.values["window"] for row in stored.rows] == list(range(len(stored.rows)))
    times = [row.t_s for row in stored.rows]
    assert times == sorted(times)


def test_the_rows_add_up_to_the_ledger(run, stored):
    decided = [
        row
        for row in stored.rows
        if row.extra["window_kind"] == "decided" and "cut_short" not in row.quality
    ]
    account = run.result.ledger.account("decided")
    assert sum(row.values["steps"] for row in decided) == account.steps
    joules = sum(row.values["energy_per_step_j"] * row.values["steps"] for row in decided)
    assert joules == pytest.approx(account.train_j)


def test_a_row_says_what_was_asked_and_what_the_board_ran_at(stored):
    for row in stored.rows:
        for knob in KNOB_NAMES:
            asked = row.values.get(f"{knob}_mhz_set")
            if asked is not None and knob != "emc":
                assert row.values[f"{knob}_mhz"] == pytest.approx(asked, rel=0.01)
            assert 0 <= row.values[f"{knob}_util"] <= 1


def test_a_row_says_that_it_is_emulated_and_of_which_board(run, stored):
    assert stored.meta["emulated"] is True
    assert stored.meta["device"] == run.board.name


def test_a_row_names_the_rules_that_acted(run, stored):
    for rule, count in run.summary["interventions"].items():
        assert sum(rule in row.guard for row in stored.rows) == count


def test_every_line_is_valid_json(run):
    for line in (run.folder / TRACE_FILE).read_text().splitlines():
        json.loads(line)
