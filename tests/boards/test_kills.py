"""A sample of ``scripts/kill_test.py``; the whole two hundred are run by hand."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.fakes.kills import REPO, Kill, _family, _time_until, carry_out, draw
from tests.fakes.tree_board import contents, make_tree


@pytest.mark.parametrize("kill", draw(10, seed=5), ids=lambda k: "-".join(k.victims + k.signals))
def test_every_file_is_as_found_within_two_seconds(kill: Kill, tmp_path: Path) -> None:
    fate = carry_out(kill, tmp_path)
    assert fate.repaired
    assert kill.apart or fate.back_s is not None


def test_governor_and_watcher_killed_together_are_repaired(tmp_path: Path) -> None:
    assert carry_out(Kill(("governor", "watcher"), ("KILL", "KILL"), 0.8, 1), tmp_path).repaired


def test_a_hang_trips_the_heartbeat(tmp_path: Path) -> None:
    fate = carry_out(Kill(("governor",), ("STOP",), 0.8, 2), tmp_path)
    assert fate.back_s is not None


def test_the_watcher_is_small_and_knows_no_numpy(tmp_path: Path) -> None:
    root, state, run = make_tree(tmp_path / "root"), tmp_path / "state", tmp_path / "run"
    run.mkdir()
    before = contents(root)
    words = [str(root), str(state), str(run), "1", "tree"]
    command = [sys.executable, "-m", "tests.fakes.governed", *words]
    governor = subprocess.Popen(command, cwd=REPO)
    try:
        while "watcher" not in _family(governor.pid) or contents(root) == before:
            time.sleep(0.01)
            assert governor.poll() is None
        watcher = _family(governor.pid)["watcher"]
        mapped = Path(f"/proc/{watcher}/maps").read_text()
        assert "python" in mapped
        assert "numpy" not in mapped
        status = dict(
            line.split(":", 1) for line in Path(f"/proc/{watcher}/status").read_text().splitlines()
        )
        assert int(status["VmRSS"].split()[0]) < 30_000
        assert os.getsid(watcher) == watcher != os.getsid(governor.pid)
    finally:
        governor.kill()
        governor.wait()
    assert _time_until(root, before) is not None
    assert json.loads((state / "lease.json").read_text())["returned_by"] == "watcher"
