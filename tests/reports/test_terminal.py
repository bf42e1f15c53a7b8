from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console

from rlgov.reports.terminal import EMULATED_NOTICE, MOST_SETTINGS, print_run, run_rows
from tests.fakes.synthetic_job import SyntheticJob
from tests.governor.runs import govern


@pytest.fixture(scope="module")
def emulated(tmp_path_factory) -> dict[str, Any]:
    """The summary of a whole run."""
    folder = tmp_path_factory.mktemp("run")
    return {**govern(folder, SyntheticJob(600), "random").summary, "out": "runs/a b"}


@pytest.fixture
def real(emulated) -> dict[str, Any]:
    """The same figures, had they been measured on a real board."""
    gone = {"job_scale", "work_sources", "uncounted_steps", "real_s_per_step"}
    kept = {key: value for key, value in emulated.items() if key not in gone}
    return {**kept, "emulated": False, "ci_scope": None}


@pytest.fixture(scope="module")
def empty(tmp_path_factory) -> dict[str, Any]:
    """The summary of a job that never took a step."""
    folder = tmp_path_factory.mktemp("run")
    return {**govern(folder, SyntheticJob(0, ends=(3, "failed"))).summary, "out": "runs/x"}


def printed(summary: dict[str, Any], width: int = 120) -> str:
    console = Console(file=io.StringIO(), width=width)
    print_run(summary, console)
    text: str = console.file.getvalue()  # type: ignore[attr-defined]
    return text


def rows(summary: dict[str, Any]) -> dict[str, str]:
    return dict(run_rows(summary))


class TestEmulation:
    def test_the_notice_stands_above_the_table(self, emulated):
        text = printed(emulated)
        assert " ".join(text.split()).startswith(EMULATED_NOTICE)
        assert "no clock was changed and nothing was metered" in EMULATED_NOTICE

    def test_every_line_of_figures_from_the_model_is_marked(self, emulated):
        marked = {name for name in rows(emulated) if name.endswith(" (emulated)")}
        named = {name.removesuffix(" (emulated)") for name in marked}
        assert named == {
            "energy per mini-batch",
            "saving",
            "slowdown",
            "time per mini-batch",
            "power",
        }

    def test_no_joule_or_percent_stands_in_an_unmarked_line(self, emulated):
        for name, value in run_rows(emulated):
            if not name.endswith("(emulated)") and name != "settings (share of time)":
                assert " J" not in value
                assert "%" not in value

    def test_the_interval_says_what_it_covers(self, emulated):
        assert "simulated noise only" in rows(emulated)["saving (emulated)"]

    def test_real_time_stands_beside_emulated_time(self, emulated):
        assert (
            "real time of the job here: 50 ms" in rows(emulated)["time per mini-batch (emulated)"]
        )

    def test_scaling_and_where_work_came_from_are_told(self, emulated):
        assert "the job's own work (600 steps counted)" in rows(emulated)["emulation"]
        scaled = rows({**emulated, "job_scale": 70.0, "uncounted_steps": 2})["emulation"]
        assert "70 times the job's device work" in scaled
        assert "2 first steps not emulated" in scaled

    def test_a_real_board_has_none_of_it(self, real):
        assert "mulat" not in printed(real).lower()
        assert "simulated" not in printed(real)


class TestFigures:
    def test_a_slowdown_is_held_against_the_budget(self, real):
        within = rows({**real, "slowdown": 0.08, "budget": 0.1})["slowdown"]
        assert within == "+8.0%, within the budget of 10.0%"
        assert "OVER the budget" in rows({**real, "slowdown": 0.101, "budget": 0.1})["slowdown"]

    def test_a_saving_comes_with_its_interval(self, real):
        summary = {**real, "saving": 0.25, "saving_ci95": [0.2, 0.3], "normalised_by": None}
        assert rows(summary)["saving"] == "25.0% (95 % interval 20.0% to 30.0%)"

    def test_a_saving_without_an_interval_is_not_yet_known(self, real):
        assert rows({**real, "saving": None, "saving_ci95": None})["saving"] == "not yet known"

    def test_energy_without_a_reference_stands_alone(self, real):
        row = rows({**real, "j_per_step": 12.0, "reference_j_per_step": None})
        assert row["energy per mini-batch"] == "12 J"

    def test_settings_beyond_the_first_few_are_summed(self, real):
        shares = {f"gpu {n}": share for n, share in enumerate([0.4, 0.2, 0.15, 0.1, 0.1, 0.05])}
        lines = rows({**real, "settings_time_share": shares})["settings (share of time)"]
        assert len(lines.splitlines()) == MOST_SETTINGS + 1
        assert lines.splitlines()[-1].split() == ["15.0%", "2", "others"]

    def test_the_board_left_alone_is_called_as_found(self, real):
        summary = {**real, "settings_time_share": {"gpu auto cpu auto emc auto": 1.0}}
        assert rows(summary)["settings (share of time)"] == "100.0%  as found"

    def test_a_guard_that_is_off_says_so(self, real):
        assert rows({**real, "interventions": {}})["guard"] == "off"
        acts = rows({**real, "interventions": {"budget": 3, "rate": 0}})["guard"]
        assert acts == "interventions: budget 3, rate 0"

    def test_the_governors_own_cost_is_there(self, real):
        assert "MB resident" in rows(real)["governor's own cost"]
        assert "ms a decision" in rows(real)["governor's own cost"]


class TestNothingKnown:
    def test_words_stand_where_figures_would(self, empty):
        table = rows(empty)
        assert table["energy per mini-batch (emulated)"] == f"not known: {empty['why_no_figures']}"
        assert "saving (emulated)" not in table
        assert "slowdown (emulated)" not in table
        assert "failed, exit code 3" in table["job"] or "exit code 3" in table["job"]
        assert "None" not in printed(empty)
        assert "nan" not in printed(empty)

    def test_a_guard_that_never_had_to_rule_is_not_called_off(self, empty):
        assert "guard" not in rows(empty)


@pytest.mark.parametrize("width", [40, 80, 200])
def test_no_width_loses_a_figure(emulated, width):
    squeezed = "".join(printed(emulated, width).replace("│", "").split())
    assert f"{emulated['windows']}decided" in squeezed
    assert f"{emulated['j_per_step']:.3g}J" in squeezed
