from __future__ import annotations

import numpy as np
import pytest

from rlgov.envs.replayed import ReplayPlant
from rlgov.envs.simulated import WindowSpec
from rlgov.errors import ConfigError
from rlgov.traces.profiles import parse_profiles
from rlgov.traces.surface import surface_of

CSV = """\
device,job,config,gpu_mhz,step_time_s,power_w,energy_per_step_j,vdd_gpu_soc_w
b,j,pinned,306,0.9,20,,8
b,j,pinned,700,0.5,28,,14
b,j,pinned,1300,0.4,45,,30
"""
AS_FOUND = "b,j,as_found,,0.42,40,,27\n"
AUTO = np.full((2, 3), np.nan)


def plant(text: str = CSV, noise: float = 0.0) -> ReplayPlant:
    (profile,) = parse_profiles(text)
    roles = {"vdd_gpu_soc": "gpu"}
    return ReplayPlant(surface_of(profile), WindowSpec(), n=2, noise=noise, rail_roles=roles)


def at(mhz: float) -> np.ndarray:
    return np.tile([mhz, np.nan, np.nan], (2, 1))


def test_a_window_is_what_was_measured() -> None:
    window = plant().window(at(700.0))
    assert window.step_time_s == pytest.approx([0.5, 0.5])
    assert window.step_j == pytest.approx([14.0, 14.0])  # blank: time x power
    assert window.role_w[0, 0] == pytest.approx(14.0)
    assert np.isnan(window.role_w[0, 1:]).all()
    assert np.isnan(window.utilisation).all()
    assert np.isnan(window.temperature_c).all()
    assert window.clocks_mhz[0, 0] == 700.0
    assert np.isnan(window.clocks_mhz[0, 1:]).all()
    assert (window.steps >= 5.0 / 0.5).all()


def test_as_found_is_its_row_or_the_highest_setting() -> None:
    assert plant().window(AUTO).step_time_s[0] == pytest.approx(0.4)
    found = plant(CSV + AS_FOUND).window(AUTO)
    assert found.step_time_s[0] == pytest.approx(0.42)
    assert found.step_j[0] == pytest.approx(0.42 * 40)
    assert np.isnan(found.clocks_mhz).all()


def test_every_setting_has_its_true_cost() -> None:
    replay = plant()
    settings = replay.all_settings()
    assert settings[:, 0].tolist()[:3] == [306.0, 700.0, 1300.0]
    time_s, joules = replay.grid(settings)
    assert time_s.shape == (2, 4)
    assert joules[0, :3] == pytest.approx([18.0, 14.0, 18.0])


def test_noise_is_drawn_from_the_seed() -> None:
    replay = plant(noise=0.01)
    seen = []
    for _ in range(2):
        replay.reset(7)
        seen.append(replay.window(at(306.0)).step_j)
    assert seen[0] == pytest.approx(seen[1])
    assert seen[0][0] != seen[0][1]
    assert abs(np.log(seen[0] / 18.0)).max() < 0.06


def test_outside_of_the_profile_is_an_error() -> None:
    with pytest.raises(ConfigError, match="spans 306 to 1300"):
        plant().window(at(200.0))


def test_a_profile_of_energies_alone_is_not_metered_by_time() -> None:
    text = "device,job,config,gpu_mhz,energy_per_step_j\nb,j,pinned,306,3\nb,j,pinned,700,2\n"
    window = plant(text).window(at(306.0))
    assert window.step_j == pytest.approx([3.0, 3.0])
    assert np.isnan(window.step_time_s).all()
    assert not window.metered.any()


def test_power_limits_are_no_clock() -> None:
    text = "device,job,power_limit_w,step_time_s\nb,j,100,3\nb,j,150,2\n"
    with pytest.raises(ConfigError, match="no clock"):
        plant(text)


def test_rows_with_an_unknown_clock_are_left_out() -> None:
    text = "device,job,gpu_mhz,emc_mhz,step_time_s\n" + "".join(
        f"b,j,{g},{m},{1000 / g}\n" for g in (306, 700) for m in (2133, 3199)
    )
    (profile,) = parse_profiles(text + "b,j,918,,1.0\n")
    assert surface_of(profile).levels_mhz["gpu"] == (306.0, 700.0)
