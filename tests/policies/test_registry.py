from __future__ import annotations

from pathlib import Path

import pytest

from rlgov.boards.base import Knob
from rlgov.errors import ConfigError, PolicyError
from rlgov.policies import POLICIES, load_policy
from rlgov.policies.bundle import Bundle, BundlePolicy, packaged_bundles
from tests.policies.make import KNOBS, make_bundle


def test_an_unknown_name_names_the_known_ones() -> None:
    with pytest.raises(ConfigError, match=r"did you mean as_found\?") as error:
        load_policy("as-found", KNOBS)
    assert all(name in str(error.value) for name in POLICIES)


def test_a_path_loads_the_bundle_there_or_in_the_run_folder(tmp_path: Path) -> None:
    make_bundle().save(tmp_path / "run" / "bundle")
    for path in (tmp_path / "run", tmp_path / "run" / "bundle"):
        assert load_policy(str(path), KNOBS).name == str(path)


def test_a_path_without_a_folder_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no such folder"):
        load_policy(str(tmp_path / "nowhere"), KNOBS)
    with pytest.raises(PolicyError, match=r"card\.json"):
        load_policy(str(tmp_path), KNOBS)


def test_a_name_wins_over_a_folder_of_the_same_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "max").mkdir()
    assert load_policy("max", KNOBS).name == "max"


def test_the_packaged_bundle_is_found_by_board_or_by_tables() -> None:
    assert "jetson_agx_orin_64gb" in packaged_bundles()
    assert load_policy("ppo", KNOBS, board="jetson_agx_orin_64gb").name == "ppo"
    assert load_policy("ppo", KNOBS, board="jetson").name == "ppo"


def test_a_board_that_no_bundle_fits_is_told_how_to_get_one() -> None:
    with pytest.raises(PolicyError, match="rlgov train"):
        load_policy("ppo", [Knob("gpu", (100.0, 200.0))], board="toaster")


def test_bundles_are_small_enough_to_ship() -> None:
    for folder in packaged_bundles().values():
        assert sum(file.stat().st_size for file in folder.iterdir()) < 2**20


def test_a_board_without_a_bundle_of_its_own_gets_the_nearest() -> None:
    folder = packaged_bundles()["jetson_orin_nx_16gb"]
    tables = Bundle.load(folder).card.knobs
    knobs = [Knob(name, tuple(levels)) for name, levels in tables.items()]
    found = load_policy("ppo", knobs, board="some other name")
    assert isinstance(found, BundlePolicy)
    assert found.bundle.card.board == "jetson_orin_nx_16gb"
