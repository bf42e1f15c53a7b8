from __future__ import annotations

import errno
from pathlib import Path

import pytest

from rlgov.boards.jetson_gpu import find_gpu
from rlgov.boards.sysfs import Number, Tree
from rlgov.envs.plant import ROLES
from rlgov.errors import BoardError, NotSupportedError
from tests.fakes.jetsons import board_of, make
from tests.fakes.sysfs_tree import DEVFREQ, EMC, HWMON, PROFILES, build, get, put

TOTALS = {
    "nano-jp4": ("POM_5V_IN", 2.480),
    "xavier-agx-jp4": ("sum_of_rails", 1.0 + 0.312 + 0.936 + 0.624 + 1.480),
    "tx2-jp4": ("VDD_IN", 2.0),
    "xavier-nx-jp5": ("VDD_IN", 5.016 * 0.856),
    "agx-orin-jp5-13": ("sum_of_rails", 14.5728),
    "agx-orin-jp5-11": ("sum_of_rails", 14.5728),
    "agx-orin-jp6": ("sum_of_rails", 14.5728),
    "agx-orin-jp6-nodebug": ("sum_of_rails", 14.5728),
    "orin-nano-super-jp6": ("VDD_IN", 5.016 * 1.856),
    "orin-jp7": ("sum_of_rails", 14.5728),
    "thor-jp7": ("VIN", 19.8),
}


@pytest.mark.parametrize("name", sorted(PROFILES))
def test_case_t11_the_total_is_the_boards_input_or_a_named_sum(tmp_path: Path, name: str) -> None:
    board, _ = make(tmp_path, name)
    rule, watts = TOTALS[name]
    reading = board.read()
    assert board.total_rule.startswith(rule)
    assert reading.total_w == pytest.approx(watts, abs=1e-6)
    assert "NC" not in board.rails
    assert not any("sum" in rail for rail in board.rails)
    if rule == "sum_of_rails":
        assert "not the board's input" in board.total_rule
        assert all(rail in board.total_rule for rail in board.rails)


@pytest.mark.parametrize("name", sorted(PROFILES))
def test_rails_have_roles_that_the_observation_knows(tmp_path: Path, name: str) -> None:
    board, _ = make(tmp_path, name)
    assert set(board.rail_roles) <= set(board.rails)
    assert set(board.rail_roles.values()) <= set(ROLES)
    assert "gpu" in board.rail_roles.values()


def test_a_sum_that_lacks_a_rail_is_no_total(tmp_path: Path) -> None:
    board, _ = make(tmp_path, "agx-orin-jp6")
    (tmp_path / HWMON[1:] / "hwmon2" / "curr1_input").unlink()
    reading = board.read()
    assert reading.total_w is None
    assert "VDD_GPU_SOC" not in reading.power_w
    assert "power VDD_GPU_SOC" in reading.missing


def test_case_t14_negative_power_keeps_its_sign_and_dead_zones_say_nothing(tmp_path: Path) -> None:
    board, _ = make(tmp_path, "thor-jp7")
    reading = board.read()
    assert reading.power_w["VDD_GPU"] == pytest.approx(-19.992 * 0.016)
    assert reading.total_w == pytest.approx(19.8)
    assert reading.temperature_c["cv0-thermal"] is None
    assert "temperature cv0-thermal" in reading.missing
    assert reading.temperature_c["tj-thermal"] == pytest.approx(53.062)
    assert "PMIC-Die" not in reading.temperature_c


def test_a_zone_that_cannot_be_read_costs_that_zone_only(tmp_path: Path) -> None:
    board, _ = make(tmp_path, "thor-jp7")
    (tmp_path / "sys/class/thermal/thermal_zone1/temp").unlink()
    reading = board.read()
    assert reading.temperature_c["gpu-thermal"] is None
    assert reading.temperature_c["cpu-thermal"] == pytest.approx(53.062)


