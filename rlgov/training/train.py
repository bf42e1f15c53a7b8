"""``rlgov train``: from a configuration to a bundle.

The story: a population of jobs on twins -> what a policy may believe about a job at sight -> PPO on
top of it -> the best policy on the validation jobs, as a bundle. The same configuration and seed
give the same bytes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from stable_baselines3 import PPO
from stable_baselines3.common.logger import configure
from torch.distributions import Distribution

from rlgov.boards.twin import Load, TwinSpec
from rlgov.envs.batched import BatchedGovernorEnv
from rlgov.envs.observation import observation_names
from rlgov.envs.simulated import DrawJobs, SimulatedPlant
from rlgov.envs.spaces import ActionGrid
from rlgov.errors import RlgovError
from rlgov.policies.bundle import Bundle, BundlePolicy
from rlgov.policies.evaluate import Evaluation, Trial, evaluate_policy
from rlgov.policies.surrogate import Belief
from rlgov.training.callback import RolloutCallback
from rlgov.training.config import PpoSpec, TrainConfig, level_limits
from rlgov.training.export import actor_layers, make_bundle
from rlgov.training.preferences import PreferenceDraws
from rlgov.training.progress import Progress
from rlgov.training.regret_policy import RegretPolicy
from rlgov.training.surrogate_fit import fit_surrogate
from rlgov.training.vec_env import GovernorVecEnv

BUNDLE_FOLDER = "bundle"
TENSORBOARD_FOLDER = "tensorboard"
ACTIVATIONS = {"tanh": torch.nn.Tanh, "relu": torch.nn.ReLU}


@dataclass(frozen=True)
class Jobs:
    """Who is trained on, and who is looked at.

    Attributes:
        train: Draws jobs to learn from.
        validation: Draws jobs to choose the best policy on.
        train_seed: Of the first, apart from the second's.
        validation_seed: Of the second.
        fitted: The load that every job has, where one job was fitted to measurements.
    """

    train: DrawJobs
    validation: DrawJobs
    train_seed: int
    validation_seed: int
    fitted: Load | None = None


@dataclass(frozen=True)
class TrainResult:
    """What a run left.

    Attributes:
        folder: The bundle's.
        score: Of the bundle on the validation jobs: mean saving minus violations.
        evaluation: Its rows, as in the card.
        decisions: Decisions of PPO.
        best_at: Where the bundle was found: ``the start``, ``rollout k`` or ``the end``.
    """

    folder: Path
    score: float
    evaluation: list[dict[str, Any]]
    decisions: int
    best_at: str


def train(
    config: TrainConfig,
    board: TwinSpec,
    jobs: Jobs,
    out: Path,
    settings: dict[str, Any] | None = None,
) -> TrainResult:
    """Train a policy and write its bundle to ``out/bundle``.

    Args:
        config: See `TrainConfig`.
        board: The twin.
        jobs: Who is trained on.
        out: Folder of the run; TensorBoard's files go to ``out/tensorboard``.
        settings: The resolved configuration, for the card; ``config`` by default.

    Raises:
        RlgovError: A number that is none turned up, with the name of where.
    """
    with learner_settings(config.torch_threads):
        run = _Run(config, board, jobs, out, settings or asdict(config))
        return run.go()


class _Run:
    def __init__(
        self,
        config: TrainConfig,
        board: TwinSpec,
        jobs: Jobs,
        out: Path,
        settings: dict[str, Any],
    ) -> None:
        self._config, self._board, self._jobs = config, board, jobs
        self._folder, self._settings = out / BUNDLE_FOLDER, settings
        self._progress = Progress(config)
        self._env, self._plant = self._environment(config.agent.n_envs)
        self._grid = self._env.grid
        self._trials = [self._trial(budget) for budget in config.validation.budgets]
        self._out = out
        self._belief: Belief | None = None
        self._vec: GovernorVecEnv
        self._model: PPO
        self._best: tuple[float, Bundle | None, str] = (-math.inf, None, "")

    def go(self) -> TrainResult:
        config = self._config
        with self._progress:
            if config.agent.surrogate.jobs:
                self._believe()
            train_seed = self._jobs.train_seed
            self._vec = GovernorVecEnv(self._env, config.agent.horizon, train_seed, self._belief)
            self._model = make_model(config, self._vec)
            self._model.set_logger(configure(str(self._out / TENSORBOARD_FOLDER), ["tensorboard"]))
            self._look("the start")
            if config.agent.total_steps:
                self._learn()
                self._look("the end")
        score, bundle, found = self._best
        if bundle is None:
            raise RlgovError("training ended without a policy")
        rows = [dict(row) for row in bundle.card.evaluation]
        return TrainResult(self._folder, score, rows, self._model.num_timesteps, found)

    def _believe(self) -> None:
        surrogate = fit_surrogate(
            self._environment,
            self._grid,
            self._config.agent.surrogate,
            self._jobs.train_seed + 1,
            self._progress.belief,
        )
        self._belief = Belief(surrogate, self._grid)

    def _environment(self, n: int) -> tuple[BatchedGovernorEnv, SimulatedPlant]:
        """``n`` training jobs."""
        config = self._config
        plant = self._plant_of(self._jobs.train, n)
        grid = ActionGrid.of_tables(plant.knobs, level_limits(config.agent.cpu_levels))
        return _environment(config, plant, grid), plant

    def _plant_of(self, draw: DrawJobs, n: int) -> SimulatedPlant:
        window, spread = self._config.window, self._config.spread
        return SimulatedPlant(self._board, draw, n, window, spread, fitted=self._jobs.fitted)

    def _learn(self) -> None:
        agent = self._config.agent
        entropy = (agent.entropy[0], agent.entropy[-1])
        callback = RolloutCallback(self._vec, entropy, agent.total_steps, self._on_rollout)
        self._model.learn(agent.total_steps, callback)

    def _on_rollout(self, k: int, _: dict[str, float]) -> None:
        self._progress.rollout()
        if k % self._config.validation.every_rollouts == 0:
            self._look(f"rollout {k}")

    def _look(self, where: str) -> None:
        """Evaluate the policy as it stands, and keep it if it is the best so far."""
        layers = actor_layers(self._model)
        bundle = self._bundle(layers, [])
        policy = BundlePolicy(bundle, self._plant.knobs)
        results = [evaluate_policy(trial, policy) for trial in self._trials]
        score = score_of(results)
        self._model.logger.record("validation/score", score)
        for result in results:
            for name in ("saving", "violations"):
                value = float(getattr(result, name).mean())
                self._model.logger.record(f"validation/{name}_{result.trial.budget:g}", value)
        self._progress.looked(where, score)
        if score > self._best[0]:
            rows = [result.row() for result in results]
            self._best = (score, self._bundle(layers, rows), where)
            # At once, so that a run that is cut short leaves the best it had.
            self._best[1].save(self._folder)

    def _bundle(self, layers: Any, rows: list[dict[str, Any]]) -> Bundle:
        return make_bundle(
            layers,
            board=self._board.name,
            knobs=self._plant.knobs,
            grid=self._grid,
            activation=self._config.agent.activation,
            seed=self._config.seed,
            training=self._settings,
            evaluation=rows,
            surrogate=None if self._belief is None else self._belief.surrogate,
        )

    def _trial(self, budget: float) -> Trial:
        config = self._config

        def make() -> SimulatedPlant:
            draw, n = self._jobs.validation, config.validation.n_jobs
            return self._plant_of(draw, n)

        return Trial(
            make,
            budget=budget,
            seed=self._jobs.validation_seed,
            windows=config.agent.horizon,
            reference_windows=config.window.reference_windows,
            guard=config.guard,
        )


def score_of(results: list[Evaluation]) -> float:
    """What the best policy is chosen by: mean saving less the share of windows in violation."""
    each = [float(r.saving.mean() - r.violations.mean()) for r in results]
    return sum(each) / len(each)


def _environment(
    config: TrainConfig, plant: SimulatedPlant, grid: ActionGrid
) -> BatchedGovernorEnv:
    draws = PreferenceDraws(config.mixture)
    return BatchedGovernorEnv(
        plant,
        grid,
        draws.preference,
        config.guard,
        config.reward,
        config.window.reference_windows,
        draws.offered,
    )


def make_model(config: TrainConfig, vec: GovernorVecEnv) -> PPO:
    """The learner, before it has learnt anything."""
    agent: PpoSpec = config.agent
    first, last = agent.learning_rate[0], agent.learning_rate[-1]
    hidden = list(agent.hidden)
    kind, skip = _policy_kind(vec, agent)
    return PPO(
        kind,
        vec,
        learning_rate=lambda left: last + (first - last) * left,
        n_steps=agent.horizon,
        batch_size=agent.batch_size,
        n_epochs=agent.epochs,
        gamma=agent.gamma,
        gae_lambda=agent.gae_lambda,
        clip_range=agent.clip_range,
        ent_coef=agent.entropy[0],
        vf_coef=agent.value_weight,
        max_grad_norm=agent.max_grad_norm,
        target_kl=agent.target_kl,
        policy_kwargs={
            "net_arch": {"pi": hidden, "vf": hidden},
            "activation_fn": ACTIVATIONS[agent.activation],
            **skip,
        },
        seed=config.seed,
        device="cpu",
        verbose=0,
    )


def _policy_kind(vec: GovernorVecEnv, agent: PpoSpec) -> tuple[Any, dict[str, Any]]:
    """Stable-Baselines3's own policy, or the one that starts from the belief's regrets."""
    if vec.belief is None:
        return "MlpPolicy", {}
    start = len(observation_names())
    skip = slice(start, start + sum(vec.env.grid.sizes))
    return RegretPolicy, {"skip": skip, "sharpness": agent.sharpness}


@contextmanager
def learner_settings(threads: int) -> Iterator[None]:
    """Torch's global settings, put back afterwards."""
    before = torch.get_num_threads()
    validated = Distribution._validate_args
    torch.set_num_threads(threads)
    Distribution.set_default_validate_args(False)
    try:
        yield
    finally:
        torch.set_num_threads(before)
        Distribution.set_default_validate_args(validated)
