from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from rlgov.boards import checkup, process
from rlgov.boards.checkup import Checkup, examine, examine_lease, examine_machine
from rlgov.boards.lease import Lease
from rlgov.boards.leasefile import LeaseFolder
from rlgov.cli.main import main
from tests.cli.probe import Cli
from tests.fakes.tree_board import TreeBoard, contents, make_tree

BOARD = "board=jetson_agx_orin_64gb"


def lines(checks) -> dict[str, checkup.Check]:
    return {check.topic: check for check in checks}


def test_an_emulated_board_is_ready(cli: Cli) -> None:
    result = cli("doctor", BOARD, "out=d")
    assert result.code == 0
    assert "11 levels, 306 to 1300.5 MHz" in result.out
    assert "in total; VDD_GPU_SOC" in result.out
    assert "sum_of_rails" in result.out
    assert result.out.rstrip().endswith("ready")
    assert json.loads(Path("d/summary.json").read_text())["verdict"] == "ready"


def test_json_is_json_and_says_the_same(cli: Cli) -> None:
    data = json.loads(cli("doctor", BOARD, "--json").out)
    assert data["exit_code"] == 0
    gpu = next(c for c in data["checks"] if c["topic"] == "knob gpu")
    assert gpu["values"]["levels_mhz"][-1] == 1300.5


def test_a_machine_with_nothing_is_not_usable_and_says_why(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "bare" / "sys").mkdir(parents=True)
    result = cli("doctor", f"root={tmp_path / 'bare'}", f"state_dir={tmp_path / 'state'}")
    assert result.code == 2
    assert "this is no Jetson" in result.out
    assert "not usable" in result.out


def test_a_root_that_is_no_folder(cli: Cli) -> None:
    result = cli("doctor", "root=nowhere")
    assert result.code == 2
    assert "is no folder" in result.err


def test_a_line_that_fails_says_what_it_needs(tmp_path: Path) -> None:
    board = TreeBoard(make_tree(tmp_path))
    board.refused = {"emc": "needs debugfs"}
    found = lines(examine(board))
    assert found["knob emc"].status == "limited"
    assert found["knob emc"].needs == "needs debugfs"
    assert found["knob gpu"].status == "ok"
    assert found["power"].status == "failing"
    assert all(check.needs for check in found.values() if check.status != "ok")
    assert Checkup("tree", tuple(found.values())).code == 2


def test_the_verdict_is_that_of_the_worst_line() -> None:
    ok, limited = checkup.Check("a", "ok", ""), checkup.Check("b", "limited", "", "x")
    assert Checkup("t", (ok,)).code == 0
    assert Checkup("t", (ok, limited)).code == 1


def test_what_a_run_left_behind(tmp_path: Path) -> None:
    folder = LeaseFolder(tmp_path / "state")
    assert lines(examine_lease(folder))["lease"].status == "ok"
    board = TreeBoard(make_tree(tmp_path / "root"))
    with Lease(board, tmp_path, state_dir=folder.path):
        assert "a governor holds" in lines(examine_lease(folder))["lease"].text
        record = folder.record()
    folder.write({**record, "pid": 2**22 + 1})
    assert lines(examine_lease(folder))["lease"].needs == "rlgov restore"
    folder.write({**record, "boot_id": "another"})
    assert lines(examine_lease(folder))["lease"].status == "ok"
    (folder.path / "lease.json").write_text("{")
    assert lines(examine_lease(folder))["lease"].status == "failing"


def test_others_who_write_memory_and_battery(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("SSH_CONNECTION", "1 2 3 4")
    monkeypatch.delenv("TMUX", raising=False)
    monkeypatch.delenv("STY", raising=False)
    (tmp_path / "proc/9").mkdir(parents=True)
    (tmp_path / "proc/9/cmdline").write_bytes(b"/usr/sbin/tlp\0start\0")
    (tmp_path / "proc/meminfo").write_text("MemTotal: 4000000 kB\nMemAvailable: 100000 kB\n")
    battery = tmp_path / "sys/class/power_supply/BAT0"
    battery.mkdir(parents=True)
    (battery / "type").write_text("Battery\n")
    (battery / "status").write_text("Discharging\n")
    found = lines(examine_machine(tmp_path, tmp_path / "proc"))
    assert found["conflicts"].needs.startswith("stop it for the run")
    assert found["memory"].status == "limited"
    assert found["supply"].status == "limited"
    assert "tmux" in found["session"].text


def test_without_root_the_rights_say_how(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(checkup.os, "geteuid", lambda: 1000)
    found = lines(examine_machine(tmp_path, process.PROC))
    assert found["rights"].needs.startswith("sudo")
    assert found["sys"].needs == "mount it: -v /sys:/sys"


class TestRestore:
    @pytest.fixture
    def wreck(self, tmp_path: Path):
        """A tree and the lease of a governor that was killed with its watcher."""
        root, state = make_tree(tmp_path / "root"), tmp_path / "state"
        before = contents(root)
        folder = LeaseFolder(state)
        board = TreeBoard(root)
        with Lease(board, tmp_path, state_dir=state):
            record = folder.record()
        low = root / "sys/class/devfreq/17000000.gpu/max_freq"
        low.write_text("306000000\n")
        folder.write({**record, "returned": False, "pid": 2**22 + 1})
        folder.journal(record["run_id"]).write_text(json.dumps([str(low), "306000000\n"]) + "\n")
        return root, state, before, low

    def test_it_gives_back_once(self, cli: Cli, wreck) -> None:
        root, state, before, _ = wreck
        result = cli("restore", f"state_dir={state}", "out=r")
        assert result.code == 0
        assert "1 files were given their prior value" in result.out
        assert contents(root) == before
        assert "nothing to give back" in cli("restore", f"state_dir={state}").out

    def test_what_somebody_else_set_is_kept_unless_asked(self, cli: Cli, wreck) -> None:
        root, state, before, low = wreck
        record = LeaseFolder(state).record()
        low.write_text("408000000\n")
        result = cli("restore", f"state_dir={state}")
        assert "holds 408000000, set by somebody else" in result.out
        assert low.read_text() == "408000000\n"
        LeaseFolder(state).write(record)
        assert cli("restore", f"state_dir={state}", "foreign=overwrite").code == 0
        assert contents(root) == before

    def test_it_refuses_while_a_governor_lives(self, cli: Cli, wreck, tmp_path: Path) -> None:
        _, state, _, _ = wreck
        with Lease(TreeBoard(make_tree(tmp_path / "other")), tmp_path, state_dir=state):
            result = cli("restore", f"state_dir={state}")
        assert result.code == 4
        assert f"process {os.getpid()}" in result.err

    def test_a_board_that_cannot_be_opened_is_named(self, cli: Cli, wreck) -> None:
        _, state, _, _ = wreck
        folder = LeaseFolder(state)
        record = folder.record()
        folder.write({**record, "board": "nvml", "values": {"GPU-1/gpu": "reset"}})
        result = cli("restore", f"state_dir={state}")
        assert result.code == 4
        assert "board nvml" in result.err

    def test_no_folder_is_nothing_to_do(self, cli: Cli, tmp_path: Path) -> None:
        assert main(["restore", f"state_dir={tmp_path / 'none'}", f"out={tmp_path / 'o'}"]) == 0
