from __future__ import annotations

import json
from pathlib import Path

import pytest

from rlgov.boards.base import AS_FOUND, BoardState, Setting
from rlgov.boards.lease import LEASE_FILE, Lease
from rlgov.boards.twin.board import TwinBoard
from rlgov.errors import BoardError
from tests.boards.twin.conftest import spec_of

LOW = Setting(gpu=306.0, cpu=729.6, emc=2133.0)


class Watched(TwinBoard):
    """Notes what lay on disk at each write, and every restore."""

    def __init__(self, lease: Path) -> None:
        super().__init__(spec_of("jetson_agx_orin_64gb"))
        self.lease = lease
        self.on_disk: list[dict] = []
        self.restored: list[BoardState] = []

    def apply(self, setting: Setting) -> Setting:
        self.on_disk.append(json.loads(self.lease.read_text()))
        return super().apply(setting)

    def restore(self, state: BoardState) -> None:
        self.restored.append(state)
        super().restore(state)


@pytest.fixture
def board(tmp_path):
    return Watched(tmp_path / LEASE_FILE)


def record(folder: Path) -> dict:
    return json.loads((folder / LEASE_FILE).read_text())


def test_the_state_lies_on_disk_before_the_first_write(board, tmp_path):
    before = board.capture()
    with Lease(board, tmp_path):
        board.apply(LOW)
    assert board.on_disk[0]["values"] == dict(before.values)
    assert board.on_disk[0]["board"] == board.name
    assert board.on_disk[0]["returned"] is False


def test_a_normal_end_gives_the_board_back(board, tmp_path):
    before = board.capture()
    with Lease(board, tmp_path):
        board.apply(LOW)
    assert board.capture() == before
    assert record(tmp_path)["returned"] is True


@pytest.mark.parametrize("error", [ValueError, BoardError, KeyboardInterrupt, SystemExit])
def test_so_does_an_end_by_exception_which_goes_on(board, tmp_path, error):
    before = board.capture()

    def fail() -> None:
        with Lease(board, tmp_path):
            board.apply(LOW)
            raise error

    with pytest.raises(error):
        fail()
    assert board.capture() == before
    assert record(tmp_path)["returned"] is True


def test_prior_values_come_back_not_defaults(board, tmp_path):
    TwinBoard.apply(board, Setting(gpu=612.0))  # by whoever had it before
    with Lease(board, tmp_path):
        board.apply(AS_FOUND)
        board.apply(LOW)
    assert board.capture().values["gpu"] == "612.0"
    assert board.capture().values["cpu"] == ""


def test_a_second_give_back_does_nothing(board, tmp_path):
    with Lease(board, tmp_path) as lease:
        lease.give_back()
        TwinBoard.apply(board, LOW)  # the next owner's
    assert board.capture().values["gpu"] == "306.0"
    assert len(board.restored) == 1


def test_a_board_whose_state_cannot_be_saved_is_not_taken(board, tmp_path):
    entered = False
    with pytest.raises(OSError, match="No such file"), Lease(board, tmp_path / "gone"):
        entered = True
    assert not entered


def test_a_folder_that_vanished_does_not_hold_up_the_board(board, tmp_path, caplog):
    folder = tmp_path / "run"
    folder.mkdir()
    board.lease = folder / LEASE_FILE
    before = board.capture()
    with Lease(board, folder):
        board.apply(LOW)
        (folder / LEASE_FILE).unlink()
        folder.rmdir()
    assert board.capture() == before
    assert "could not be recorded" in caplog.text
