from __future__ import annotations

import csv
import json
import signal
from pathlib import Path

import pytest

from rlgov.cli.command import Invocation
from rlgov.cli.main import terminate
from tests.cli.probe import Cli, Probe, refuse_board


def _status(path: str) -> str:
    return str(json.loads((Path(path) / "status.json").read_text())["status"])


def test_a_sweep_runs_the_product_and_compares(ask: Cli, probe: Probe) -> None:
    result = ask("-m", "budget=0.1,0.2", "board=alpha,beta", "out=s")
    assert result.code == 0
    assert [(r.config["budget"], r.config["board"]["name"]) for r in probe.seen] == [
        (0.1, "alpha"),
        (0.1, "beta"),
        (0.2, "alpha"),
        (0.2, "beta"),
    ]
    with (Path("s") / "sweep.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["budget"] for row in rows] == ["0.1", "0.1", "0.2", "0.2"]
    assert float(rows[2]["saving"]) > float(rows[1]["saving"])
    assert rows[0]["inner.x"] == "1"
    assert "saving" in result.out
    assert json.loads((Path("s") / "summary.json").read_text())["completed"] == 4
    assert _status("s/3") == "completed"


def test_a_failing_run_is_shown_at_once_and_the_others_go_on(ask: Cli, probe: Probe) -> None:
    def fail_second(invocation: Invocation) -> int:
        return refuse_board(invocation) if invocation.config["budget"] == 2 else 0

    probe.behave = fail_second
    result = ask("-m", "budget=1,2,3", "out=s")
    assert result.code == 3
    assert "run 1 failed: the board says no" in result.err
    assert [_status(f"s/{n}") for n in range(3)] == ["completed", "failed", "completed"]
    assert _status("s") == "failed"
    summary = json.loads((Path("s") / "1" / "summary.json").read_text())
    assert summary["error"] == "the board says no"
    assert json.loads((Path("s") / "summary.json").read_text())["failed"] == [1]


def test_a_bug_in_one_run_does_not_end_the_sweep(ask: Cli, probe: Probe) -> None:
    def crash_first(invocation: Invocation) -> int:
        if invocation.config["budget"] == 1:
            raise ZeroDivisionError("a bug")
        return 0

    probe.behave = crash_first
    result = ask("-m", "budget=1,2", "out=s")
    assert result.code == 1
    assert "ZeroDivisionError" in result.err
    assert len(probe.seen) == 2


def test_an_exit_code_of_the_job_counts_as_a_failure(ask: Cli, probe: Probe) -> None:
    probe.behave = lambda _: 7
    result = ask("-m", "budget=1,2", "out=s")
    assert result.code == 7
    assert "run 0 ended with exit code 7" in result.err


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_interrupt_ends_the_sweep(
    number: signal.Signals, code: int, ask: Cli, probe: Probe, request: pytest.FixtureRequest
) -> None:
    before = signal.signal(signal.SIGTERM, terminate)
    request.addfinalizer(lambda: signal.signal(signal.SIGTERM, before))

    def interrupt_second(invocation: Invocation) -> int:
        if invocation.config["budget"] == 2:
            signal.raise_signal(number)
        return 0

    probe.behave = interrupt_second
    result = ask("-m", "budget=1,2,3", "out=s")
    assert result.code == code
    assert len(probe.seen) == 2
    assert _status("s/1") == "interrupted"
    assert _status("s") == "interrupted"
    assert not (Path("s") / "2").exists()
    assert json.loads((Path("s") / "summary.json").read_text())["not_started"] == 1


def test_an_existing_sweep_is_not_overwritten(ask: Cli, probe: Probe) -> None:
    assert ask("-m", "budget=1,2", "out=s").code == 0
    before = (Path("s") / "sweep.csv").read_bytes()
    assert ask("-m", "budget=3,4", "out=s").code == 2
    assert (Path("s") / "sweep.csv").read_bytes() == before
    assert ask("-m", "budget=3,4,5", "out=s", "overwrite=true").code == 0
    assert ask("-m", "budget=3,4,5", "out=s", "resume=true").code == 0
    assert probe.seen[-1].folder.resumed
