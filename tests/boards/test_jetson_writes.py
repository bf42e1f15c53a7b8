from __future__ import annotations

import errno
import itertools
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rlgov.boards.base import AS_FOUND, Setting
from rlgov.boards.jetson import JetsonBoard
from rlgov.boards.sysfs import Tree, write_range
from rlgov.boards.sysfs_board import SysfsBoard
from rlgov.errors import BoardError, ConfigError
from tests.fakes.jetsons import board_of, make
from tests.fakes.sysfs_tree import (
    BPMP,
    CLK_CAP,
    CPUFREQ,
    DEVFREQ,
    EMC,
    ISO_CAP,
    KernelWriter,
    build,
    contents,
    get,
    put,
)

GPU = f"{DEVFREQ}/17000000.gpu"


def gpu_range(root: Path) -> tuple[str, str]:
    return get(root, f"{GPU}/min_freq").strip(), get(root, f"{GPU}/max_freq").strip()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(data=st.data())
def test_case_a03_no_order_of_ranges_is_refused(tmp_path: Path, data: st.DataObject) -> None:
    """Case A03: the strict kernel never sees minimum > maximum, whatever comes after whatever."""
    root = tmp_path / "tree"
    if not root.exists():
        build(root, "xavier-agx-jp4")
    writer = KernelWriter(root, "xavier-agx-jp4")
    tree = Tree(root, writer)
    folder = f"{DEVFREQ}/17000000.gv11b"
    level = st.sampled_from([int(hz) for hz in tree.numbers(f"{folder}/available_frequencies")])
    for _ in range(data.draw(st.integers(1, 5))):
        low, high = sorted((data.draw(level), data.draw(level)))
        write_range(tree, (f"{folder}/min_freq", f"{low}"), (f"{folder}/max_freq", f"{high}"))
        assert tree.number(f"{folder}/min_freq").value == low
        assert tree.number(f"{folder}/max_freq").value == high


@pytest.mark.parametrize("bad", ["min_freq", "max_freq"])
@pytest.mark.parametrize("level", [306.0, 1300.5])
def test_case_a03_a_failing_write_undoes_the_other(tmp_path: Path, bad: str, level: float) -> None:
    board, writer = make(tmp_path, "agx-orin-jp6")
    board.apply(Setting(gpu=714.0))
    before = contents(tmp_path)
    writer.faults[f"{GPU}/{bad}"] = errno.EINVAL
    with pytest.raises(BoardError, match="refused the value"):
        board.apply(Setting(gpu=level))
    assert contents(tmp_path) == before
    del writer.faults[f"{GPU}/{bad}"]
    assert board.apply(Setting(gpu=level)).gpu == level


def test_case_a13_a_failing_knob_puts_every_earlier_knob_back(tmp_path: Path) -> None:
    """Case A13: all or nothing, over all knobs."""
    board, writer = make(tmp_path, "agx-orin-jp6")
    before = contents(tmp_path)
    writer.faults[f"{EMC}/state"] = errno.EBUSY
    with pytest.raises(BoardError, match="busy"):
        board.apply(Setting(gpu=306.0, cpu=729.6, emc=204.0))
    assert contents(tmp_path) == before
    assert board.effective() == AS_FOUND


def test_case_a13_the_lock_precedes_the_rate_that_needs_it(tmp_path: Path) -> None:
    board, writer = make(tmp_path, "agx-orin-jp6")
    with pytest.raises(OSError, match="Invalid"):
        writer.write(f"{EMC}/rate", "204000000")
    board.apply(Setting(emc=204.0))
    files = [key for key, _ in writer.written]
    halt = f"{BPMP}/bwmgr/bwmgr_halt"
    assert files == [f"{EMC}/mrq_rate_locked", f"{EMC}/state", halt, f"{EMC}/rate"]
    board.apply(AS_FOUND)
    assert get(tmp_path, f"{EMC}/mrq_rate_locked").strip() == "0"
    assert get(tmp_path, halt).strip() == "0"


