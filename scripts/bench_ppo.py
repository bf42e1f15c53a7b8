"""Decisions a second of training, against Stable-Baselines3 with its defaults.

Prints, in one run on this machine: the batched environment alone, with the policy's belief, PPO end
to end on it (the network that ships), and Stable-Baselines3's PPO with its default batch and epochs
through a DummyVecEnv of single environments.

    scripts/bench_ppo.py [--rollouts 3] [--threads 2]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import DummyVecEnv

from rlgov.boards.twin import TwinSpec
from rlgov.cli.compose import Composer
from rlgov.cli.instantiate import instantiate_group
from rlgov.cli.registry import load
from rlgov.cli.train_run import train_config
from rlgov.envs.batched import BatchedGovernorEnv
from rlgov.envs.governor_env import GovernorEnv
from rlgov.envs.simulated import SimulatedPlant
from rlgov.envs.spaces import ActionGrid
from rlgov.policies.bundle import Bundle, packaged_bundles
from rlgov.policies.surrogate import Belief
from rlgov.training.config import level_limits
from rlgov.training.preferences import PreferenceDraws
from rlgov.training.train import learner_settings, make_model
from rlgov.training.vec_env import GovernorVecEnv


def rate(decisions: int, run: Callable[[], object]) -> float:
    """Decisions a second of ``run``."""
    began = time.perf_counter()
    run()
    return decisions / (time.perf_counter() - began)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rollouts", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    composed = Composer(load("train")).compose([])[0].config
    config = train_config(composed)
    board = TwinSpec.from_dict(composed["board"])
    population = instantiate_group(composed["population"], "population")
    draws = PreferenceDraws(config.mixture)
    agent = config.agent

    def plant(n: int) -> SimulatedPlant:
        return SimulatedPlant(board, population.draw, n, config.window, config.spread)

    def batched(n: int) -> BatchedGovernorEnv:
        made = plant(n)
        grid = ActionGrid.of_tables(made.knobs, level_limits(agent.cpu_levels))
        return BatchedGovernorEnv(made, grid, draws.preference, config.guard, config.reward, 4)

    bundle = Bundle.load(packaged_bundles()["jetson_agx_orin_64gb"])
    decisions = options.rollouts * agent.rollout
    with learner_settings(options.threads):
        env = batched(agent.n_envs)
        env.reset(1)
        actions = np.zeros((agent.n_envs, 3), np.int64)
        alone = rate(
            options.rollouts * agent.rollout,
            lambda: [env.step(actions) for _ in range(options.rollouts * agent.horizon)],
        )
        belief = None if bundle.surrogate is None else Belief(bundle.surrogate, env.grid)
        vec = GovernorVecEnv(env, agent.horizon, 1, belief)
        vec.reset()
        believing = rate(
            decisions,
            lambda: [
                (vec.step_async(actions), vec.step_wait())
                for _ in range(options.rollouts * agent.horizon)
            ],
        )
        model = make_model(config, GovernorVecEnv(batched(agent.n_envs), agent.horizon, 1, belief))
        ours = rate(decisions, lambda: model.learn(decisions))
        single = DummyVecEnv(
            [lambda: GovernorEnv(plant(1), draws.preference, env.grid, horizon=30)] * 8
        )
        torch.manual_seed(1)
        plain = PPO("MlpPolicy", single, n_steps=64, device="cpu")
        theirs = rate(8 * 64 * 4, lambda: plain.learn(8 * 64 * 4))
    print(f"environment alone           {alone:10,.0f} decisions/s")
    print(f"environment with the belief {believing:10,.0f} decisions/s")
    print(f"PPO end to end              {ours:10,.0f} decisions/s")
    print(f"SB3, DummyVecEnv, defaults  {theirs:10,.0f} decisions/s ({ours / theirs:.1f} times)")


if __name__ == "__main__":
    main()
