"""Emulated kernel files: their manners, and the Jetson back-end against them through FUSE."""

from __future__ import annotations

import contextlib
import errno
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from rlgov.boards.base import AS_FOUND, Setting
from rlgov.boards.emulate import fuse
from rlgov.boards.emulate.clocks import Emc, FreqRange
from rlgov.boards.emulate.machine import Machine
from rlgov.boards.emulate.nodes import Number, whole
from rlgov.boards.emulate.profiles import PROFILES
from rlgov.boards.emulate.tree import KernelTree
from rlgov.boards.jetson import JetsonBoard
from rlgov.boards.twin import TwinSpec
from rlgov.cli.confdir import packaged_conf
from rlgov.errors import NotSupportedError
from tests.conformance.board_contract import BoardContract
from tests.fakes.kills import Kill, carry_out, settable

NAMES = sorted(PROFILES)
TABLE = (100, 200, 300)


def why_no_fuse() -> str:
    try:
        fuse._library()
    except NotSupportedError as error:
        return str(error)
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        return "no /dev/fuse that may be opened"
    return ""


def test_where_fuse_is_required_it_is_there():
    if os.environ.get("RLGOV_REQUIRE_FUSE") != "1":
        pytest.skip("FUSE is not required here (RLGOV_REQUIRE_FUSE)")
    assert why_no_fuse() == ""


needs_fuse = pytest.mark.skipif(bool(why_no_fuse()), reason=f"FUSE: {why_no_fuse()}")


class Clock:
    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def tree_of(name: str, clock: Clock | None = None) -> KernelTree:
    profile = PROFILES[name]
    path = packaged_conf() / "board" / f"{profile.twin}.yaml"
    spec = TwinSpec.from_dict(yaml.safe_load(path.read_text()))
    return KernelTree(Machine(profile, spec, now=clock or Clock()))


def errno_of(call, *args) -> int:
    with pytest.raises(OSError) as caught:  # noqa: PT011 - the number is what is tested
        call(*args)
    return caught.value.errno


class TestManners:
    def test_kernel_4_9_refuses_a_minimum_above_the_maximum(self):
        part = FreqRange(TABLE, strict=True)
        part.set_high("200\n")
        assert errno_of(part.set_low, "300\n") == errno.EINVAL
        part.set_low("200")
        assert errno_of(part.set_high, "100") == errno.EINVAL
        assert part.bounds == (200, 200)
        part.set_low("0")
        assert part.bounds == (100, 200)  # raised to the table's floor
        part.set_high("0")
        assert part.bounds == (100, 0)  # stored as it is: no limit
        part.set_high("150")
        assert part.bounds == (100, 150)
        assert part.ceiling == 200  # the driver snaps, reading back does not

    def test_later_kernels_keep_requests_and_show_what_is_in_force(self):
        heat = Number(0)
        part = FreqRange(TABLE, strict=False, cap=lambda: heat.value or None)
        part.set_low("300")
        part.set_high("200")
        assert part.bounds == (200, 200)
        part.set_high("300")
        assert part.bounds == (300, 300)  # the old request comes back
        heat.value = 200
        assert part.bounds == (200, 200)
        heat.value = 0
        part.set_low("0")
        part.set_high("999")
        assert part.bounds == (100, 300)

    @pytest.mark.parametrize("text", ["", "abc", "1.5", "-1", "1 2"])
    def test_what_is_no_number_is_refused(self, text):
        assert errno_of(whole, text) == errno.EINVAL
        assert errno_of(FreqRange(TABLE, strict=False).set_low, text) == errno.EINVAL

    def test_the_memory_rounds_holds_and_lets_go(self):
        emc = Emc(TABLE, lambda: 300.0)
        rate, lock = emc.rate_node(), emc.locked.node()
        rate.write(b"250\n")
        assert rate.read() == b"300\n"  # not locked
        lock.write(b"1\n")
        assert rate.read() == b"200\n"
        assert errno_of(lock.write, b"2") == errno.EINVAL
        lock.write(b"0")
        cap = emc.clk_cap_node()
        cap.write(b"299")
        assert cap.read() == b"200\n"
        assert emc.clock_hz() == 200
        cap.write(b"0")
        assert cap.read() == b"100\n"  # no "no cap" here
        iso = Emc(TABLE, lambda: 300.0).iso_cap_node()
        assert iso.read() == b"0\n"


class TestTree:
    @pytest.mark.parametrize("name", NAMES)
    def test_every_file_reads_or_says_why(self, name):
        refused = {}
        for path, node in tree_of(name).files.items():
            with contextlib.suppress(OSError):
                assert node.read()
                continue
            refused[path.rpartition("/")[2]] = errno_of(node.read)
        assert refused == ({"temp": errno.EINVAL} if PROFILES[name].jetpack > 5 else {})

    def test_sensors_move_with_time_clocks_and_load(self):
        clock = Clock()
        tree = tree_of("agx-orin-jp6", clock)
        amps = tree.files["/sys/class/hwmon/hwmon2/curr1_input"]
        folder = PROFILES["agx-orin-jp6"].gpu

        def later() -> int:
            clock.now_s += 5.0
            return sum(int(amps.read()) for _ in range(1))

        tree.files["/rlgov/load_per_mille"].write(b"1000")
        for _ in range(3):
            fast = later()
        tree.files[f"{folder}/max_freq"].write(b"306000000")
        for _ in range(3):
            slow = later()
        tree.files["/rlgov/load_per_mille"].write(b"0")
        for _ in range(3):
            idle = later()
        assert idle < slow < 0.7 * fast
        assert tree.files[f"{folder}/cur_freq"].read() == b"0\n"  # its rail is gated

    def test_an_offline_cluster_takes_its_files_along(self):
        tree = tree_of("agx-orin-jp6")
        policy = tree.files["/sys/devices/system/cpu/cpufreq/policy4/scaling_max_freq"]
        for core in (4, 5, 6, 7):
            assert policy.present()
            tree.files[f"/sys/devices/system/cpu/cpu{core}/online"].write(b"0")
        assert not policy.present()
        assert b"cpu5 " not in tree.files["/proc/stat"].read()
        assert "/sys/devices/system/cpu/cpu0/online" not in tree.files


