"""The whole of ``rlgov run`` through the Jetson back-end against emulated kernel files."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.boards.test_emulate import needs_fuse
from tests.fakes.kills import _time_until, settable

pytestmark = [pytest.mark.slow, needs_fuse]

TINY = Path(__file__).parent / "jobs" / "tiny.py"
QUICK = (
    "window.min_steps=2",
    "window.min_seconds=0.2",
    "window.reference_windows=1",
    "settle_s=0.05",
    "policy=random",
)


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "mnt"
    folder.mkdir()
    command = [sys.executable, "-m", "rlgov", "emulate", "agx-orin-jp6", "--mount", str(folder)]
    server = subprocess.Popen([*command, f"out={tmp_path / 'emulate'}"], stdout=subprocess.PIPE)
    assert b"is at" in server.stdout.readline()
    yield folder
    server.terminate()
    server.communicate(timeout=20)
    assert server.returncode == 0


def start(root: Path, base: Path, steps: int) -> subprocess.Popen[bytes]:
    board = ["board=jetson", f"board.root={root}", f"out={base / 'out'}", *QUICK]
    job = ["--", sys.executable, str(TINY), "mount", str(steps)]
    env = {**os.environ, "RLGOV_STATE_DIR": str(base / "state"), "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        [sys.executable, "-m", "rlgov", "run", *board, *job],
        cwd=base,
        env=env,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def until_changed(process: subprocess.Popen[bytes], root: Path, before: object) -> None:
    while settable(root) == before:
        assert process.poll() is None, "the run ended before it had changed a clock"
        time.sleep(0.02)


@pytest.mark.parametrize("name", ["SIGKILL", "SIGSTOP", "SIGHUP"])
def test_a_killed_run_leaves_every_file_as_found(root: Path, tmp_path: Path, name: str) -> None:
    before = settable(root)
    run = start(root, tmp_path, 200_000)
    try:
        until_changed(run, root, before)
        run.send_signal(getattr(signal, name))
        assert _time_until(root, before) is not None
    finally:
        os.killpg(run.pid, signal.SIGKILL)  # the job too, which would go on
        run.wait()


def test_a_run_that_ends_well_does_so_too_and_meters(root: Path, tmp_path: Path) -> None:
    before = settable(root)
    run = start(root, tmp_path, 3_000)
    assert run.wait(timeout=200) == 0
    assert settable(root) == before
    assert json.loads((tmp_path / "state" / "lease.json").read_text())["returned"] is True
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert summary["windows"] > 0
