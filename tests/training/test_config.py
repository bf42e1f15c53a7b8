from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlgov.cli.train import OBJECTIVE_CHOICES
from rlgov.errors import ConfigError
from rlgov.reward import OBJECTIVES
from rlgov.training.config import ANY, Mixture, PpoSpec, SurrogateSpec, TrainConfig, Validation


@pytest.mark.parametrize("horizon", [1, 2, 65])
@pytest.mark.parametrize("batch_size", [1, 64])
def test_a_batch_that_leaves_a_remainder_is_refused_with_the_fix(
    horizon: int, batch_size: int
) -> None:
    with pytest.raises(ConfigError, match=r"at least 2|\d+ does"):
        PpoSpec(n_envs=1, horizon=horizon, batch_size=batch_size)


@given(st.integers(1, 40), st.integers(2, 40), st.integers(2, 200))
def test_whatever_passes_has_no_batch_of_one(n_envs: int, horizon: int, batch_size: int) -> None:
    try:
        spec = PpoSpec(n_envs=n_envs, horizon=horizon, batch_size=batch_size)
    except ConfigError as error:
        fix = int(str(error).split("; ")[1].split()[0])
        spec = PpoSpec(n_envs=n_envs, horizon=horizon, batch_size=fix)
    assert spec.rollout % spec.batch_size == 0
    assert spec.batch_size >= 2


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: PpoSpec(gamma=1.0), "gamma"),
        (lambda: PpoSpec(sharpness=0.0), "sharpness"),
        (lambda: PpoSpec(activation="swish"), "tanh, relu"),
        (lambda: PpoSpec(hidden=()), "hidden"),
        (lambda: PpoSpec(total_steps=-1), "total_steps"),
        (lambda: SurrogateSpec(latents=0), "latents"),
        (lambda: SurrogateSpec(noise=(0.01, 0.0)), "noise"),
        (lambda: Mixture({"speed": 1.0}), "not to 'speed'"),
        (lambda: Mixture({}), "gives weights"),
        (lambda: Mixture({"energy": 0.0}), "at least one weight"),
        (lambda: Mixture(budgets=[-0.1]), "budgets"),
        (lambda: Mixture(drop_knob=1.0), "drop_knob"),
        (lambda: Validation(budgets=()), "at least one budget"),
        (lambda: Validation(n_jobs=1), "n_jobs"),
        (lambda: TrainConfig(seed=-1), "seed"),
        (lambda: TrainConfig(torch_threads=0), "torch_threads"),
    ],
)
def test_what_cannot_be_learnt_from_is_refused(make, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        make()


def test_one_objective_or_all() -> None:
    mixture = Mixture()
    assert mixture.only(ANY) is mixture
    assert mixture.only("edp").objectives == {"edp": 1.0}


def test_the_command_offers_every_objective() -> None:
    assert (ANY, *OBJECTIVES) == OBJECTIVE_CHOICES