@pytest.mark.parametrize(
    ("code", "words"),
    [(errno.EACCES, "sudo"), (errno.EROFS, "-v /sys:/sys"), (errno.ENOENT, "not there")],
)
def test_case_a01_and_a09_refusals_are_told_apart_at_the_start(
    tmp_path: Path, code: int, words: str
) -> None:
    """Case A01, A09: nothing is written to find out, and what can be read is read."""
    build(tmp_path, "agx-orin-jp6")
    writer = KernelWriter(tmp_path, "agx-orin-jp6")
    before = contents(tmp_path)
    board = board_of(tmp_path, "agx-orin-jp6", writer)
    for file in board.capture().values:
        writer.faults[file] = code
    board = board_of(tmp_path, "agx-orin-jp6", writer)
    assert not board.knobs
    assert all(words in reason for reason in board.refused.values())
    assert set(board.refused) == {"gpu", "cpu", "emc"}
    assert writer.written == []
    assert contents(tmp_path) == before
    assert board.apply(AS_FOUND) == AS_FOUND
    assert board.read().total_w is not None


@pytest.mark.parametrize(
    ("knob", "value", "unit"),
    [
        ("gpu", 1300500.0, "kHz"),
        ("gpu", 1300500000.0, "Hz"),
        ("gpu", 1.3005, "GHz"),
        ("cpu", 2201600.0, "kHz"),
        ("emc", 3199000000.0, "Hz"),
    ],
)
def test_case_a04_a_wrong_unit_is_an_error_that_names_it(
    tmp_path: Path, knob: str, value: float, unit: str
) -> None:
    board, writer = make(tmp_path, "agx-orin-jp6")
    with pytest.raises(ConfigError, match=f"meant in {unit}"):
        board.apply(Setting(**{knob: value}))
    with pytest.raises(ConfigError, match="not a level"):
        board.apply(Setting(cpu=32000000.0))
    assert writer.written == []


def test_case_a06_a_mode_that_shrinks_the_table_is_followed(tmp_path: Path) -> None:
    """Case A06: the table is read anew at each write; a level that went away is not written."""
    board, writer = make(tmp_path, "agx-orin-jp6")
    board.apply(Setting(gpu=1224.0))
    table = get(tmp_path, f"{GPU}/available_frequencies").split()[:6]
    put(tmp_path, {f"{GPU}/available_frequencies": " ".join(table) + "\n"})
    took = board.apply(Setting(gpu=1224.0))
    assert took.gpu == 816.0
    assert gpu_range(tmp_path) == ("816000000", "816000000")
    assert all(int(text) <= 1300500000 for _, text in writer.written)


def test_the_maximum_found_is_the_ceiling(tmp_path: Path) -> None:
    build(tmp_path, "agx-orin-jp6")
    put(tmp_path, {f"{GPU}/max_freq": "816000000\n", CLK_CAP: "2133000000\n"})
    board = board_of(tmp_path, "agx-orin-jp6")
    gpu, _, emc = board.knobs
    assert (gpu.allowed_mhz[-1], gpu.levels_mhz[-1]) == (816.0, 1300.5)
    assert emc.allowed_mhz[-1] == 2133.0
    with pytest.raises(ConfigError, match="above the as-found maximum"):
        board.apply(Setting(gpu=918.0))


def test_no_cap_is_written_as_found(tmp_path: Path) -> None:
    """A zero means "no cap" on one release and the lowest rate on another."""
    board, _ = make(tmp_path, "agx-orin-jp5-11")
    assert get(tmp_path, ISO_CAP) == "0\n"
    assert board.knobs[2].allowed_mhz[-1] == 3199.0


def test_case_a07_clusters_that_are_offline_take_no_part(tmp_path: Path) -> None:
    build(tmp_path, "agx-orin-jp6")
    for file in (tmp_path / CPUFREQ[1:] / "policy8").iterdir():
        file.unlink()
    board = board_of(tmp_path, "agx-orin-jp6")
    assert board.apply(Setting(cpu=729.6)).cpu == 729.6
    assert not any("policy8" in file for file in board.capture().values)


def test_case_a07_a_cluster_that_goes_offline_mid_run_is_skipped(tmp_path: Path) -> None:
    board, writer = make(tmp_path, "agx-orin-jp6")
    state = board.capture()
    policy = tmp_path / CPUFREQ[1:] / "policy4"
    policy.rename(tmp_path / "offline")
    assert board.apply(Setting(cpu=729.6)).cpu == 729.6
    (tmp_path / "offline").rename(policy)
    writer.faults[f"{CPUFREQ}/policy4/scaling_max_freq"] = errno.ENODEV
    board.apply(Setting(cpu=806.4))
    assert get(tmp_path, f"{CPUFREQ}/policy0/scaling_max_freq").strip() == "806400"
    assert get(tmp_path, f"{CPUFREQ}/policy8/scaling_max_freq").strip() == "806400"
    board.restore(state)
    assert get(tmp_path, f"{CPUFREQ}/policy0/scaling_max_freq").strip() == "2201600"
    assert get(tmp_path, f"{CPUFREQ}/policy4/scaling_min_freq").strip() == "729600"


