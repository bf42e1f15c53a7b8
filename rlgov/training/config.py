"""What a training run is made of. Importing this needs no torch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from rlgov.boards.base import KNOB_NAMES
from rlgov.envs.guard import GuardSpec
from rlgov.envs.simulated import Spread, WindowSpec
from rlgov.errors import ConfigError
from rlgov.policies.actor import ACTIVATIONS
from rlgov.reward import OBJECTIVES, RewardSpec

ANY = "any"
"""Objective that stands for the mixture of all."""


@dataclass(frozen=True)
class SurrogateSpec:
    """How the surrogate is learnt.

    Attributes:
        jobs: Jobs to learn the prior from; 0 for none: the policy then reads the observation alone.
        chunk: Jobs drawn at a time.
        latents: Dimensions of the linear space.
        hidden: Width of the prior's two hidden layers.
        steps: Gradient steps.
        batch_size: Jobs a gradient step.
        learning_rate: Peak of the one-cycle schedule.
        noise: Standard error of a window's log time and log energy.
        slope: Price of a unit of log time beyond the budget.
        slack: Share of the reference's time by which the budget may be passed unpriced.
    """

    jobs: int = 40_000
    chunk: int = 2000
    latents: int = 20
    hidden: int = 128
    steps: int = 5000
    batch_size: int = 512
    learning_rate: float = 2e-3
    noise: Sequence[float] = (0.0055, 0.0075)
    slope: float = 6.0
    slack: float = 0.0015

    def __post_init__(self) -> None:
        _at_least("agent.surrogate.jobs", self.jobs, 0)
        _at_least("agent.surrogate.chunk", self.chunk, 50)
        for name in ("latents", "hidden", "steps"):
            _at_least(f"agent.surrogate.{name}", getattr(self, name), 1)
        if len(self.noise) != 2 or min(self.noise) <= 0:
            raise ConfigError("agent.surrogate.noise needs two positive numbers")


@dataclass(frozen=True)
class PpoSpec:
    """The learner.

    Attributes:
        total_steps: Decisions of PPO in all, over all jobs (0: the belief alone).
        n_envs: Jobs side by side.
        horizon: Decisions an episode, and a rollout.
        batch_size: Decisions a gradient step; divides ``n_envs x horizon``.
        epochs: Passes over a rollout.
        learning_rate: Of Adam, at the start and at the end.
        gamma: Discount; small, since this is close to a contextual bandit with memory.
        gae_lambda: Of the advantage estimate.
        clip_range: Of PPO.
        entropy: Weight of the entropy bonus, at the start and at the end.
        value_weight: Weight of the critic's loss.
        max_grad_norm: Gradients are scaled down to it.
        target_kl: An update stops early beyond one and a half times it.
        hidden: Widths of the hidden layers of actor and critic.
        activation: ``tanh`` or ``relu``.
        cpu_levels: Levels of the CPU's long table that a policy may choose from.
        sharpness: Weight of the belief's regrets in the first policy's logits. PPO then samples
            near the least regret: noise of a soft policy breaks tight budgets, and PPO would learn
            to stay far from them.
        surrogate: The belief that goes before.
    """

    total_steps: int = 460_800
    n_envs: int = 512
    horizon: int = 30
    batch_size: int = 3840
    epochs: int = 3
    learning_rate: Sequence[float] = (1e-4, 1e-5)
    gamma: float = 0.5
    gae_lambda: float = 0.9
    clip_range: float = 0.15
    entropy: Sequence[float] = (0.0, 0.0)
    value_weight: float = 0.5
    max_grad_norm: float = 0.5
    target_kl: float = 0.02
    hidden: Sequence[int] = (64, 64)
    activation: str = "tanh"
    cpu_levels: int = 10
    sharpness: float = 30.0
    surrogate: SurrogateSpec = field(default_factory=SurrogateSpec)

    def __post_init__(self) -> None:
        """Refuse what cannot be learnt from.

        Raises:
            ConfigError: With the fix.
        """
        _at_least("agent.horizon", self.horizon, 2)
        _at_least("agent.n_envs", self.n_envs, 1)
        _at_least("agent.epochs", self.epochs, 1)
        _at_least("agent.cpu_levels", self.cpu_levels, 1)
        _at_least("agent.total_steps", self.total_steps, 0)
        self._check_batch()
        if not self.sharpness > 0:
            raise ConfigError(f"agent.sharpness={self.sharpness} must be positive")
        if not 0 <= self.gamma < 1:
            raise ConfigError(f"agent.gamma={self.gamma} must be at least 0 and below 1")
        if self.activation not in ACTIVATIONS:
            raise ConfigError(f"agent.activation={self.activation} is none of tanh, relu")
        if not self.hidden or min(self.hidden) < 1:
            raise ConfigError("agent.hidden needs at least one positive width")

    @property
    def rollout(self) -> int:
        """Decisions between two updates."""
        return self.n_envs * self.horizon

    def _check_batch(self) -> None:
        _at_least("agent.batch_size", self.batch_size, 2)
        if self.rollout % self.batch_size:
            fits = max(b for b in range(1, self.batch_size + 1) if self.rollout % b == 0)
            better = fits if fits > 1 else self.rollout
            raise ConfigError(
                f"agent.batch_size={self.batch_size} does not divide a rollout of n_envs x horizon "
                f"= {self.rollout} decisions; {better} does"
            )


@dataclass(frozen=True)
class Mixture:
    """What users want and offer, as drawn in training.

    Attributes:
        objectives: Objective -> weight.
        budgets: Budgets that are drawn exactly, half of the time; else any up to ``max_budget``,
            the small ones more often.
        max_budget: Largest budget.
        power_cap: Range of caps, as shares of the reference's power.
        drop_knob: Chance that a knob is not offered.
    """

    objectives: Mapping[str, float] = field(
        default_factory=lambda: {"energy": 0.6, "edp": 0.15, "ed2p": 0.1, "power_cap": 0.15}
    )
    budgets: Sequence[float] = (0.0, 0.02, 0.05, 0.1, 0.2, 0.5)
    max_budget: float = 1.0
    power_cap: Sequence[float] = (0.5, 1.0)
    drop_knob: float = 0.15

    def __post_init__(self) -> None:
        unknown = sorted(set(self.objectives) - set(OBJECTIVES))
        if unknown or not self.objectives or min(self.objectives.values()) < 0:
            raise ConfigError(
                f"preferences.objectives gives weights to {', '.join(OBJECTIVES)}"
                + (f", not to {unknown[0]!r}" if unknown else "")
            )
        if not sum(self.objectives.values()) > 0:
            raise ConfigError("preferences.objectives: at least one weight must be positive")
        if not self.budgets or min(self.budgets) < 0 or not self.max_budget > 0:
            raise ConfigError("preferences: budgets must be 0 or more, max_budget positive")
        if not 0 <= self.drop_knob < 1:
            raise ConfigError(f"preferences.drop_knob={self.drop_knob} must be in [0, 1)")

    def only(self, objective: str) -> Mixture:
        """The same with one objective, or with all for `ANY`."""
        if objective == ANY:
            return self
        return Mixture(
            {objective: 1.0}, self.budgets, self.max_budget, self.power_cap, self.drop_knob
        )


@dataclass(frozen=True)
class Validation:
    """How the best policy so far is told.

    Attributes:
        every_rollouts: Rollouts between two looks.
        n_jobs: Jobs looked at.
        budgets: At each of which they are governed.
    """

    every_rollouts: int = 5
    n_jobs: int = 256
    budgets: Sequence[float] = (0.02, 0.05, 0.1, 0.2, 0.5)

    def __post_init__(self) -> None:
        _at_least("validation.every_rollouts", self.every_rollouts, 1)
        _at_least("validation.n_jobs", self.n_jobs, 2)
        if not self.budgets:
            raise ConfigError("validation.budgets needs at least one budget")


@dataclass(frozen=True)
class TrainConfig:
    """A training run.

    Attributes:
        seed: Of everything: network, draws, noise.
        agent: The learner.
        mixture: What users want and offer.
        validation: How the best so far is told.
        window: How long a window is.
        spread: How far boards and jobs vary.
        guard: Which rules stand, in training too.
        reward: How hard the limits bite.
        torch_threads: Threads of the update.
    """

    seed: int = 1
    agent: PpoSpec = field(default_factory=PpoSpec)
    mixture: Mixture = field(default_factory=Mixture)
    validation: Validation = field(default_factory=Validation)
    window: WindowSpec = field(default_factory=WindowSpec)
    spread: Spread = field(default_factory=Spread)
    guard: GuardSpec = field(default_factory=GuardSpec)
    reward: RewardSpec = field(default_factory=RewardSpec)
    torch_threads: int = 1

    def __post_init__(self) -> None:
        _at_least("seed", self.seed, 0)
        _at_least("torch_threads", self.torch_threads, 1)


def level_limits(cpu_levels: int) -> dict[str, int]:
    """Most levels by knob, for `rlgov.envs.spaces.ActionGrid.of_tables`."""
    return {KNOB_NAMES[1]: cpu_levels}


def _at_least(key: str, value: object, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ConfigError(f"{key}={value} must be a whole number of at least {least}")
