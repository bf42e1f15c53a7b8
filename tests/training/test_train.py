from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest
import torch
from stable_baselines3 import PPO
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from torch.distributions import Distribution

from rlgov.envs.observation import observation_names
from rlgov.envs.simulated import Spread, WindowSpec
from rlgov.errors import RlgovError
from rlgov.policies.actor import MlpActor
from rlgov.policies.bundle import Bundle
from rlgov.policies.surrogate import Belief
from rlgov.training.callback import check_finite, check_weights
from rlgov.training.config import PpoSpec, SurrogateSpec, TrainConfig, Validation
from rlgov.training.export import actor_layers
from rlgov.training.regret_policy import RegretPolicy
from rlgov.training.train import Jobs, TrainResult, train
from rlgov.training.vec_env import GovernorVecEnv
from tests.envs.world import POPULATION, SPEC, make_env
from tests.policies.beliefs import tiny_surrogate

JOBS = Jobs(POPULATION.draw, POPULATION.draw, train_seed=1, validation_seed=2)
AGENT = PpoSpec(
    total_steps=320,
    n_envs=16,
    horizon=10,
    batch_size=80,
    epochs=1,
    hidden=(8, 8),
    cpu_levels=2,
    surrogate=SurrogateSpec(jobs=100, chunk=50, latents=3, hidden=8, steps=5, batch_size=32),
)


def tiny(seed: int = 1, **changes: object) -> TrainConfig:
    return TrainConfig(
        seed=seed,
        agent=AGENT,
        validation=Validation(every_rollouts=1, n_jobs=4, budgets=(0.1,)),
        window=WindowSpec(min_seconds=2.0),
        spread=Spread(),
        **changes,
    )


def digest(folder: Path) -> str:
    whole = b"".join(file.read_bytes() for file in sorted(folder.iterdir()))
    return hashlib.sha256(whole).hexdigest()


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[TrainResult, Path]:
    out = tmp_path_factory.mktemp("run")
    return train(tiny(), SPEC, JOBS, out), out


def test_the_same_seed_gives_the_same_bundle_bit_for_bit(
    trained: tuple[TrainResult, Path], tmp_path: Path
) -> None:
    again = train(tiny(), SPEC, JOBS, tmp_path / "again")
    other = train(tiny(seed=2), SPEC, JOBS, tmp_path / "other")
    assert digest(again.folder) == digest(trained[0].folder)
    assert digest(other.folder) != digest(trained[0].folder)


def test_the_bundle_is_whole_and_its_card_tells_its_story(
    trained: tuple[TrainResult, Path],
) -> None:
    card = Bundle.load(trained[0].folder).card
    assert card.seed == 1
    assert card.training["agent"]["surrogate"]["latents"] == 3
    assert card.evaluation[0]["budget"] == 0.1
    assert {"rlgov", "torch", "numpy"} <= set(card.versions)
    assert trained[0].decisions == 320


def test_tensorboard_has_means_of_every_rollout(trained: tuple[TrainResult, Path]) -> None:
    events = EventAccumulator(str(trained[1] / "tensorboard"))
    events.Reload()
    tags = events.Tags()["scalars"]
    for tag in ("reward/total", "window/saving", "window/violations", "guard/budget"):
        assert tag in tags
    assert len(events.Scalars("reward/total")) == 2
    assert "time/env_steps_per_s" in tags


def test_the_learners_global_settings_are_put_back(tmp_path: Path) -> None:
    before = (torch.get_num_threads(), Distribution._validate_args)
    train(tiny(), SPEC, JOBS, tmp_path)
    assert (torch.get_num_threads(), Distribution._validate_args) == before


def test_the_exported_actor_equals_the_learners() -> None:
    vec = GovernorVecEnv(make_env(8), 4, seed=1)
    kwargs = {"net_arch": {"pi": [32, 32], "vf": [16]}}
    model = PPO("MlpPolicy", vec, n_steps=4, batch_size=16, policy_kwargs=kwargs, device="cpu")
    layers = actor_layers(model)
    assert [weight.shape[0] for weight, _ in layers] == [32, 32, sum(vec.env.grid.sizes)]
    observation = vec.reset()
    actor = MlpActor(layers, "tanh", vec.env.grid.sizes)
    with torch.no_grad():
        latent = model.policy.mlp_extractor.forward_actor(torch.from_numpy(observation))
        theirs = model.policy.action_net(latent).numpy()
    np.testing.assert_allclose(actor.logits(observation), theirs, atol=1e-5)
    likeliest, _ = model.predict(observation, deterministic=True)
    np.testing.assert_array_equal(actor.act(observation), likeliest)


def test_the_actor_with_a_belief_equals_the_learners_and_starts_from_its_regrets() -> None:
    env = make_env(8)
    surrogate = tiny_surrogate(env.grid)
    vec = GovernorVecEnv(env, 4, seed=1, belief=Belief(surrogate, env.grid))
    start, regrets = len(observation_names()), sum(env.grid.sizes)
    skip = slice(start, start + regrets)
    model = PPO(
        RegretPolicy,
        vec,
        n_steps=4,
        batch_size=16,
        policy_kwargs={"net_arch": {"pi": [8], "vf": [8]}, "skip": skip, "sharpness": 30.0},
        device="cpu",
    )
    inputs = vec.reset()
    actor = MlpActor(actor_layers(model), "tanh", env.grid.sizes, skip)
    with torch.no_grad():
        latent = model.policy.mlp_extractor.forward_actor(torch.from_numpy(inputs))
        theirs = model.policy.action_net(latent).numpy()
    np.testing.assert_allclose(actor.logits(inputs), theirs, atol=1e-4)
    least = inputs[:, skip][:, : env.grid.sizes[0]].argmin(1)
    assert (actor.act(inputs)[:, 0] == least).mean() > 0.8


def test_a_number_that_is_none_stops_the_run_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def poisoned(self: GovernorVecEnv, result: object) -> np.ndarray:
        return np.full(self.num_envs, np.nan, np.float32)

    monkeypatch.setattr(GovernorVecEnv, "_rewards", poisoned)
    with pytest.raises(RlgovError, match=r"training stopped: \d+ of the rollout's rewards"):
        train(tiny(), SPEC, JOBS, tmp_path)


def test_culprits_are_named() -> None:
    with pytest.raises(RlgovError, match="1 of the rollout's values"):
        check_finite("values", np.array([1.0, np.inf], np.float32))
    with pytest.raises(RlgovError, match=r"weights action_net\.bias"):
        check_weights({"ok": torch.ones(2), "action_net.bias": torch.tensor([float("nan")])})
