from __future__ import annotations

from pathlib import Path

import pytest

from rlgov.cli.instantiate import instantiate_group
from rlgov.errors import ConfigError


def test_an_object_is_built_from_plain_values() -> None:
    knob = instantiate_group(
        {"_target_": "rlgov.boards.base.Knob", "name": "gpu", "levels_mhz": [1, 2]}, "knob"
    )
    assert knob.levels_mhz == [1, 2]
    assert type(knob.levels_mhz) is list


def test_what_is_known_only_at_run_time_is_added() -> None:
    knob = instantiate_group(
        {"_target_": "rlgov.boards.base.Knob", "name": "x"}, "k", levels_mhz=()
    )
    assert knob.levels_mhz == ()
    with pytest.raises(ConfigError, match="unexpected keyword"):
        instantiate_group({"_target_": "rlgov.boards.base.Knob", "name": "x"}, "k", level=())


def test_a_class_method_may_be_the_target(tmp_path: Path) -> None:
    node = {"_target_": "rlgov.files.RunFolder.create", "command": "x"}
    assert instantiate_group(node, "folder", out=tmp_path / "o").path == tmp_path / "o"


def test_a_misspelt_argument_is_named() -> None:
    with pytest.raises(ConfigError, match=r"knob cannot be built.*nmae"):
        instantiate_group({"_target_": "rlgov.boards.base.Knob", "nmae": "gpu"}, "knob")


def test_an_error_of_the_constructor_passes_through() -> None:
    node = {"_target_": "rlgov.cli.registry.split_command", "words": ["bords"]}
    with pytest.raises(ConfigError, match=r"^there is no command 'bords'"):
        instantiate_group(node, "x")
    with pytest.raises(ConfigError, match=r"^there is no command 'bords'"):
        instantiate_group({"_target_": node["_target_"]}, "x", words=["bords"])


@pytest.mark.parametrize(
    "target",
    [
        "os.system",
        "builtins.eval",
        "rlgov.files.os.system",
        "rlgov.files.shutil.rmtree",
        "rlgov.files.Path.unlink",
        "rlgov.files.RunFolder.create.__globals__",
        "rlgov.nothing.Here",
        "rlgov",
        "",
        None,
        5,
    ],
)
def test_only_what_is_ours_is_built(target: object, tmp_path: Path) -> None:
    with pytest.raises(ConfigError):
        instantiate_group({"_target_": target}, "node")
    with pytest.raises(ConfigError):
        instantiate_group(
            {
                "_target_": "rlgov.boards.base.Knob",
                "name": [{"_target_": target, "x": 1}],
                "levels_mhz": [],
            },
            "node",
        )


def test_a_node_without_a_target_is_refused() -> None:
    with pytest.raises(ConfigError, match="_target_"):
        instantiate_group({"name": "x"}, "board")
