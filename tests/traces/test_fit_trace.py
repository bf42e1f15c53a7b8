from __future__ import annotations

import pytest

from rlgov.errors import TraceError
from rlgov.traces.fit_trace import profile_of_trace
from rlgov.traces.row import Plain, TraceRow


def window(quality: tuple[str, ...] = (), **values: Plain) -> TraceRow:
    return TraceRow("window", 0.0, values={"step_time_s": 0.5, **values}, quality=quality)


def test_windows_become_settings_at_the_clocks_in_force() -> None:
    profile = profile_of_trace(
        [
            window(gpu_mhz=900.0, energy_per_step_j=5.0),
            window(gpu_mhz_set=612.0, gpu_mhz=611.0, emc_mhz=2133.0, energy_per_step_j=4.0),
            window(gpu_mhz_set=612.0, gpu_mhz=612.0, emc_mhz=2133.0, energy_per_step_j=6.0),
        ],
        "mine",
    )
    found = profile.as_found()
    assert found is not None
    assert found.power_w == pytest.approx(10.0)
    (row,) = profile.settings()
    assert (row.gpu_mhz, row.cpu_mhz, row.emc_mhz) == (612.0, None, 2133.0)
    assert row.energy_per_step_j == pytest.approx(5.0)
    assert profile.job == "mine"


def test_spoilt_windows_samples_and_evaluations_are_left_out() -> None:
    rows = [
        TraceRow("sample", 0.0, values={"step_time_s": 1.0}),
        window(("gap",), gpu_mhz_set=306.0),
        window(phase="eval", gpu_mhz_set=306.0),
        window(phase="train", gpu_mhz_set=408.0),
    ]
    assert [row.gpu_mhz for row in profile_of_trace(rows).rows] == [408.0]


def test_a_trace_without_windows_says_what_else_to_give() -> None:
    with pytest.raises(TraceError, match="profile=FILE"):
        profile_of_trace([TraceRow("sample", 0.0)])


def test_several_jobs_are_not_mixed() -> None:
    with pytest.raises(TraceError, match="several"):
        profile_of_trace([window(job="a"), window(job="b")])
