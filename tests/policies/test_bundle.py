from __future__ import annotations

import hashlib
import json
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.numpy import save as save_tensors

from rlgov.boards.base import Knob
from rlgov.envs.observation import observation_names
from rlgov.errors import PolicyError
from rlgov.policies.bundle import CARD_FILE, WEIGHTS_FILE, Bundle, BundlePolicy
from tests.envs.test_spaces import STEPS_11, STEPS_13
from tests.envs.world import make_env
from tests.policies.make import KNOBS, make_bundle

GOLDEN = Path(__file__).parent / "golden"
# Each example puts the folder back as it was.
SAME_FOLDER = [HealthCheck.function_scoped_fixture]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    make_bundle().save(tmp_path / "bundle")
    return tmp_path / "bundle"


def edit(folder: Path, **changes: Any) -> None:
    card = json.loads((folder / CARD_FILE).read_text())
    card.update(changes)
    (folder / CARD_FILE).write_text(json.dumps({k: v for k, v in card.items() if v is not ...}))


def test_what_is_saved_is_what_is_loaded(folder: Path) -> None:
    made, loaded = make_bundle(), Bundle.load(folder)
    assert loaded.card.actions == made.card.actions
    for mine, theirs in zip(made.layers, loaded.layers, strict=True):
        np.testing.assert_array_equal(mine[0], theirs[0])
        np.testing.assert_array_equal(mine[1], theirs[1])


def test_the_same_bundle_gives_the_same_bytes(folder: Path, tmp_path: Path) -> None:
    make_bundle().save(tmp_path / "again")
    for name in (CARD_FILE, WEIGHTS_FILE):
        assert (folder / name).read_bytes() == (tmp_path / "again" / name).read_bytes()


def test_a_bundle_of_long_ago_still_decides_as_it_did() -> None:
    expected = json.loads((GOLDEN / "expected.json").read_text())
    policy = BundlePolicy(Bundle.load(GOLDEN), KNOBS)
    width = len(observation_names())
    observations = np.linspace(-1, 1, 5 * width, dtype=np.float32).reshape(5, width)
    observations[:, [observation_names().index(f"offered_{k}") for k in ("gpu", "cpu", "emc")]] = 1
    assert np.nan_to_num(policy.act(observations), nan=-1).tolist() == expected


