"""``rlgov run`` on real back-ends, over a tree of kernel files or none at all."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from rich.console import Console

from rlgov.boards.base import Setting
from rlgov.boards.jetson import JetsonBoard
from rlgov.boards.lease import Lease
from rlgov.boards.leasefile import LeaseFolder
from rlgov.cli.run_board import check_able, choose_board, real_spec
from rlgov.errors import BoardError, ConfigError
from tests.cli.conftest import Cli
from tests.cli.test_run import TINY, govern
from tests.fakes.jetsons import board_of
from tests.fakes.sysfs_tree import HWMON, KernelWriter, build, contents

QUICK = ("debug=quick", "settle_s=0", "audit_share=0.2")


@pytest.fixture(autouse=True)
def state_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A lease folder of the test's own."""
    folder = tmp_path / "state"
    monkeypatch.setenv("RLGOV_STATE_DIR", str(folder))
    return folder


def test_a_crashed_runs_clocks_are_not_taken_for_the_boards_limits(
    tmp_path: Path, state_dir: Path
) -> None:
    root = build(tmp_path / "tree", "agx-orin-jp6")
    before = contents(root)
    board = JetsonBoard(root, settle_s=0.0)
    folder = LeaseFolder(state_dir)
    (tmp_path / "first").mkdir()
    with Lease(board, tmp_path / "first", state_dir=state_dir):
        board.apply(Setting(gpu=306.0, cpu=115.2))
        record = folder.record()
        assert record is not None
        journal = folder.journal(record["run_id"])
        wreck, notes = contents(root), journal.read_bytes()
    # As after a power cut of governor and watcher together, minus the reboot.
    for name, data in wreck.items():
        (root / name).write_bytes(data)
    folder.write(record)
    journal.write_bytes(notes)
    assert contents(root) != before
    config = {"board": {"kind": "jetson", "root": str(root)}, "policy": "random", "seed": 1}
    found = choose_board(config, (), Console(quiet=True))
    assert [knob.ceiling_mhz for knob in found.knobs[:2]] == [1300.5, 2201.6]
    assert contents(root) == before


@pytest.mark.parametrize("name", ["nano-jp4", "agx-orin-jp6", "thor-jp7"])
def test_a_job_is_governed_through_the_jetson_back_end(tmp_path: Path, name: str) -> None:
    root = build(tmp_path / "tree", name)
    before = contents(root)
    done = govern(
        tmp_path / "run",
        *QUICK,
        "policy=random",
        "board=jetson",
        f"board.root={root}",
        "board.settle_s=0",
        job=[*TINY, "ok", "200"],
    )
    assert done.code == 0, done.err
    summary = done.summary
    assert summary["failure"] is None
    assert summary["emulated"] is False
    assert summary["governed_steps"] > 0
    assert summary["windows"] > 0
    assert "EMULATED" not in done.err
    assert summary["board_facts"]["files below"] == str(root)
    assert any("gpu" in words for words in map(str, summary["settings_time_share"]))
    assert contents(root) == before


def test_case_a16_a_second_governor_is_refused_before_its_job_starts(
    tmp_path: Path, state_dir: Path
) -> None:
    root = build(tmp_path / "tree", "agx-orin-jp6")
    marker = tmp_path / "the job ran"
    (tmp_path / "first").mkdir()
    board = JetsonBoard(root, settle_s=0.0)
    with Lease(board, tmp_path / "first", state_dir=state_dir):
        done = govern(
            tmp_path / "run",
            *QUICK,
            "policy=random",
            "board=jetson",
            f"board.root={root}",
            job=["touch", str(marker)],
        )
    assert done.code == 4
    assert "Traceback" not in done.err
    assert not marker.exists()


def test_auto_without_a_board_says_so_and_emulates(tmp_path: Path) -> None:
    done = govern(
        tmp_path / "run", *QUICK, "policy=as_found", "board=auto", f"board.root={tmp_path}",
        job=[*TINY, "ok", "20"],
    )  # fmt: skip
    assert done.code == 0, done.err
    assert "NO REAL BOARD" in done.err
    assert "jetson_agx_orin_64gb" in done.err
    assert done.summary["emulated"] is True


def test_auto_with_require_real_fails_before_the_job(tmp_path: Path, cli: Cli) -> None:
    marker = tmp_path / "ran"
    job = [sys.executable, "-c", f"open({str(marker)!r}, 'w')"]
    words = ("run", "board=auto", "board.require=real", f"board.root={tmp_path}", "out=r")
    result = cli(*words, "--", *job)
    assert result.code == 3
    assert "board.require=real" in result.err
    assert not marker.exists()


def test_case_a01_and_a09_nothing_to_set_offers_to_watch(tmp_path: Path) -> None:
    """Case A01, A09: found before the first step, with a policy that needs no rights."""
    build(tmp_path, "agx-orin-jp6")
    writer = KernelWriter(tmp_path, "agx-orin-jp6")
    writer.refusal = lambda _key: PermissionError(13, "Permission denied")  # type: ignore[method-assign]
    board = board_of(tmp_path, "agx-orin-jp6", writer)
    with pytest.raises(BoardError, match="policy=as_found") as caught:
        check_able(board, "ppo")
    assert caught.value.exit_code == 3
    assert "sudo" in str(caught.value)
    check_able(board, "as_found")
    assert board.read().total_w is not None


def test_case_t13_no_power_is_never_learnt_from(tmp_path: Path) -> None:
    build(tmp_path, "agx-orin-jp6")
    for chip in (2, 3):
        (tmp_path / HWMON.lstrip("/") / f"hwmon{chip}" / "name").write_text("lm90\n")
    board = board_of(tmp_path, "agx-orin-jp6")
    assert board.read().total_w is None
    assert board.rails == ()
    with pytest.raises(BoardError, match="tells no power"):
        check_able(board, "ppo")
    check_able(board, "as_found")


def test_a_key_that_a_real_board_lacks_is_refused() -> None:
    with pytest.raises(ConfigError, match="rooot"):
        real_spec({"kind": "linux", "rooot": "/"})
    with pytest.raises(ConfigError, match="neither any nor real"):
        real_spec({"kind": "auto", "require": "maybe"})


def test_training_on_a_real_board_is_refused_in_words(cli: Cli) -> None:
    result = cli("train", "board=jetson", "out=t")
    assert result.code == 2
    assert "a twin is needed here" in result.err


def test_the_configs_of_real_boards_are_listed(cli: Cli) -> None:
    assert cli("boards", "out=b").code == 0
    boards = {b["name"] for b in json.loads((Path("b") / "summary.json").read_text())["boards"]}
    assert boards >= {"auto", "jetson", "nvml", "linux"}
