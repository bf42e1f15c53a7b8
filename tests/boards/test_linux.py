from __future__ import annotations

import errno
from pathlib import Path

import pytest

from rlgov.boards.base import Board, Setting
from rlgov.boards.linux import LinuxBoard
from rlgov.boards.writer import FileWriter
from rlgov.errors import NotSupportedError
from rlgov.metering import Meter
from tests.conformance.board_contract import BoardContract
from tests.fakes.linux_tree import POWERCAP, host, rapl
from tests.fakes.sysfs_tree import CPUFREQ, contents, put


class Clock:
    def __init__(self) -> None:
        self.t_s = 0.0

    def __call__(self) -> float:
        return self.t_s


def board_of(root: Path, now: Clock | None = None) -> LinuxBoard:
    return LinuxBoard(root, settle_s=0.0, sleep=lambda _s: None, now=now or Clock())


class TestWithATable(BoardContract):
    @pytest.fixture(autouse=True)
    def _root(self, tmp_path: Path) -> None:
        self.root = tmp_path

    def make_board(self) -> Board:
        rapl(self.root, 5.0)
        return board_of(host(self.root))


class TestWithoutATable(TestWithATable):
    def make_board(self) -> Board:
        rapl(self.root, 5.0)
        return board_of(host(self.root, table=None))


class TestWithoutRapl(TestWithATable):
    def make_board(self) -> Board:
        return board_of(host(self.root))


def test_a_driver_without_a_table_gets_levels_within_its_range(tmp_path: Path) -> None:
    board = board_of(host(tmp_path, table=None))
    (cpu,) = board.knobs
    assert len(cpu.levels_mhz) == 12
    assert (cpu.levels_mhz[0], cpu.levels_mhz[-1]) == (800.0, 3201.0)
    assert cpu.allowed_mhz[-1] < 3200.0 < 3201.0
    before = contents(tmp_path)
    state = board.capture()
    level = cpu.levels_mhz[4]
    assert board.apply(Setting(cpu=level)).cpu == level
    board.restore(state)
    assert contents(tmp_path) == before


def test_a_policy_takes_the_nearest_level_below_of_its_own_table(tmp_path: Path) -> None:
    host(tmp_path)
    put(tmp_path, {f"{CPUFREQ}/policy1/scaling_available_frequencies": "800000 2000000\n"})
    put(tmp_path, {f"{CPUFREQ}/policy1/scaling_max_freq": "2000000\n"})
    board = board_of(tmp_path)
    board.apply(Setting(cpu=2400.0))
    text = (tmp_path / CPUFREQ[1:] / "policy1/scaling_max_freq").read_text()
    assert text == "2000000\n"


def test_case_t04_only_packages_and_memory_are_added(tmp_path: Path) -> None:
    """Case T04: package contains core and uncore, psys contains the package."""
    clock = Clock()
    rapl(host(tmp_path), 0.0)
    board = board_of(tmp_path, clock)
    clock.t_s = 2.0
    rapl(tmp_path, 10.0)
    reading = board.read()
    assert reading.power_w == {"package-0": 5.0, "package-0/dram": 5.0, "psys": 5.0}
    assert reading.total_w == pytest.approx(10.0)
    assert board.total_rule.startswith("sum_of_rails: package-0 + package-0/dram")
    assert set(board.rail_roles) == {"package-0", "package-0/dram"}


def test_two_dies_are_two_rails(tmp_path: Path) -> None:
    zones = {"intel-rapl:0": "package-0-die-0", "intel-rapl:1": "package-0-die-1"}
    rapl(host(tmp_path), 0.0, zones)
    assert board_of(tmp_path).rails == ("package-0-die-0", "package-0-die-1")


def test_case_t01_a_run_across_a_wrap_meters_what_was_spent(tmp_path: Path) -> None:
    clock = Clock()
    zones = {"intel-rapl:0": "package-0"}
    rapl(host(tmp_path), 262_000.0, zones)
    board = board_of(tmp_path, clock)
    meter = Meter(board.rails, 2.0)
    spent = 0.0
    for _ in range(60):
        clock.t_s += 0.5
        spent += 50.0 * 0.5
        rapl(tmp_path, (262_000.0 + spent * 10) % 262_143.328850, zones)
        meter.add(board.read())
    energy = meter.energy(5.0, 25.0)
    assert energy.total_j == pytest.approx(500.0 * 20.0, rel=1e-6)


def test_case_t02_without_the_range_a_fall_is_a_gap(tmp_path: Path) -> None:
    clock = Clock()
    zones = {"intel-rapl:0": "package-0"}
    rapl(host(tmp_path), 4000.0, zones)
    (tmp_path / POWERCAP[1:] / "intel-rapl:0/max_energy_range_uj").unlink()
    board = board_of(tmp_path, clock)
    clock.t_s = 1.0
    put(tmp_path, {f"{POWERCAP}/intel-rapl:0/energy_uj": "10000\n"})
    reading = board.read()
    assert reading.total_w is None
    assert "range is not known" in reading.missing["power package-0"]
    assert board.rapl.wraps_unresolved == 1


def test_counters_that_only_root_may_read_are_missing_with_a_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rapl(host(tmp_path), 10.0)
    whole = Path.read_bytes

    def read(path: Path) -> bytes:
        if path.name == "energy_uj":
            raise PermissionError(errno.EACCES, "Permission denied")
        return whole(path)

    monkeypatch.setattr(Path, "read_bytes", read)
    reading = board_of(tmp_path).read()
    assert reading.total_w is None
    assert reading.power_w == {}
    assert "sudo" in reading.missing["power package-0"]
    assert reading.clocks_mhz["cpu"] == 1700.0


def test_a_host_that_may_not_be_set_is_still_read(tmp_path: Path) -> None:
    class Refusing(FileWriter):
        def refusal(self, key: str) -> OSError | None:
            return OSError(errno.EROFS, "Read-only file system")

    host(tmp_path)
    board = LinuxBoard(tmp_path, Refusing(tmp_path), settle_s=0.0)
    assert not board.knobs
    assert "read-only" in board.refused["cpu"]
    assert board.read().clocks_mhz["cpu"] == 1700.0


def test_a_machine_with_neither_is_no_board(tmp_path: Path) -> None:
    with pytest.raises(NotSupportedError, match="neither"):
        board_of(tmp_path)


def test_the_file_writer_never_creates_a_file(tmp_path: Path) -> None:
    writer = FileWriter(tmp_path)
    with pytest.raises(FileNotFoundError):
        writer.write("/sys/none", "1")
    assert isinstance(writer.refusal("/sys/none"), FileNotFoundError)
    assert list(tmp_path.iterdir()) == []