def test_neither_torch_nor_pickle_is_on_the_load_path(folder: Path) -> None:
    code = (
        "import sys, pickle\n"
        "def refuse(*_, **__): raise SystemExit('unpickled')\n"
        "pickle.load = pickle.loads = pickle.Unpickler = refuse\n"
        "from pathlib import Path\n"
        "from rlgov.policies.bundle import Bundle\n"
        f"Bundle.load(Path({str(folder)!r})).actor()\n"
        "sys.exit('torch' if 'torch' in sys.modules else 0)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


class Attack:
    def __reduce__(self) -> tuple[Any, ...]:
        return (Path("marker").touch, ())


def test_a_pickle_in_the_place_of_weights_is_not_opened(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    (folder / WEIGHTS_FILE).write_bytes(pickle.dumps(Attack()))
    with pytest.raises(PolicyError, match="damaged"):
        Bundle.load(folder)
    assert not (folder / "marker").exists()


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(name=st.sampled_from([CARD_FILE, WEIGHTS_FILE]), share=st.floats(0, 0.999))
def test_a_truncated_file_is_refused(folder: Path, name: str, share: float) -> None:
    whole = (folder / name).read_bytes()
    (folder / name).write_bytes(whole[: int(len(whole.rstrip()) * share)])
    try:
        with pytest.raises(PolicyError):
            Bundle.load(folder)
    finally:
        (folder / name).write_bytes(whole)


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_any_value_of_the_wrong_kind_is_refused(folder: Path, data: st.DataObject) -> None:
    whole = (folder / CARD_FILE).read_text()
    key = data.draw(st.sampled_from(sorted(json.loads(whole))))
    wrong = data.draw(st.sampled_from([None, True, {"gpu": "x"}, ["x", 1], [[]], "\u0000", -1.5]))
    edit(folder, **{key: wrong})
    try:
        Bundle.load(folder)
    except PolicyError:
        return
    finally:
        (folder / CARD_FILE).write_text(whole)
    # Only what nobody reads, or what really is of its kind, may pass.
    assert key in {"board", "evaluation", "limits", "training", "versions"}


def test_a_missing_file_says_what_a_bundle_is(folder: Path) -> None:
    (folder / WEIGHTS_FILE).unlink()
    with pytest.raises(PolicyError, match=r"weights\.safetensors and card\.json"):
        Bundle.load(folder)


def test_a_missing_key_is_named(folder: Path) -> None:
    edit(folder, activation=...)
    with pytest.raises(PolicyError, match="lacks activation"):
        Bundle.load(folder)


def test_another_format_prints_both_versions(folder: Path) -> None:
    edit(folder, format_version=7, versions={"rlgov": "9.1"})
    with pytest.raises(PolicyError, match=r"format 7, this rlgov reads 2; .*rlgov 9\.1"):
        Bundle.load(folder)


def test_other_features_print_both_sides(folder: Path) -> None:
    names = list(observation_names())
    edit(folder, observation_names=[*names[1:], "moon_phase"])
    with pytest.raises(PolicyError, match="only the bundle's: moon_phase; only rlgov's: budget"):
        Bundle.load(folder)
    edit(folder, observation_names=names[::-1])
    with pytest.raises(PolicyError, match="the order differs"):
        Bundle.load(folder)
    edit(folder, observation_names=names, observation_bound=10)
    with pytest.raises(PolicyError, match="bounded by 10"):
        Bundle.load(folder)


def test_weights_of_another_shape_or_kind_are_refused(folder: Path) -> None:
    edit(folder, hidden=[8, 7])
    with pytest.raises(PolicyError, match="the card says"):
        Bundle.load(folder)
    edit(folder, hidden=[8])
    with pytest.raises(PolicyError, match=r"holds .*layer2\.weight"):
        Bundle.load(folder)


def test_double_precision_is_refused(folder: Path) -> None:
    data = save_tensors(
        {
            f"layer{i}.{part}": np.asarray(value, np.float64)
            for i, layer in enumerate(make_bundle().layers)
            for part, value in zip(("weight", "bias"), layer, strict=True)
        }
    )
    (folder / WEIGHTS_FILE).write_bytes(data)
    edit(folder, weights_sha256=hashlib.sha256(data).hexdigest())
    with pytest.raises(PolicyError, match="float64, not float32"):
        Bundle.load(folder)


def test_another_chips_table_prints_both_tables() -> None:
    nano = [Knob("gpu", (306.0, 612.0, 625.0))]
    with pytest.raises(PolicyError, match=r"gpu table is 306, .*; this board's is 306, 612, 625"):
        BundlePolicy(make_bundle(), nano)


def test_a_board_without_a_common_knob_is_refused() -> None:
    with pytest.raises(PolicyError, match="the board's knobs are none"):
        BundlePolicy(make_bundle(), [])


@pytest.mark.parametrize("steps", [STEPS_11, STEPS_13])
def test_another_releases_table_of_the_same_chip_fits(steps: tuple[float, ...]) -> None:
    table = [Knob("gpu", steps), *KNOBS[1:]]
    targets = BundlePolicy(make_bundle(), table).act(make_env(20).reset(1))
    turned = targets[np.isfinite(targets[:, 0]), 0]
    assert len(turned)
    assert set(turned) <= set(steps)


def test_missing_knobs_are_masked_not_refused() -> None:
    targets = BundlePolicy(make_bundle(), KNOBS[:1]).act(make_env(4).reset(1))
    assert np.isnan(targets[:, 1:]).all()
