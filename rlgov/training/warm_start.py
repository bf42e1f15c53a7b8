"""Imitation before reinforcement: cross-entropy to the oracle's softened choice.

The twin knows the cost of every setting, so labels are exact; observations are those that the
learner itself meets while it acts (as in DAgger), behind the guard.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from stable_baselines3 import PPO
from torch import Tensor
from torch.nn import functional

from rlgov.boards.twin.noise import job_seeds
from rlgov.envs.batched import BatchedGovernorEnv
from rlgov.envs.simulated import SimulatedPlant
from rlgov.errors import RlgovError
from rlgov.policies.oracle import Landscape, landscape
from rlgov.reward import RewardSpec
from rlgov.training.config import PpoSpec, WarmStart
from rlgov.training.labels import costs, every_target, soft_labels

OnRound = Callable[[int, dict[str, float]], None]


class LastingPlant(SimulatedPlant):
    """A simulated plant that can keep its jobs for several episodes.

    Attributes:
        keep: Whether the next episode meets the same jobs on the same silicon, with other noise
            and another heat.
    """

    keep = False

    def reset(self, seed: int | None) -> None:
        """Begin an episode with new jobs, or with the same ones."""
        if not self.keep:
            super().reset(seed)
            return
        warm = self._rng.uniform(*self._spread.warm, self.n)
        seeds = job_seeds(self.n, self._rng)
        self.place(self.jobs, self.load, self.model.silicon, seeds, warm)


@dataclass(frozen=True)
class Lesson:
    """Windows of one round with their labels.

    Attributes:
        observations: ``[windows x n, d]``.
        labels: Probabilities by knob, ``[windows x n, sum(sizes)]``.
        returns: Discounted rewards that followed, ``[windows x n]``.
        reward: Mean reward of a window.
    """

    observations: Tensor
    labels: Tensor
    returns: Tensor
    reward: float


class WarmStarter:
    """Teaches a PPO model's actor and critic.

    Args:
        model: Whose policy is taught.
        env: Where it acts; its plant must be simulated.
        plant: That plant; the cost of every setting is dear, so its jobs are kept for a while.
        spec: See `WarmStart`.
        agent: The learner's discount and horizon.
        seed: Of the order of windows.
    """

    def __init__(
        self,
        model: PPO,
        env: BatchedGovernorEnv,
        plant: LastingPlant,
        spec: WarmStart,
        agent: PpoSpec,
        seed: int,
    ) -> None:
        self._model, self._env, self._plant = model, env, plant
        self._spec, self._agent = spec, agent
        self._targets_mhz = every_target(env.grid, env.episodes.knobs)
        self._shuffle = torch.Generator().manual_seed(seed)
        self._truth: Landscape | None = None
        self._adam = torch.optim.Adam(model.policy.parameters(), lr=spec.learning_rate)

    def run(self, on_round: OnRound) -> None:
        """Every round: jobs, their labels, the learner's own windows, gradient steps."""
        for i in range(self._spec.rounds):
            progress = i / max(self._spec.rounds - 1, 1)
            self._plant.keep = i % self._spec.episodes_per_job != 0
            lesson = self._lesson(progress)
            for group in self._adam.param_groups:
                group["lr"] = self._spec.learning_rate * (1.0 - 0.9 * progress)
            loss = 0.0
            for _ in range(self._spec.epochs):
                loss = self._study(lesson)
            on_round(i, {"warm/loss": loss, "warm/reward": lesson.reward})
        self._plant.keep = False

    def _lesson(self, progress: float) -> Lesson:
        observation = self._env.reset()
        label = np.concatenate(self._labels(progress), axis=1)
        seen, rewards = [], []
        for _ in range(self._agent.horizon):
            seen.append(observation)
            result = self._env.step(self._actions(observation))
            observation = result.observation
            rewards.append(np.zeros(self._env.n) if result.scored is None else result.scored.reward)
        returns = discounted(np.stack(rewards), self._agent.gamma)
        return Lesson(
            observations=torch.from_numpy(np.concatenate(seen)),
            labels=torch.from_numpy(np.tile(label, (self._agent.horizon, 1))),
            returns=torch.from_numpy(returns.ravel().astype(np.float32)),
            reward=float(np.mean(rewards)),
        )

    def _labels(self, progress: float) -> list[NDArray[np.float32]]:
        spec = self._spec
        if self._truth is None or not self._plant.keep:
            self._truth = landscape(self._plant, self._targets_mhz)
        truth = self._truth
        reward = RewardSpec(budget_slope=spec.slope, cap_slope=spec.slope, margin=spec.margin)
        cost = costs(truth, self._env.preference, reward)
        first, last = spec.temperature
        width = first * (last / first) ** progress
        reachable = truth.reachable(self._env.episodes.offered)
        return soft_labels(cost, reachable, width, self._env.grid.sizes)

    def _actions(self, observation: NDArray[np.float32]) -> NDArray[np.int64]:
        with torch.no_grad():
            drawn = self._model.policy.get_distribution(torch.from_numpy(observation)).sample()
        actions: NDArray[np.int64] = drawn.numpy()
        return actions

    def _study(self, lesson: Lesson) -> float:
        order = torch.randperm(len(lesson.observations), generator=self._shuffle)
        total = 0.0
        batches = torch.split(order, self._spec.batch_size)
        for rows in batches:
            loss = self._loss(lesson, rows)
            self._adam.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            torch.nn.utils.clip_grad_norm_(self._model.policy.parameters(), 1.0)
            self._adam.step()
            total += float(loss.detach())
        if not np.isfinite(total):
            raise RlgovError("training stopped: the loss of the warm start is not finite")
        return total / len(batches)

    def _loss(self, lesson: Lesson, rows: Tensor) -> Tensor:
        policy = self._model.policy
        latent_pi, latent_vf = policy.mlp_extractor(lesson.observations[rows])
        logits = policy.action_net(latent_pi)
        sizes = list(self._env.grid.sizes)
        log_p = [part.log_softmax(dim=1) for part in logits.split(sizes, dim=1)]
        imitation = -(lesson.labels[rows] * torch.cat(log_p, dim=1)).sum(1).mean()
        value = functional.mse_loss(policy.value_net(latent_vf).flatten(), lesson.returns[rows])
        return imitation + self._spec.value_weight * value


def discounted(rewards: NDArray[np.float64], gamma: float) -> NDArray[np.float64]:
    """Discounted sums of what follows, ``[windows, n]``; 0 after the last window."""
    returns = np.zeros_like(rewards)
    following = np.zeros(rewards.shape[1])
    for t in range(len(rewards) - 1, -1, -1):
        following = rewards[t] + gamma * following
        returns[t] = following
    return returns
