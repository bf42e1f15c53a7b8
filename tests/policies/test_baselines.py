from __future__ import annotations

import numpy as np
import pytest

from rlgov.boards.base import Knob
from rlgov.envs.batched import BatchedGovernorEnv
from rlgov.errors import ConfigError
from rlgov.policies import Policy, PolicyContext, load_policy
from rlgov.policies.bundle import BundlePolicy
from rlgov.policies.registry import make_policy
from tests.conformance.policy_contract import PolicyContract
from tests.envs.world import knobs, make_env
from tests.policies.make import make_bundle


class TestAsFound(PolicyContract):
    def make_policy(self, env: BatchedGovernorEnv) -> Policy:
        return load_policy("as_found", env.plant.knobs)

    def test_it_turns_nothing(self, env):
        assert np.isnan(self.play(env, self.make_policy(env))).all()


class TestMax(PolicyContract):
    def make_policy(self, env: BatchedGovernorEnv) -> Policy:
        return load_policy("max", env.plant.knobs)

    def test_every_knob_is_at_its_ceiling(self):
        capped = [Knob("gpu", (300.0, 600.0, 900.0), ceiling_mhz=600.0), *knobs()[1:]]
        policy = load_policy("max", capped)
        targets = policy.act(make_env(1).reset(1))
        assert targets.tolist() == [[600.0, 2000.0, 3200.0]]


class TestFixed(PolicyContract):
    def make_policy(self, env: BatchedGovernorEnv) -> Policy:
        return load_policy("fixed", env.plant.knobs, args={"gpu_mhz": 612, "emc_mhz": None})

    def test_the_others_stay_as_found(self, env):
        chosen = self.play(env, self.make_policy(env))
        assert set(chosen[..., 0].ravel()) == {612.0}
        assert np.isnan(chosen[..., 1:]).all()


class TestRandom(PolicyContract):
    def make_policy(self, env: BatchedGovernorEnv) -> Policy:
        return load_policy("random", env.plant.knobs, seed=3)

    def test_another_seed_draws_otherwise(self, env):
        other = load_policy("random", env.plant.knobs, seed=4)
        mine = self.play(env, self.make_policy(env))
        assert not np.array_equal(mine, self.play(env, other), equal_nan=True)

    def test_every_level_comes_up(self, env):
        policy = self.make_policy(env)
        observation = np.repeat(env.reset(1), 200, axis=0)
        policy.begin(len(observation))
        drawn = policy.act(observation)[:, 0]
        assert len(set(drawn[np.isfinite(drawn)])) == len(env.plant.knobs[0].levels_mhz)
        assert np.isnan(drawn).any()


class TestOracle(PolicyContract):
    def make_policy(self, env: BatchedGovernorEnv) -> Policy:
        best = np.tile([612.0, np.nan, 3199.0], (env.n, 1))
        return load_policy("oracle", env.plant.knobs, best=lambda: best)


class TestBundle(PolicyContract):
    def make_policy(self, env: BatchedGovernorEnv) -> Policy:
        return BundlePolicy(make_bundle(), env.plant.knobs)


class TestPackaged(PolicyContract):
    def make_policy(self, env: BatchedGovernorEnv) -> Policy:
        return load_policy("ppo", env.plant.knobs)


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ({"gpu_mhz": 613}, r"gpu_mhz=613 is not a level .* 612, .*nearest is 612"),
        ({"gpu_mhz": 612000}, r"nearest is 1200"),
        ({"cpu_mhz": "fast"}, "must be a number"),
        ({"cpu_mhz": True}, "must be a number"),
        ({"gpu": 612}, "'gpu' is none of gpu_mhz, cpu_mhz, emc_mhz"),
        ({}, "at least one of"),
        ({"gpu_mhz": None}, "at least one of"),
    ],
)
def test_a_fixed_setting_that_cannot_be_is_refused(args: dict[str, object], message: str) -> None:
    table = [Knob("gpu", (306.0, 612.0, 1200.0)), *knobs()[1:]]
    with pytest.raises(ConfigError, match=message):
        load_policy("fixed", table, args=args)


def test_a_fixed_clock_of_a_knob_that_is_not_there_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"emc_mhz: the board's knobs are gpu, cpu"):
        load_policy("fixed", knobs()[:2], args={"emc_mhz": 800})


@pytest.mark.parametrize("name", ["as_found", "max", "random", "oracle", "ppo"])
def test_arguments_of_a_policy_without_any_are_refused(name: str) -> None:
    with pytest.raises(ConfigError, match=f"policy_args.{name}"):
        load_policy(name, knobs(), args={"x": 1})


def test_the_oracle_exists_where_the_truth_is_known() -> None:
    with pytest.raises(ConfigError, match="on twins only"):
        load_policy("oracle", knobs())


class TestPowerMode(PolicyContract):
    def make_policy(self, env: BatchedGovernorEnv) -> Policy:
        return load_policy("nvpmodel:30W", env.plant.knobs, modes=MODES)

    def test_caps_are_levels_of_the_table_at_or_below_them(self):
        policy = load_policy("nvpmodel:30W", knobs(), modes=MODES)
        targets = policy.act(make_env(1).reset(1))
        np.testing.assert_array_equal(targets, [[600.0, 1000.0, np.nan]])


class TestGpuOracle(PolicyContract):
    def make_policy(self, env: BatchedGovernorEnv) -> Policy:
        best = np.tile([612.0, np.nan, np.nan], (env.n, 1))
        context = PolicyContext(env.plant.knobs, best_gpu=lambda: best)
        return make_policy("gpu_oracle", context)


MODES: dict[str, dict[str, float | None]] = {
    "MAXN": {},
    "30W": {"gpu": 612.0, "cpu": 1728.0, "emc": None},
}


@pytest.mark.parametrize("name", ["nvpmodel:20W", "nvpmodel"])
def test_an_unknown_power_mode_names_the_known_ones(name: str) -> None:
    with pytest.raises(ConfigError, match=r"modes are nvpmodel:MAXN, nvpmodel:30W"):
        load_policy(name, knobs(), modes=MODES)


def test_the_gpu_oracle_exists_where_the_truth_is_known() -> None:
    with pytest.raises(ConfigError, match="on twins only"):
        load_policy("gpu_oracle", knobs())
