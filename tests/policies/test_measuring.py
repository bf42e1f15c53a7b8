from __future__ import annotations

import numpy as np
import pytest

from rlgov.boards.base import KNOB_NAMES
from rlgov.envs.batched import BatchedGovernorEnv
from rlgov.envs.guard import GuardSpec
from rlgov.errors import ConfigError
from rlgov.policies import Policy, load_policy
from rlgov.policies.arms import Arms, gpu_settings, joint_settings
from rlgov.policies.reading import LastWindow, Wishes
from rlgov.policies.selector import SelectorSpec
from rlgov.reward import Preference
from tests.conformance.policy_contract import PolicyContract
from tests.envs.world import knobs, make_env

OFF = GuardSpec(enabled=False)


class TestUtil30(PolicyContract):
    def make_policy(self, env: BatchedGovernorEnv) -> Policy:
        return load_policy("util30", env.plant.knobs)


class TestUcb(PolicyContract):
    def make_policy(self, env: BatchedGovernorEnv) -> Policy:
        return load_policy("ucb", env.plant.knobs)


class TestUcbJoint(PolicyContract):
    def make_policy(self, env: BatchedGovernorEnv) -> Policy:
        return load_policy("ucb", env.plant.knobs, args={"arms": "joint", "levels": 3})


class TestBayes(PolicyContract):
    def make_policy(self, env: BatchedGovernorEnv) -> Policy:
        pytest.importorskip("sklearn")
        return load_policy("bayes", env.plant.knobs, args={"levels": 3})


def play(env: BatchedGovernorEnv, policy: Policy, windows: int) -> np.ndarray:
    observation = env.reset(5)
    policy.begin(env.n)
    chosen = []
    for _ in range(windows):
        chosen.append(policy.act(observation))
        observation = env.step_targets(chosen[-1]).observation
    return np.stack(chosen)


def test_the_last_window_is_read_as_it_was_measured() -> None:
    env = make_env(4, OFF, budget=0.2)
    env.reset(1)
    target = np.tile([612.0, np.nan, np.nan], (4, 1))
    step = env.step_targets(target)
    assert step.scored is not None
    last, wishes = LastWindow.read(step.observation), Wishes.read(step.observation)
    np.testing.assert_allclose(np.exp(last.log_time), step.scored.time_ratio, rtol=1e-5)
    np.testing.assert_allclose(np.exp(last.log_energy), step.scored.energy_ratio, rtol=1e-5)
    assert last.valid.all()
    np.testing.assert_array_equal(last.auto, np.tile([False, True, True], (4, 1)))
    np.testing.assert_allclose(np.exp(wishes.log_budget), 1.2, rtol=1e-5)


def test_a_budget_of_one_and_more_is_none() -> None:
    env = make_env(2, OFF, budget=3.0)
    assert np.isinf(Wishes.read(env.reset(1)).log_budget).all()


def test_the_selector_profiles_the_whole_table_and_then_picks() -> None:
    env = make_env(3, OFF, budget=0.2)
    chosen = play(env, load_policy("util30", env.plant.knobs), 34)
    table = set(env.plant.knobs[0].allowed_mhz)
    for job in range(3):
        assert set(chosen[:30, job, 0]) == table
    assert np.isnan(chosen[..., 1:]).all()
    assert all(len(set(chosen[30:, job, 0])) <= 2 for job in range(3))


def test_the_selectors_choice_keeps_to_the_budget_it_measured() -> None:
    env = make_env(8, OFF, budget=0.2)
    policy = load_policy("util30", env.plant.knobs)
    play(env, policy, 30)
    step = env.step_targets(policy.act(env.observe()))
    assert step.scored is not None
    assert (step.scored.time_ratio < 1.2 + 0.03).all()
    assert step.scored.energy_ratio.mean() < 1.0


def test_the_bandit_saves_and_learns_from_what_it_sees() -> None:
    env = make_env(12, OFF, budget=0.2)
    observation = env.reset(5)
    policy = load_policy("ucb", env.plant.knobs)
    policy.begin(env.n)
    ratios = []
    for _ in range(40):
        step = env.step_targets(policy.act(observation))
        observation = step.observation
        assert step.scored is not None
        ratios.append(step.scored.energy_ratio.mean())
    assert np.mean(ratios[-10:]) < min(1.0, ratios[0])


def test_bayes_saves_within_the_budget() -> None:
    pytest.importorskip("sklearn")
    env = make_env(4, budget=0.2)
    policy = load_policy("bayes", env.plant.knobs, args={"levels": 4})
    observation = env.reset(5)
    policy.begin(env.n)
    for _ in range(14):
        step = env.step_targets(policy.act(observation))
        observation = step.observation
    assert step.scored is not None
    assert step.scored.energy_ratio.mean() < 0.99
    assert step.scored.time_ratio.mean() < 1.2


def test_a_window_is_credited_to_what_ran_not_to_what_was_asked() -> None:
    env = make_env(2)
    arms = Arms(env.plant.knobs, gpu_settings(env.plant.knobs))
    arms.begin(2)
    env.reset(1)
    arms.choose(np.array([3, 3]))
    ran = np.array([[np.nan] * 3, [arms.targets_mhz[2, 0], np.nan, np.nan]])
    arms.learn(env.step_targets(ran).observation)
    assert arms.count[0].tolist()[:4] == [2, 0, 0, 0]
    assert arms.count[1].tolist()[:4] == [1, 0, 1, 0]
    assert arms.asked[:, 3].tolist() == [1, 1]


def test_settings_begin_as_found_and_never_repeat() -> None:
    settings = joint_settings(knobs(), {"gpu": 2, "cpu": 2, "emc": 0})
    assert np.isnan(settings[0]).all()
    assert settings.shape == (9, len(KNOB_NAMES))
    assert len({tuple(row) for row in np.nan_to_num(settings)}) == 9
    assert settings[1:, 0].tolist().count(1200.0) == 3


@pytest.mark.parametrize(
    ("name", "args", "message"),
    [
        ("util30", {"window": 3}, "'window' is none of windows, slack"),
        ("util30", {"windows": 0}, "windows must be at least 1"),
        ("util30", {"windows": 2.5}, "windows takes a whole number"),
        ("ucb", {"arms": "all"}, "one of gpu, joint"),
        ("ucb", {"noise": "much"}, "noise takes a number"),
        ("ucb", {"switching": -1}, "switching must be at least 0"),
        ("bayes", {"confidence": 1.0}, "below 1"),
        ("bayes", {"levels": True}, "levels takes a whole number"),
    ],
)
def test_parameters_that_cannot_be_are_refused(
    name: str, args: dict[str, object], message: str
) -> None:
    with pytest.raises(ConfigError, match=rf"policy_args\.{name}.*{message}"):
        load_policy(name, knobs(), args=args)


def test_a_parameter_left_null_is_the_default() -> None:
    assert load_policy("util30", knobs(), args={"windows": None}).name == "util30"
    assert SelectorSpec().windows == 30


def test_a_cap_on_power_binds_the_selector() -> None:
    env = make_env(6, OFF)
    env.preference = Preference.of("power_cap", 2.0, 6, 0.8)
    policy = load_policy("util30", env.plant.knobs, args={"windows": 12})
    env._draw_preference = lambda n, _: Preference.of("power_cap", 2.0, n, 0.8)
    play(env, policy, 12)
    step = env.step_targets(policy.act(env.observe()))
    assert step.scored is not None
    power = step.scored.energy_ratio / step.scored.time_ratio
    assert (power < 0.84).mean() > 0.6