def test_monitors_are_found_again_when_their_numbers_change(tmp_path: Path) -> None:
    board, _ = make(tmp_path, "agx-orin-jp6")
    before = board.read().power_w
    folder = tmp_path / HWMON[1:]
    (folder / "hwmon2").rename(folder / "hwmon9")
    assert board.read().power_w == before


def test_case_t18_a_load_that_is_absent_is_null_and_not_zero(tmp_path: Path) -> None:
    thor, _ = make(tmp_path / "thor", "thor-jp7")
    reading = thor.read()
    assert reading.utilisation["gpu"] is None
    assert "NVML" in reading.missing["gpu load"]
    orin, _ = make(tmp_path / "orin", "orin-jp7")
    assert orin.read().utilisation["gpu"] == pytest.approx(0.371)


def test_a_gated_gpu_runs_at_zero_and_that_is_a_value(tmp_path: Path) -> None:
    board, _ = make(tmp_path, "agx-orin-jp6")
    assert board.read().clocks_mhz["gpu"] == 0.0


def test_loads_are_shares(tmp_path: Path) -> None:
    board, _ = make(tmp_path, "agx-orin-jp6")
    put(tmp_path, {"/proc/stat": "cpu0 40 0 10 110 0 0 0 0\ncpu1 10 0 10 140 0 0 0 0\n"})
    reading = board.read()
    assert reading.utilisation["cpu"] == pytest.approx(30 / (60 + 60))
    assert reading.utilisation["emc"] == pytest.approx(0.1)
    assert reading.clocks_mhz["emc"] == pytest.approx(2133.0)


def test_an_offlined_core_does_not_bend_the_load(tmp_path: Path) -> None:
    board, _ = make(tmp_path, "agx-orin-jp6")
    put(tmp_path, {"/proc/stat": "cpu0 40 0 10 110 0 0 0 0\n"})
    assert board.read().utilisation["cpu"] == pytest.approx(30 / 60)


def test_over_current_shows_in_counts_though_clocks_do_not_move(tmp_path: Path) -> None:
    board, _ = make(tmp_path, "orin-nano-super-jp6")
    before = board.read()
    put(tmp_path, {f"{HWMON}/hwmon7/oc3_event_cnt": "40\n"})
    after = board.read()
    assert after.throttle["oc3"] - before.throttle["oc3"] == 23
    assert after.clocks_mhz == before.clocks_mhz
    assert before.throttle["cooling 17000000.gpu-devfreq"] == 0
    assert not any("fan" in name for name in before.throttle)


def test_a_board_whose_files_are_all_gone_cannot_be_read(tmp_path: Path) -> None:
    board, _ = make(tmp_path, "orin-nano-super-jp6")
    (tmp_path / "sys").rename(tmp_path / "gone")
    (tmp_path / "proc/stat").unlink()
    with pytest.raises(BoardError, match="no sensor"):
        board.read()


def test_the_gpu_is_found_by_its_node_and_not_by_its_neighbours(tmp_path: Path) -> None:
    folder = f"{DEVFREQ}/15340000.vic/device/of_node/name"
    put(tmp_path, {folder: "vic\0"})
    assert find_gpu(Tree(tmp_path)) is None
    put(tmp_path, {f"{DEVFREQ}/17000000.gpu/device/of_node/name": "ga10b\0"})
    gpu = find_gpu(Tree(tmp_path))
    assert gpu is not None
    assert gpu.folder.endswith("17000000.gpu")
    put(tmp_path, {f"{DEVFREQ}/gpu-gpc-0/cur_freq": "0\n"})
    thor = find_gpu(Tree(tmp_path))
    assert thor is not None
    assert (thor.folder, thor.load) == (f"{DEVFREQ}/gpu-gpc-0", "")