def test_case_a12_a_reset_behind_our_back_is_noticed(tmp_path: Path) -> None:
    """Case A12: resume, nvpmodel and jetson_clocks all overwrite the same two files."""
    board, _ = make(tmp_path, "agx-orin-jp6")
    board.apply(Setting(gpu=510.0))
    assert board.drift() == {}
    put(tmp_path, {f"{GPU}/max_freq": "1300500000\n"})
    assert board.drift() == {f"{GPU}/max_freq": "510000000 -> 1300500000"}
    assert board.effective().gpu == 1300.5
    assert board.apply(Setting(gpu=510.0)).gpu == 510.0
    assert board.drift() == {}


def test_what_took_effect_is_read_back_and_not_what_was_asked(tmp_path: Path) -> None:
    """On newer kernels a write that is clamped succeeds all the same."""
    board, writer = make(tmp_path, "agx-orin-jp6")
    board.capture()
    writer.thermal_cap[GPU] = 612000000
    assert board.apply(Setting(gpu=1020.0)).gpu == 612.0


def test_limits_that_heat_holds_down_are_not_taken_for_as_found(tmp_path: Path) -> None:
    build(tmp_path, "agx-orin-jp6")
    writer = KernelWriter(tmp_path, "agx-orin-jp6")
    state = "/sys/class/thermal/cooling_device0/cur_state"
    put(tmp_path, {state: "3\n"})
    writer.thermal_cap[GPU] = 612000000
    writer.refresh(GPU)
    seconds = itertools.count(1)

    def cool(_s: float) -> None:
        if next(seconds) == 5:
            writer.thermal_cap.clear()
            writer.refresh(GPU)
            put(tmp_path, {state: "0\n"})

    board = JetsonBoard(tmp_path, writer, settle_s=0.0, sleep=cool)
    assert board.capture().values[f"{GPU}/max_freq"] == "1300500000\n"
    assert board.knobs[0].allowed_mhz[-1] == 1300.5


def test_a_board_that_stays_hot_is_not_started_on(tmp_path: Path) -> None:
    board, _ = make(tmp_path, "agx-orin-jp6")
    put(tmp_path, {"/sys/class/thermal/cooling_device0/cur_state": "3\n"})
    with pytest.raises(BoardError, match="let it cool"):
        board.capture()


def test_restore_goes_on_past_a_knob_that_fails_and_says_so(tmp_path: Path) -> None:
    board, writer = make(tmp_path, "agx-orin-jp6")
    state = board.capture()
    board.apply(Setting(gpu=306.0, cpu=729.6))
    writer.faults[f"{GPU}/max_freq"] = errno.EACCES
    with pytest.raises(BoardError, match=r"gpu: permission denied"):
        board.restore(state)
    assert get(tmp_path, f"{CPUFREQ}/policy0/scaling_max_freq").strip() == "2201600"
    writer.faults.clear()
    board.restore(state)
    assert gpu_range(tmp_path) == ("306000000", "1300500000")


def test_a_stored_minimum_does_not_come_back_to_haunt(tmp_path: Path) -> None:
    """Newer kernels keep a request that a lower maximum hides, and show it again later."""
    board, _ = make(tmp_path, "agx-orin-jp6")
    state = board.capture()
    for level in (1300.5, 306.0, 1020.0, 408.0):
        board.apply(Setting(gpu=level))
        assert gpu_range(tmp_path) == (f"{level * 1e6:.0f}",) * 2
    board.restore(state)
    assert gpu_range(tmp_path) == ("306000000", "1300500000")


def test_every_writer_is_the_trees(tmp_path: Path) -> None:
    """A helper with more rights can take the writer's place after the board was opened."""
    board, writer = make(tmp_path, "agx-orin-jp6")
    assert isinstance(board, SysfsBoard)
    other = KernelWriter(tmp_path, "agx-orin-jp6")
    board.tree.writer = other
    board.apply(Setting(gpu=510.0, cpu=729.6, emc=2133.0))
    assert writer.written == []
    assert len(other.written) == 2 + 6 + 4
