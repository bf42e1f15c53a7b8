from __future__ import annotations

from dataclasses import fields

import pytest
import yaml

from rlgov.boards.twin import Load
from rlgov.boards.twin.loadfile import load_from_dict, load_to_dict
from rlgov.errors import ConfigError
from tests.boards.twin.conftest import loads


def test_a_load_survives_a_yaml_file() -> None:
    load = loads(3)
    text = yaml.safe_dump(load_to_dict(load, 1))
    back = load_from_dict(yaml.safe_load(text))
    for f in fields(Load):
        assert getattr(back, f.name)[0] == pytest.approx(getattr(load, f.name)[1], rel=1e-12)


def test_one_number_is_a_single_phase() -> None:
    values = {"gpu_gcycle": 0.3, "mem_gcycle": 0.1, "host_gcycle": 0, "gpu_j": 1, "soc_j": 1}
    load = load_from_dict({**values, "mem_j": 0.5})
    assert load.gpu_gcycle.tolist() == [[0.3, 0.0, 0.0]]
    assert load.spin.tolist() == [0.0]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"gpu_gcycles": 1}, "gpu_gcycles"),
        ({"gpu_gcycle": [1, 2]}, "3 number"),
        ({"gpu_gcycle": -1}, "at least 0"),
        ({"soc_j": "some"}, "soc_j"),
        ({"spin": 1.5}, "spin"),
        ({"mem_j": float("nan")}, "mem_j"),
    ],
)
def test_bad_loads_are_refused(change: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        load_from_dict({**load_to_dict(loads(1)), **change})


def test_a_missing_part_is_named() -> None:
    values = load_to_dict(loads(1))
    del values["gpu_j"]
    with pytest.raises(ConfigError, match="missing gpu_j"):
        load_from_dict(values)
