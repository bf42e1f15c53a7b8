from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
import yaml

from rlgov.boards.twin import TwinModel, TwinSpec
from rlgov.errors import ConfigError
from tests.boards.twin.conftest import CONF, board_names, loads, spec_of

WANTED = {
    "jetson_agx_orin_64gb",
    "jetson_agx_orin_32gb",
    "jetson_orin_nx_16gb",
    "jetson_orin_nano_8gb",
    "jetson_orin_nano_8gb_super",
    "jetson_agx_xavier",
    "jetson_tx2",
    "nvidia_v100",
    "nvidia_p100",
}


def test_every_board_is_there() -> None:
    assert set(board_names()) >= WANTED


@pytest.mark.parametrize("name", board_names())
def test_a_board_is_whole_and_runs(name: str) -> None:
    spec = spec_of(name)
    assert spec.name == name
    assert set(spec.rail_roles) <= set(spec.rails)
    covered = {c for rail in spec.total_rails for c in spec.rails[rail]}
    assert covered >= {"gpu", "mem", "soc", "base"}
    for mode in (None, *spec.modes):
        model = TwinModel(spec, ceiling_mhz=spec.ceilings(mode))
        state = model.start(loads(8), np.arange(8, dtype=np.uint64))
        outcome, _ = model.window(state, np.full((8, 3), np.nan), loads(8), 5, 5.0)
        assert np.isfinite(outcome.energy_j).all()
        assert (outcome.energy_j > 0).all()


@pytest.mark.parametrize("name", board_names())
def test_modes_cap_at_levels_of_the_table(name: str) -> None:
    spec = spec_of(name)
    for mode in spec.modes:
        for knob, cap in spec.ceilings(mode).items():
            assert cap is None or cap in spec.knobs[knob].levels_mhz, (mode, knob)


@pytest.mark.parametrize("name", board_names())
def test_every_number_of_a_board_has_its_source(name: str) -> None:
    """A number's source is the comment on its line; names and file-wide facts need none."""
    needless = (
        "name:",
        "title:",
        "GPU:",
        "CPU:",
        "SOC:",
        "VDDRQ:",
        "memory_gib:",
        "total_",
        "rail_roles:",
        "VDD_",
        "BOARD:",
    )
    text = re.sub(r"\n {6}", " ", (CONF / f"board/{name}.yaml").read_text())  # wrapped tables
    bare = [
        line
        for line in text.splitlines()
        if re.search(r": .*\d", line.partition("#")[0])
        and "#" not in line
        and not line.strip().startswith(needless)
    ]
    assert bare == []


def values() -> dict[str, object]:
    text = (CONF / "board/jetson_agx_orin_64gb.yaml").read_text()
    loaded: dict[str, object] = yaml.safe_load(text)
    return loaded


def test_a_misspelled_key_is_named_with_its_path() -> None:
    wrong = values()
    wrong["thermal"] = {**wrong["thermal"], "ambiant_c": 3}  # type: ignore[dict-item]
    with pytest.raises(ConfigError, match=r"board.thermal: unknown key 'ambiant_c'"):
        TwinSpec.from_dict(wrong)


def test_a_knobs_way_of_being_set_is_checked() -> None:
    wrong = values()
    knobs = wrong["knobs"]
    assert isinstance(knobs, dict)
    knobs["emc"]["mode"] = "lid"
    with pytest.raises(ConfigError, match=r"knobs.emc.mode must be one of pin, cap"):
        TwinSpec.from_dict(wrong)
    knobs["emc"]["mode"] = "cap"
    assert TwinSpec.from_dict(wrong).knobs["emc"].mode == "cap"


def test_a_missing_number_is_named_with_its_path() -> None:
    wrong = values()
    del wrong["base_w"]
    with pytest.raises(ConfigError, match=r"board: missing base_w"):
        TwinSpec.from_dict(wrong)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"base_w": "much"}, "base_w must be a number"),
        ({"base_w": True}, "base_w must be a number"),
        ({"title": 3}, "title must be text"),
        ({"total_rails": "VDD_IN"}, "total_rails must be a list"),
        ({"rails": 3}, "rails must be a mapping"),
        ({"power_limit_w": "low"}, "power_limit_w must be a number"),
        ({"total_rails": ["NOWHERE"]}, "total_rails"),
        ({"rails": {"A": {"gpus": 1.0}}, "total_rails": ["A"]}, "gpus"),
    ],
)
def test_nonsense_is_refused(change: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        TwinSpec.from_dict({**values(), **change})


def test_a_descending_table_is_refused(orin: TwinSpec) -> None:
    knobs = {**orin.knobs, "gpu": replace(orin.knobs["gpu"], levels_mhz=(3.0, 2.0))}
    with pytest.raises(ConfigError, match="ascend"):
        replace(orin, knobs=knobs)


def test_an_unknown_mode_is_refused_with_the_modes_there_are(orin: TwinSpec) -> None:
    with pytest.raises(ConfigError, match="MAXN, 50W, 30W, 15W"):
        orin.ceilings("60W")


def test_stress_watts_are_of_the_measured_size(orin: TwinSpec) -> None:
    """A GPU that only computes at 1.3 GHz draws near the reported 38 to 40 W on its rail."""
    from rlgov.boards.twin import load_of
    from rlgov.boards.twin.physics import rail_watts, step_cost
    from rlgov.work import make_work

    work = make_work(flop=(4e12, 0, 0), byte=(5e10, 0, 0), launch=(500, 0, 0), spin=1.0)
    one = np.ones(1)
    cost = step_cost(load_of(work, orin), 1.3 * one, 2.2 * one, 3.199 * one, 65 * one, orin)
    watts = rail_watts(cost.component_w, orin)[0]
    assert 33 < watts[list(orin.rails).index("VDD_GPU_SOC")] < 42
    assert 45 < watts.sum() < 60