def test_without_the_library_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "mfusepy", None)
    with pytest.raises(NotSupportedError, match=r"rlgov\[emulate\]"):
        fuse._library()


@pytest.fixture(scope="session")
def mounted(tmp_path_factory) -> Iterator:
    """Mount a board, once each."""
    served: dict[str, tuple[subprocess.Popen[str], Path]] = {}

    def mount(name: str) -> Path:
        if name not in served:
            base = tmp_path_factory.mktemp(name)
            folder = base / "mnt"
            folder.mkdir()
            command = [sys.executable, "-m", "rlgov", "emulate", name]
            process = subprocess.Popen(
                [*command, "--mount", str(folder), f"out={base / 'out'}"],
                stdout=subprocess.PIPE,
                text=True,
            )
            assert name in process.stdout.readline()
            served[name] = process, folder
        return served[name][1]

    yield mount
    for process, _ in served.values():
        process.terminate()
        process.communicate(timeout=20)


@needs_fuse
class TestMounted(BoardContract):
    @pytest.fixture(autouse=True, params=["agx-orin-jp6", "nano-jp4", "thor-jp7"])
    def _place(self, request, mounted):
        self.root = mounted(request.param)

    def make_board(self):
        return JetsonBoard(self.root, settle_s=0.0)

    def test_every_file_is_as_found_after_a_run(self):
        board = self.make_board()
        before = settable(self.root)
        state = board.capture()
        for level in (0, -1, 1):
            board.apply(Setting(**{k.name: k.allowed_mhz[level] for k in board.knobs}))
        assert settable(self.root) != before
        board.restore(state)
        assert settable(self.root) == before

    def test_it_is_known_and_metered(self):
        board = self.make_board()
        assert [knob.name for knob in board.knobs] == ["gpu", "cpu", "emc"]
        deadline = time.monotonic() + 20.0
        while not (board.read().total_w or 0.0) > 0.5:
            assert time.monotonic() < deadline
        assert board.read().temperature_c["tj-thermal"] > 20.0

    def test_the_kernel_refuses_as_it_does(self):
        node = next((self.root / "sys/class/devfreq").glob("*gpu*"))
        assert errno_of((node / "max_freq").write_text, "fast\n") == errno.EINVAL
        assert errno_of((node / "cur_freq").write_text, "1\n") == errno.EACCES
        assert errno_of((node / "nothing").read_text) == errno.ENOENT
        assert (node / "max_freq").stat().st_mode & 0o777 == 0o644


@needs_fuse
def test_heat_shows_as_drift_and_goes(mounted):
    root = mounted("agx-orin-jp6")
    board = JetsonBoard(root, settle_s=0.0)
    state = board.capture()
    try:
        board.apply(Setting(gpu=1300.5))
        (root / "rlgov/heat_gpu_hz").write_text("612000000\n")
        assert any("max_freq" in file for file in board.drift())
        assert board.effective()["gpu"] == 612.0
        assert board.read().throttle["cooling 17000000.gpu-devfreq"] == 1.0
    finally:
        (root / "rlgov/heat_gpu_hz").write_text("0\n")
        board.restore(state)
    assert board.apply(AS_FOUND) == AS_FOUND


@needs_fuse
@pytest.mark.parametrize("name", ["agx-orin-jp6", "nano-jp4"])
@pytest.mark.parametrize("signal", ["KILL", "STOP", "HUP"])
def test_a_killed_governor_leaves_the_mount_as_found(mounted, tmp_path, name, signal):
    fate = carry_out(Kill(("governor",), (signal,), 1.5, 3), tmp_path, mounted(name))
    assert fate.back_s is not None


@needs_fuse
def test_the_command_ends_with_the_mount(tmp_path):
    folder = tmp_path / "mnt"
    folder.mkdir()
    command = [sys.executable, "-m", "rlgov", "emulate", "tx2-jp4", "--mount", str(folder)]
    process = subprocess.Popen([*command, f"out={tmp_path / 'o'}"], stdout=subprocess.PIPE)
    assert b"tx2-jp4" in process.stdout.readline()
    assert (folder / "proc/device-tree/model").read_bytes() == b"quill\0"
    process.terminate()
    process.communicate(timeout=20)
    assert list(folder.iterdir()) == []


def test_what_cannot_be_mounted_is_said(tmp_path, monkeypatch, capsys):
    from rlgov.cli.main import main

    monkeypatch.chdir(tmp_path)
    assert main(["emulate", "orin-jp99", f"mount={tmp_path}"]) == 2
    assert main(["emulate", "tx2-jp4"]) == 2
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").touch()
    assert main(["emulate", "tx2-jp4", "--mount", "full"]) == 2
    said = capsys.readouterr().err
    assert "give one board of" in said
    assert "--mount DIR" in said
    assert "must be an empty folder" in said
