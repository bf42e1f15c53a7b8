from __future__ import annotations

import sys
import threading
from pathlib import Path
from types import ModuleType

import pytest

from rlgov.boards.jetson import JetsonBoard
from rlgov.boards.linux import LinuxBoard
from rlgov.boards.nvml import NvmlBoard
from rlgov.boards.nvml_device import NvmlDevice, NvmlLoad
from rlgov.boards.select import BoardSpec, Opener, RealBoard, open_board, select
from rlgov.errors import BoardError, ConfigError, NotSupportedError
from tests.fakes.jtop import Service
from tests.fakes.jtop import sample as jtop_sample
from tests.fakes.linux_tree import host
from tests.fakes.pynvml import Gpu, PyNvml
from tests.fakes.sysfs_tree import KernelWriter, build

UUID = "GPU-aaaa1111"


class Locked(KernelWriter):
    """A kernel that lets nobody write."""

    def refusal(self, key: str) -> OSError | None:
        return PermissionError(13, "Permission denied")


def machine(root: Path, lib: PyNvml | None, writer: KernelWriter | None = None) -> Opener:
    """Opens back-ends on a machine with those files and that library."""

    def opener(spec: BoardSpec) -> RealBoard:
        if spec.kind == "jetson":
            return JetsonBoard(root, writer, settle_s=0.0, sleep=lambda _s: None)
        if spec.kind == "linux":
            return LinuxBoard(root, writer, settle_s=0.0)
        if lib is None:
            raise NotSupportedError("NVML needs: pip install 'rlgov[nvml]'")
        return NvmlBoard(lib, "0", settle_s=0.0)

    return opener


AUTO = BoardSpec("auto")


def test_case_t21_a_jetsons_files_win_over_a_deaf_nvml(tmp_path: Path) -> None:
    """Case T21: JetPack 7.2 on Orin, where NVML loads and answers nothing."""
    build(tmp_path, "orin-jp7")
    deaf = PyNvml([Gpu(UUID)], deaf=True)
    choice = select(AUTO, machine(tmp_path, deaf))
    assert choice.board is not None
    assert choice.board.kind == "jetson"
    assert "chose jetson" in choice.why


def test_case_t21_a_deaf_nvml_is_passed_over_for_what_works(tmp_path: Path) -> None:
    deaf = PyNvml([Gpu(UUID)], deaf=True)
    choice = select(AUTO, machine(host(tmp_path), deaf))
    assert choice.board is not None
    assert choice.board.kind == "linux"
    assert "none tells power" in choice.tried["nvml"]
    assert "none tells power" in choice.why


def test_a_desktop_with_a_gpu_is_nvml(tmp_path: Path) -> None:
    choice = select(AUTO, machine(host(tmp_path), PyNvml([Gpu(UUID)])))
    assert choice.board is not None
    assert choice.board.kind == "nvml"
    assert "gpu (4 levels)" in choice.why
    assert "no Jetson" in choice.why


def test_thors_load_comes_from_nvml(tmp_path: Path) -> None:
    build(tmp_path, "thor-jp7")
    lib = PyNvml([Gpu(UUID, util=(97, 0))])
    more = [NvmlLoad(NvmlDevice(lib, lib.gpus[0], 0))]
    board = JetsonBoard(tmp_path, more=more, settle_s=0.0, sleep=lambda _s: None)
    reading = board.read()
    assert reading.utilisation["gpu"] == pytest.approx(0.97)
    assert "gpu load" not in reading.missing


def test_jtop_is_asked_for_by_name_and_let_go_with_the_board(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build(tmp_path, "thor-jp7")
    fake = ModuleType("jtop")
    service = Service([jtop_sample()])
    monkeypatch.setattr(fake, "jtop", service, raising=False)
    monkeypatch.setitem(sys.modules, "jtop", fake)
    board = open_board(BoardSpec("jetson", root=str(tmp_path), settle_s=0.0, jtop=True))
    threads = [t for t in threading.enumerate() if t.name == "rlgov-jtop"]
    assert len(threads) == 1
    board.close()
    threads[0].join(30.0)
    assert not threads[0].is_alive()


def test_nothing_to_set_says_why_of_every_kind(tmp_path: Path) -> None:
    build(tmp_path, "agx-orin-jp6")
    choice = select(AUTO, machine(tmp_path, None, Locked(tmp_path, "agx-orin-jp6")))
    assert choice.board is None
    assert set(choice.tried) == {"jetson", "nvml", "linux"}
    assert "permission denied" in choice.tried["jetson"]
    assert "rlgov[nvml]" in choice.why


def test_require_real_makes_that_an_error(tmp_path: Path) -> None:
    with pytest.raises(BoardError, match=r"board.require=real.*no Jetson"):
        select(BoardSpec("auto", require="real"), machine(tmp_path, None))


def test_a_named_board_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(NotSupportedError, match="no Jetson"):
        select(BoardSpec("jetson"), machine(tmp_path, None))


def test_a_named_board_is_taken_even_if_nothing_can_be_set(tmp_path: Path) -> None:
    build(tmp_path, "agx-orin-jp6")
    locked = Locked(tmp_path, "agx-orin-jp6")
    choice = select(BoardSpec("jetson"), machine(tmp_path, None, locked))
    assert choice.board is not None
    assert not choice.board.knobs


@pytest.mark.parametrize(
    "values",
    [{"kind": "magic"}, {"kind": "auto", "require": "x"}, {"kind": "linux", "period_s": 0.0}],
)
def test_nonsense_is_refused(values: dict) -> None:
    with pytest.raises(ConfigError):
        BoardSpec(**values)