def test_a_gpu_that_comes_late_is_waited_for(tmp_path: Path) -> None:
    build(tmp_path, "agx-orin-jp6")
    entry = tmp_path / DEVFREQ[1:] / "17000000.gpu"
    target = entry.readlink()
    entry.unlink()
    waited: list[float] = []

    def sleep(seconds: float) -> None:
        waited.append(seconds)
        if len(waited) == 2:
            entry.symlink_to(target)

    from rlgov.boards.jetson import JetsonBoard

    board = JetsonBoard(tmp_path, settle_s=0.0, sleep=sleep)
    assert "gpu" in {knob.name for knob in board.knobs}
    assert len(waited) == 2


def test_a_missing_gpu_is_a_refused_knob(tmp_path: Path) -> None:
    build(tmp_path, "agx-orin-jp6")
    (tmp_path / DEVFREQ[1:] / "17000000.gpu").unlink()
    board = board_of(tmp_path, "agx-orin-jp6")
    assert [knob.name for knob in board.knobs] == ["cpu", "emc"]
    assert "driver" in board.refused["gpu"]


def test_a_machine_that_is_no_jetson_says_so(tmp_path: Path) -> None:
    put(tmp_path, {"/proc/stat": "cpu0 1 0 1 1 0 0 0 0\n"})
    with pytest.raises(NotSupportedError, match="no Jetson"):
        board_of(tmp_path, "agx-orin-jp6")


def test_case_a06_an_unknown_or_absent_power_mode_is_taken_as_it_is(tmp_path: Path) -> None:
    board, _ = make(tmp_path, "agx-orin-jp6")
    assert board.facts["power mode"] == "MAXN"
    for status, shown in (("pmode:0002\n", "30W"), ("pmode:0009\n", "9"), ("CUSTOM\n", "CUSTOM")):
        put(tmp_path, {"/var/lib/nvpmodel/status": status})
        assert board_of(tmp_path, "agx-orin-jp6").facts["power mode"] == shown
    (tmp_path / "var/lib/nvpmodel/status").unlink()
    assert board_of(tmp_path, "agx-orin-jp6").facts["power mode"] == "unknown"


@pytest.mark.parametrize(
    ("text", "value"),
    [("42\n", 42.0), ("-7\n", -7.0), ("\n", None), ("n/a\n", None), ("\xff\n", None)],
)
def test_a_file_without_a_number_is_no_zero(tmp_path: Path, text: str, value: object) -> None:
    put(tmp_path, {"/sys/x": text})
    read = Tree(tmp_path).number("/sys/x")
    assert read.value == value
    assert bool(read.reason) == (value is None)


def test_reasons_tell_errors_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def read(number: int) -> Number:
        def fail(_path: Path) -> bytes:
            raise OSError(number, "")

        monkeypatch.setattr(Path, "read_bytes", fail)
        return Tree(tmp_path).number("/sys/x")

    codes = (errno.ENOENT, errno.EACCES, errno.EROFS, errno.EAGAIN, errno.EPERM)
    assert len({read(code).reason for code in codes}) == len(codes)
    assert "powered down" in read(errno.EAGAIN).reason


def test_without_debugfs_the_memory_can_only_be_capped(tmp_path: Path) -> None:
    board, _ = make(tmp_path, "agx-orin-jp6-nodebug")
    (emc,) = (knob for knob in board.knobs if knob.name == "emc")
    assert emc.mode == "cap"
    assert emc.levels_mhz == (204.0, 665.6, 2133.0, 3199.0)
    assert "no debugfs" in board.facts["emc table"]
    assert board.read().clocks_mhz["emc"] is None


def test_rates_of_the_memory_come_from_the_boards_own_table(tmp_path: Path) -> None:
    build(tmp_path, "agx-orin-jp6")
    dvfs = get(tmp_path, f"{EMC}/dvfs").replace("665600000", "800000000")
    put(tmp_path, {f"{EMC}/dvfs": dvfs})
    board = board_of(tmp_path, "agx-orin-jp6")
    (emc,) = (knob for knob in board.knobs if knob.name == "emc")
    assert emc.levels_mhz == (204.0, 800.0, 2133.0, 3199.0)
