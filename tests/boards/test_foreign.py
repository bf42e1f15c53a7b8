from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from rlgov.boards.base import Reading, Setting
from rlgov.boards.foreign import ForeignWatch, slept_since_boot_s, suspects
from rlgov.boards.twin.board import TwinBoard
from rlgov.errors import ConfigError
from tests.boards.twin.conftest import spec_of
from tests.fakes.tree_board import GPU, TreeBoard, make_tree

LOW = Setting(gpu=306.0, cpu=729.6)


class World:
    """A board, its clock, its sleep and its processes, all ours."""

    def __init__(self, base: Path) -> None:
        self.board = TreeBoard(make_tree(base / "root"))
        self.proc = base / "proc"
        self.proc.mkdir()
        self.now_s = self.slept_s = 0.0

    def watch(self, policy="yield") -> ForeignWatch:
        return ForeignWatch(
            self.board,
            policy,
            proc=self.proc,
            now=lambda: self.now_s,
            asleep_s=lambda: self.slept_s,
        )

    def run(self, pid: int, *words: str) -> None:
        (self.proc / str(pid)).mkdir()
        (self.proc / str(pid) / "cmdline").write_bytes("\0".join(words).encode() + b"\0")

    def meddle(self, text="408000000\n") -> None:
        self.board.tree.path(f"{GPU}/max_freq").write_text(text)


@pytest.fixture
def world(tmp_path):
    return World(tmp_path)


def test_our_own_changes_are_no_finding(world):
    watch = world.watch()
    assert watch.look() is None
    world.board.apply(LOW)
    watch.applied()
    assert watch.look() is None


@pytest.mark.parametrize("policy", ["yield", "reassert", "stop"])
def test_a_foreign_write_is_found_named_and_answered_by_policy(world, policy):
    watch = world.watch(policy)
    world.board.apply(LOW)
    watch.applied()
    world.run(7, "/usr/bin/python3", "train.py")
    world.run(8, "/bin/bash", "/usr/bin/jetson_clocks")
    world.run(9, "/usr/sbin/nvpmodel", "-m", "1")
    world.run(10, "/usr/libexec/power-profiles-daemon")
    world.meddle()
    finding = watch.look(Reading(0.0))
    assert finding.action == policy
    assert finding.changes == {f"{GPU}/max_freq": "306000000 -> 408000000"}
    assert [s.name for s in finding.suspects] == [
        "jetson_clocks",
        "nvpmodel",
        "power-profiles-daemon",
    ]
    assert "perhaps jetson_clocks (process 8)" in str(finding)


def test_reassert_backs_off_and_starts_over_after_quiet(world):
    watch = world.watch("reassert")
    waits = []
    for _ in range(9):
        world.meddle()
        waits.append(watch.look().wait_s)
        world.now_s += waits[-1]
        world.board.apply(LOW)
        watch.applied()
    assert waits == [5, 10, 20, 40, 80, 160, 300, 300, 300]
    world.now_s += 1000
    world.meddle()
    assert watch.look().wait_s == 5


def test_after_a_sleep_the_setting_is_written_again(world):
    watch = world.watch("stop")
    world.board.apply(LOW)
    watch.applied()
    world.slept_s += 40.0
    world.meddle("1300500000\n")
    finding = watch.look()
    assert (finding.cause, finding.action, finding.slept_s) == ("resume", "reassert", 40.0)
    assert "slept for 40 s" in str(finding)


def test_a_sleep_that_changed_nothing_is_no_finding(world):
    watch = world.watch()
    world.slept_s += 40.0
    assert watch.look() is None
    world.meddle()
    assert watch.look().cause == "foreign"  # the sleep is over and done with


def test_heat_is_not_a_person(world):
    watch = world.watch("stop")
    world.meddle()
    finding = watch.look(Reading(0.0, throttle={"cooling devfreq-gpu": 2.0, "oc3": 5.0}))
    assert (finding.cause, finding.action) == ("heat", "yield")


def test_any_board_will_do():
    board = TwinBoard(spec_of("jetson_agx_orin_64gb"))
    watch = ForeignWatch(board)
    board.apply(Setting(gpu=306.0))
    assert watch.look().changes == {"gpu": "auto -> 306.0"}


def test_a_policy_that_does_not_exist(world):
    with pytest.raises(ConfigError, match="yield, reassert, stop"):
        world.watch("fight")


def test_real_processes_are_seen(tmp_path):
    script = tmp_path / "tlp"
    script.write_text("import sys; print(1, flush=True); sys.stdin.read()\n")
    process = subprocess.Popen(
        [sys.executable, str(script)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    process.stdout.readline()
    try:
        assert ("tlp", process.pid) in [(s.name, s.pid) for s in suspects()]
    finally:
        process.communicate()


def test_sleep_is_counted_by_the_kernel():
    first = slept_since_boot_s()
    assert -1.0 < slept_since_boot_s() - first < 1.0
    assert time.clock_gettime(time.CLOCK_BOOTTIME) > 0
