from __future__ import annotations

from collections.abc import Callable

import pytest

from rlgov.boards.base import AS_FOUND, Setting
from rlgov.boards.nvml import NvmlBoard
from rlgov.boards.visible import visible_gpus
from rlgov.errors import BoardError, ConfigError, NotSupportedError
from rlgov.metering import Meter
from tests.conformance.board_contract import BoardContract
from tests.fakes.pynvml import Gpu, PyNvml

UUIDS = ["GPU-aaaa1111-0", "GPU-aabb2222-1", "GPU-cccc3333-2", "GPU-dddd4444-3"]


class Clock:
    def __init__(self) -> None:
        self.t_s = 0.0

    def __call__(self) -> float:
        return self.t_s


def board_of(*gpus: Gpu, visible: str = "0", now: Callable[[], float] | None = None) -> NvmlBoard:
    lib = PyNvml(list(gpus))
    return NvmlBoard(lib, visible, settle_s=0.0, now=now or Clock(), sleep=lambda _s: None)


class TestNvml(BoardContract):
    def make_board(self) -> NvmlBoard:
        return board_of(Gpu(UUIDS[0]))


class TestTwoGpus(BoardContract):
    def make_board(self) -> NvmlBoard:
        return board_of(Gpu(UUIDS[0]), Gpu(UUIDS[1]), visible="0,1")


def test_both_gpus_are_locked_and_the_reset_is_exact() -> None:
    first, second, hidden = (Gpu(uuid) for uuid in UUIDS[:3])
    board = board_of(first, second, hidden, visible="0,1")
    state = board.capture()
    assert board.apply(Setting(gpu=705.0, emc=405.0)) == Setting(gpu=705.0, emc=405.0)
    assert first.core_lock == second.core_lock == (705, 705)
    assert first.memory_lock == (405, 405)
    assert hidden.core_lock is None
    board.restore(state)
    assert [gpu.core_lock for gpu in (first, second, hidden)] == [None] * 3
    assert [gpu.memory_lock for gpu in (first, second)] == [None] * 2


def test_nothing_is_reset_that_was_never_locked_by_us() -> None:
    """A lock that the user has set cannot be read, so it must not be touched needlessly."""
    gpu = Gpu(UUIDS[0], core_lock=(210, 1200))
    board = board_of(gpu)
    state = board.capture()
    board.apply(AS_FOUND)
    board.restore(state)
    assert gpu.core_lock == (210, 1200)


def test_another_process_resets_what_a_dead_governor_left_locked() -> None:
    """Case A10: locked clocks outlive the process; the state on disk is enough to reset them."""
    gpu = Gpu(UUIDS[0])
    board = board_of(gpu)
    state = board.capture()
    board.apply(Setting(gpu=705.0))
    board_of(gpu).restore(state)
    assert gpu.core_lock is None


def test_case_t05_power_stands_in_for_a_missing_counter_and_null_for_both() -> None:
    clock = Clock()
    board = board_of(Gpu(UUIDS[0], energy_mj=None), now=clock)
    assert board.energy_source == "power_integral"
    assert "power_integral" in board.total_rule
    assert board.read().total_w == pytest.approx(100.0)
    deaf = Gpu(UUIDS[0], energy_mj=None, refuse={"nvmlDeviceGetPowerUsage": 3})
    board = board_of(deaf)
    reading = board.read()
    assert board.energy_source == "none"
    assert reading.total_w is None
    assert reading.power_w == {}
    assert "power GPU0" in reading.missing


def test_case_t10_the_counter_is_used_and_never_mixed_with_averaged_power() -> None:
    """Driver power lags a step to 300 W by a second; the counter does not."""
    clock = Clock()
    gpu = Gpu(UUIDS[0], watts=0.0, averaged_w=0.0)
    board = board_of(gpu, now=clock)
    assert board.energy_source == "energy_counter"
    meter = Meter(board.rails, 2.0)
    for step in range(101):
        meter.add(board.read())
        gpu.watts = 300.0 if step >= 50 else 0.0
        gpu.averaged_w = 300.0 if step >= 60 else 0.0
        gpu.spend(0.1)
        clock.t_s += 0.1
    assert meter.energy(0.0, clock.t_s).total_j == pytest.approx(300.0 * 5.1, rel=0.02)
    gpu.refuse["nvmlDeviceGetTotalEnergyConsumption"] = 999
    clock.t_s += 0.1
    reading = board.read()
    assert reading.total_w is None
    assert "counter" in reading.missing["power GPU0"]


