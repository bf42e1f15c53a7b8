"""The lease of a board whose clocks outlive us: lock, journal, repair, other people's writes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from rlgov.boards import leasefile, process
from rlgov.boards.base import Setting
from rlgov.boards.lease import Lease, refuse_if_held
from rlgov.boards.leasefile import LeaseFolder, default_state_dir
from rlgov.boards.repair import repair
from rlgov.errors import LeaseError
from tests.fakes.tree_board import CPU, FILES, GPU, TreeBoard, contents, make_tree

LOW = Setting(gpu=306.0, cpu=729.6)
MIDDLE = Setting(gpu=612.0, cpu=1497.6)


class Place:
    """A tree, a lease folder and a run folder."""

    def __init__(self, base: Path) -> None:
        self.root = make_tree(base / "root")
        self.state = base / "state"
        self.run = base / "run"
        self.run.mkdir()
        self.before = contents(self.root)
        self.folder = LeaseFolder(self.state)

    def lease(self, **more) -> tuple[TreeBoard, Lease]:
        board = TreeBoard(self.root)
        return board, Lease(board, self.run, state_dir=self.state, **more)

    def file(self, name: str) -> Path:
        return self.root / name.lstrip("/")

    def crash(self) -> dict:
        """Leave the tree as a governor does that was killed together with its watcher."""
        board, lease = self.lease()
        with lease:
            board.apply(MIDDLE)
            record = self.folder.record()
            journal = self.folder.journal(record["run_id"])
            wreck, notes = contents(self.root), journal.read_bytes()
        for name, (data, _) in wreck.items():
            (self.root / name).write_bytes(data)
        self.folder.write(record)
        journal.write_bytes(notes)
        return record


@pytest.fixture
def place(tmp_path):
    return Place(tmp_path)


def test_an_orderly_end_gives_every_byte_back(place):
    board, lease = place.lease()
    with lease:
        board.apply(MIDDLE)
        assert contents(place.root) != place.before
    assert contents(place.root) == place.before
    assert place.folder.record()["returned"] is True
    assert json.loads((place.run / "lease.json").read_text())["returned"] is True


def test_each_write_is_in_the_journal_before_it_is_made(place):
    board, lease = place.lease()
    with lease:
        board.apply(MIDDLE)
        board.apply(LOW)
        written = place.folder.written(place.folder.record()["run_id"])
    gpu = str(place.file(f"{GPU}/max_freq"))
    assert written[gpu] == ["612000000\n", "306000000\n"]
    assert not list(place.state.glob("writes-*"))


def test_a_second_governor_is_refused_while_the_first_lives(place):
    board, lease = place.lease()
    _, second = place.lease()
    with lease:
        board.apply(MIDDLE)
        during = contents(place.root)
        with pytest.raises(LeaseError, match=f"process {os.getpid()}") as caught, second:
            pass
        assert contents(place.root) == during
    assert caught.value.exit_code == 4
    with second:
        pass  # the lock is free again


def test_a_held_board_is_refused_before_a_job_is_started(place):
    board, lease = place.lease()
    refuse_if_held(board, place.state)  # no lease was ever taken here
    with lease, pytest.raises(LeaseError, match="held by another governor"):
        refuse_if_held(board, place.state)
    refuse_if_held(board, place.state)
    with lease:
        pass  # asking has left nothing behind


DEAD = 2**22 + 1  # above the kernel's largest process id


@pytest.mark.parametrize("owner", ["dead", "reused", "garbage"])
def test_a_lock_left_behind_is_taken_over_with_a_warning(place, caplog, owner):
    place.state.mkdir()
    content = {
        "dead": json.dumps({"pid": DEAD, "start": "1"}),
        "reused": json.dumps({"pid": os.getppid(), "start": "1"}),
        "garbage": "{",
    }[owner]
    (place.state / "lock").write_text(content)
    board, lease = place.lease()
    with lease:
        board.apply(LOW)
    assert contents(place.root) == place.before
    assert ("taken over" in caplog.text) is (owner != "garbage")


def test_without_kernel_locks_the_owner_decides(place, monkeypatch):
    def no_locks(*_):
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr("rlgov.boards.lock.fcntl.flock", no_locks)
    _, lease = place.lease()
    _, second = place.lease()
    with lease, pytest.raises(LeaseError, match="held by another governor"), second:
        pass


def test_a_folder_that_takes_no_file_is_a_clear_error(place):
    place.state.write_text("a file where a folder should be")
    board, lease = place.lease()
    with pytest.raises(LeaseError, match=r"no clock was changed.*RLGOV_STATE_DIR") as caught, lease:
        board.apply(LOW)
    assert caught.value.exit_code == 4
    assert contents(place.root) == place.before


def test_a_run_folder_that_takes_no_file_frees_the_board_again(place):
    board = TreeBoard(place.root)
    with (
        pytest.raises(LeaseError, match="no clock was changed"),
        Lease(board, place.run / "gone", state_dir=place.state),
    ):
        pass
    assert place.folder.record()["returned"] is True
    _, second = place.lease()
    with second:
        pass


def test_a_start_after_a_crash_restores_first(place, caplog):
    place.crash()
    assert contents(place.root) != place.before
    board, lease = place.lease()
    with lease:
        assert contents(place.root) == place.before
        assert place.folder.record()["values"] == FILES  # not the crashed run's clocks
        board.apply(LOW)
    assert contents(place.root) == place.before
    assert "did not end well" in caplog.text


def test_a_lease_of_an_earlier_boot_is_put_aside_and_never_written(place):
    record = place.crash()
    place.folder.write({**record, "boot_id": "another boot"})
    fresh = contents(place.root)  # what the kernel came up with
    text = repair(place.folder, None)
    assert "earlier boot" in text
    assert contents(place.root) == fresh
    assert place.folder.record() is None
    assert list(place.state.glob("archived-*.json"))


def test_repair_is_done_once(place):
    place.crash()
    assert repair(place.folder, None) == "4 files were given their prior value"
    assert repair(place.folder, None) is None
    assert contents(place.root) == place.before


def test_a_repair_that_is_refused_says_what_and_leaves_the_lease(place):
    place.crash()
    place.file(f"{GPU}/max_freq").unlink()
    place.file(f"{GPU}/max_freq").mkdir()
    with pytest.raises(LeaseError, match=r"max_freq: Is a directory.*rlgov restore"):
        repair(place.folder, None)
    assert place.folder.record()["returned"] is False


@pytest.mark.parametrize("text", ["{", "[]", '{"values": 3}'])
def test_a_damaged_lease_stops_the_start(place, text):
    place.state.mkdir()
    (place.state / "lease.json").write_text(text)
    _, lease = place.lease()
    with pytest.raises(LeaseError, match="then remove that file"), lease:
        pass


def test_what_somebody_else_wrote_is_left(place, caplog):
    board, lease = place.lease()
    theirs = place.file(f"{CPU}/scaling_max_freq")
    with lease:
        board.apply(MIDDLE)
        theirs.write_text("1804800\n")
    assert theirs.read_text() == "1804800\n"
    assert lease.kept == {str(theirs): "1804800"}
    assert place.file(f"{GPU}/max_freq").read_text() == FILES[f"{GPU}/max_freq"]
    assert "set to 1804800 by somebody else" in caplog.text


def test_a_file_that_we_never_wrote_is_left(place):
    board, lease = place.lease()
    theirs = place.file(f"{CPU}/scaling_max_freq")
    with lease:
        board.apply(Setting(gpu=612.0))
        theirs.write_text("729600\n")
    assert theirs.read_text() == "729600\n"


def test_overwrite_gives_back_all_the_same(place):
    board, lease = place.lease(overwrite=True)
    with lease:
        board.apply(MIDDLE)
        place.file(f"{CPU}/scaling_max_freq").write_text("1804800\n")
    assert contents(place.root) == place.before


def test_a_board_without_a_journal_gets_everything_back(place):
    class Silent(TreeBoard):
        @property
        def tree(self):
            raise AttributeError

        @tree.setter
        def tree(self, value):
            self.hidden = value

        def capture(self):
            state = TreeBoard.__new__(TreeBoard)
            state.tree = self.hidden
            values = TreeBoard.capture(state).values
            return type(TreeBoard.capture(state))(
                self.name, {str(self.hidden.path(k)): v for k, v in values.items()}
            )

        def restore(self, state):
            for name, text in state.values.items():
                Path(name).write_text(text)

    board = Silent(place.root)
    with Lease(board, place.run, state_dir=place.state):
        place.file(f"{GPU}/min_freq").write_text("612000000\n")
        assert place.folder.record()["journal"] is False
    assert contents(place.root) == place.before


def test_where_the_lease_lies(monkeypatch, tmp_path):
    assert default_state_dir({"RLGOV_STATE_DIR": "/x/y"}) == Path("/x/y")
    monkeypatch.setattr(leasefile.os, "geteuid", lambda: 0)
    monkeypatch.setattr(leasefile.os, "access", lambda *_: True)
    assert default_state_dir({}) == Path("/run/rlgov")
    monkeypatch.setattr(leasefile.os, "geteuid", lambda: 1000)
    assert default_state_dir({"XDG_RUNTIME_DIR": "/run/user/7"}) == Path("/run/user/7/rlgov")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert default_state_dir({}) == tmp_path / ".local" / "state" / "rlgov"


def test_a_process_is_its_id_and_its_start():
    pid = os.getpid()
    start = process.start_time(pid)
    assert process.alive(pid, start)
    assert not process.alive(pid, "1")
    assert not process.alive(DEAD, "1")
    assert process.start_time(DEAD) == ""
    child = subprocess.Popen([sys.executable, "-c", "pass"])
    began = process.start_time(child.pid)
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)  # a zombie until it is waited for
    assert not process.alive(child.pid, began)
    child.wait()
