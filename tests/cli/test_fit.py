from __future__ import annotations

import json
from pathlib import Path

import pytest

from rlgov.boards.twin.loadfile import read_job
from rlgov.traces.profiles import write_profile
from rlgov.traces.row import TraceRow
from rlgov.traces.tables import write_trace
from tests.cli.probe import Cli
from tests.traces.fitting import board, job, other, profile

ORIN = board("jetson_agx_orin_64gb")


@pytest.fixture
def measured(cli: Cli) -> Path:
    settings = [{"gpu_mhz": f} for f in ORIN.knobs["gpu"].levels_mhz]
    path = Path("my profile.csv")
    write_profile(profile(other(ORIN), job(), settings, noise=0.003, rails=True), path)
    return path


def test_a_profile_becomes_a_board_and_a_job(cli: Cli, measured: Path) -> None:
    done = cli("fit", f"profile={measured}", "ensemble=2", "out=fit")
    assert (done.code, done.err) == (0, "")
    assert "rail vdd_gpu_soc" in done.out
    assert "leave open" in done.out
    summary = json.loads(Path("fit/summary.json").read_text())
    assert summary["worst_rms"] < 0.01
    assert summary["held_out_worst_rms"] < 0.02
    assert summary["ensemble"] == 2
    assert read_job(Path("fit/job.yaml"))[0] == "job"

    # The board's file is a board for every command that takes one.
    again = cli("fit", f"profile={measured}", "board=fit/board.yaml", "ensemble=0", "out=again")
    assert again.code == 0
    assert json.loads(Path("again/summary.json").read_text())["board"] == summary["board"]


def test_a_runs_trace_will_do(cli: Cli, measured: Path) -> None:
    settings = [{"gpu_mhz": f} for f in (306.0, 612.0, 918.0, 1300.5)]
    rows = [
        TraceRow(
            "window",
            float(i),
            values={
                "gpu_mhz_set": row.gpu_mhz,
                "step_time_s": row.step_time_s,
                "energy_per_step_j": row.energy_per_step_j,
                "steps": 20,
            },
        )
        for i, row in enumerate(profile(other(ORIN), job(), settings).settings())
    ]
    Path("run").mkdir()
    write_trace(rows, Path("run/trace.csv"))
    done = cli("fit", "trace=run", "ensemble=0", "out=fit")
    assert done.code == 0
    assert json.loads(Path("fit/summary.json").read_text())["worst_rms"] < 0.01


def test_exactly_one_source_is_wanted(cli: Cli, measured: Path) -> None:
    for words in ((), (f"profile={measured}", "trace=run")):
        done = cli("fit", *words, "out=fit", "overwrite=true")
        assert done.code != 0
        assert "one of profile=FILE and trace=DIR" in done.err


def test_a_missing_file_is_named(cli: Cli) -> None:
    done = cli("fit", "profile=absent.csv", "out=fit")
    assert done.code != 0
    assert "absent.csv" in done.err