@pytest.mark.parametrize(
    ("spec", "indices"),
    [
        (None, (0, 1, 2, 3)),
        ("", ()),
        ("2,0", (2, 0)),
        ("GPU-aabb2222-1", (1,)),
        ("GPU-aaaa", (0,)),
        ("GPU-cccc,3", (2, 3)),
        ("1,-1,2", (1,)),
        (" 3 , 3 ", (3,)),
    ],
)
def test_case_t07_devices_by_index_uuid_and_prefix(spec: str | None, indices: tuple) -> None:
    assert visible_gpus(spec, UUIDS).indices == indices


@pytest.mark.parametrize("spec", ["GPU-a", "GPU-ffff", "4", "nonsense"])
def test_case_t07_what_fits_no_gpu_or_several_is_named(spec: str) -> None:
    with pytest.raises(ConfigError, match="CUDA_VISIBLE_DEVICES"):
        visible_gpus(spec, UUIDS)


def test_case_t07_mig_is_metered_as_shared_and_never_set() -> None:
    other, gpu = Gpu(UUIDS[0]), Gpu(UUIDS[1], mig=("MIG-c6d4",))
    board = board_of(other, gpu, visible="MIG-c6d4")
    assert board.rails == ("GPU1",)
    assert not board.knobs
    assert "other tenants" in board.refused["gpu"]
    assert "shared" in board.facts
    with pytest.raises(ConfigError, match="no knob"):
        board.apply(Setting(gpu=705.0))
    assert gpu.core_lock is None
    with pytest.raises(ConfigError, match="MIG-ffff"):
        board_of(other, gpu, visible="MIG-ffff")


def test_case_a01_missing_permission_is_found_at_the_start_without_a_write() -> None:
    gpu = Gpu(UUIDS[0], refuse={"nvmlDeviceSetPowerManagementLimit": 4})
    board = board_of(gpu)
    assert not board.knobs
    assert "Insufficient Permissions" in board.refused["gpu"]
    assert not [call for call in gpu.calls if "Locked" in str(call[0])]
    assert board.read().clocks_mhz["gpu"] == 1410.0
    assert board.apply(AS_FOUND) == AS_FOUND


def test_case_a15_an_unsupported_reset_sets_the_full_range() -> None:
    gpu = Gpu(UUIDS[0], refuse={"nvmlDeviceResetGpuLockedClocks": 3})
    board = board_of(gpu)
    state = board.capture()
    board.apply(Setting(gpu=705.0))
    board.restore(state)
    assert gpu.core_lock == (210, 1410)
    assert ("nvmlDeviceSetGpuLockedClocks", 705, 705) in gpu.calls
    assert not any("ApplicationsClocks" in str(call[0]) for call in gpu.calls)


def test_a_failing_clock_puts_the_others_back() -> None:
    gpu = Gpu(UUIDS[0], refuse={"nvmlDeviceSetMemoryLockedClocks": 999})
    board = board_of(gpu)
    with pytest.raises(BoardError, match="could not be set"):
        board.apply(Setting(gpu=705.0, emc=405.0))
    assert gpu.core_lock is None


def test_a_clock_that_cannot_be_locked_stays_as_found_and_is_no_longer_offered() -> None:
    gpu = Gpu(UUIDS[0], refuse={"nvmlDeviceSetMemoryLockedClocks": 3})
    board = board_of(gpu)
    assert board.apply(Setting(gpu=705.0, emc=405.0)) == Setting(gpu=705.0)
    assert [knob.name for knob in board.knobs] == ["gpu"]


def test_case_t21_a_library_that_answers_nothing_is_no_board() -> None:
    lib = PyNvml([Gpu(UUIDS[0])], deaf=True)
    with pytest.raises(NotSupportedError, match="none tells power"):
        NvmlBoard(lib, "0")


def test_without_the_library_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pynvml", None)
    with pytest.raises(NotSupportedError, match=r"rlgov\[nvml\]"):
        NvmlBoard()
