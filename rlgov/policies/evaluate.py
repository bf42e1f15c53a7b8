"""Policies on the same twins, jobs and noise, against the truth that no governor sees."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from rlgov.envs.batched import BatchedGovernorEnv
from rlgov.envs.guard import GuardSpec
from rlgov.envs.simulated import SimulatedPlant
from rlgov.envs.spaces import ActionGrid
from rlgov.policies.base import Policy, PolicyContext
from rlgov.policies.baselines import OraclePolicy, as_found
from rlgov.policies.figures import Figure, figure, ratio_figure
from rlgov.policies.oracle import landscape
from rlgov.reward import Preference, RewardSpec
from rlgov.work import FloatArray

VIOLATION_SLACK = 0.005
"""Excess over the budget, as a share of the reference's time, that is not yet a violation."""
CLOSE = 0.02
"""Gap within which a policy counts as having arrived."""
WORTHWHILE = 0.01
"""Oracle's saving below which a job has no share captured of its own."""

MakePlant = Callable[[], SimulatedPlant]


@dataclass(frozen=True)
class Trial:
    """What every policy is put through.

    Attributes:
        make_plant: Makes the plant of ``n`` jobs; each run begins it anew with ``seed``.
        objective: See `rlgov.reward.OBJECTIVES`.
        budget: Allowed slowdown.
        seed: Of jobs, silicon and noise.
        windows: Decided windows.
        reference_windows: As-found windows before them.
        power_cap: For objective ``power_cap``.
        guard: Which rules stand.
    """

    make_plant: MakePlant
    objective: str = "energy"
    budget: float = 0.1
    seed: int = 0
    windows: int = 30
    reference_windows: int = 2
    power_cap: float | None = None
    guard: GuardSpec = field(default_factory=GuardSpec)

    def run(self, policy: Policy) -> Track:
        """One policy through all windows, with the guard."""
        return self._run(policy, self.guard)

    def evaluate(self, policy: Policy) -> Evaluation:
        """One policy against the truth."""
        return Evaluation(policy.name, self, self.run(policy))

    @cached_property
    def as_found(self) -> Track:
        """The same jobs left alone: what every figure is relative to."""
        policy = as_found(PolicyContext(self.make_plant().knobs), {})
        return self._run(policy, GuardSpec(enabled=False))

    @cached_property
    def oracle(self) -> Track:
        """The same jobs at their best static settings, without the guard."""
        return self._run(OraclePolicy(lambda: self.best_mhz), GuardSpec(enabled=False))

    @cached_property
    def best_mhz(self) -> FloatArray:
        """The best static setting of each job, ``[n, 3]``."""
        plant = self.make_plant()
        env = self._env(plant, GuardSpec(enabled=False))
        env.reset(self.seed)
        return landscape(plant).best(env.preference, env.episodes.offered)

    def context(self) -> PolicyContext:
        """What policies of this trial are built from."""
        plant = self.make_plant()
        return PolicyContext(plant.knobs, plant.spec.name, self.seed, lambda: self.best_mhz)

    def _env(self, plant: SimulatedPlant, guard: GuardSpec) -> BatchedGovernorEnv:
        def wanted(n: int, _: np.random.Generator) -> Preference:
            return Preference.of(self.objective, self.budget, n, self.power_cap)

        grid = ActionGrid.of_tables(plant.knobs)
        return BatchedGovernorEnv(plant, grid, wanted, guard, RewardSpec(), self.reference_windows)

    def _run(self, policy: Policy, guard: GuardSpec) -> Track:
        plant = self.make_plant()
        env = self._env(plant, guard)
        observation = env.reset(self.seed)
        policy.begin(plant.n)
        rows = []
        for _ in range(self.windows):
            result = env.step_targets(policy.act(observation))
            observation, truth = result.observation, plant.outcome
            acted = np.any(list(result.acts.values()), axis=0) if result.acts else False
            spent_j = truth.energy_j / truth.steps
            acted = np.broadcast_to(np.asarray(acted, float), (plant.n,))
            rows.append((spent_j, truth.true_step_time_s, acted, result.targets_mhz))
        return Track(*(np.stack(column) for column in zip(*rows, strict=True)))


@dataclass(frozen=True)
class Track:
    """The truth about a run, window by window.

    Attributes:
        step_j: Joules a step, changes of clock included, ``[windows, n]``.
        step_s: Seconds a step, ``[windows, n]``.
        guarded: 1 where the guard acted, ``[windows, n]``.
        targets_mhz: Settings, ``[windows, n, 3]``.
    """

    step_j: FloatArray
    step_s: FloatArray
    guarded: FloatArray
    targets_mhz: FloatArray


@dataclass(frozen=True)
class Evaluation:
    """A policy's run with what it is compared to; every figure is by job, ``[n]``."""

    policy: str
    trial: Trial
    track: Track

    @property
    def saving(self) -> FloatArray:
        """1 - joules a step over the reference's, exploration included."""
        return _saving(self.track, self.trial.as_found)

    @property
    def oracle_saving(self) -> FloatArray:
        """The same of the best static setting."""
        return _saving(self.trial.oracle, self.trial.as_found)

    def gap(self, first: int = 0) -> FloatArray:
        """Joules over the oracle's - 1 from window ``first`` on; 0 where it is below."""
        ratio = self.track.step_j[first:].mean(0) / self.trial.oracle.step_j[first:].mean(0)
        gap: FloatArray = np.maximum(ratio - 1.0, 0.0)
        return gap

    @property
    def time_ratio(self) -> FloatArray:
        """Seconds a step over the reference's, ``[windows, n]``."""
        ratio: FloatArray = self.track.step_s / self.trial.as_found.step_s
        return ratio

    @property
    def violations(self) -> FloatArray:
        """Share of windows whose time breaks the budget."""
        over = self.time_ratio > 1.0 + self.trial.budget + VIOLATION_SLACK
        share: FloatArray = over.mean(0)
        return share

    @property
    def windows_to_close(self) -> FloatArray:
        """First window within `CLOSE` of the oracle's joules; one more than there are if none."""
        gap = self.track.step_j / self.trial.oracle.step_j - 1.0
        kept = self.time_ratio <= 1.0 + self.trial.budget + VIOLATION_SLACK
        close = (gap <= CLOSE) & kept
        first = np.where(close.any(0), close.argmax(0) + 1, len(close) + 1)
        return first.astype(float)

    @property
    def saving_with_reference(self) -> FloatArray:
        """The saving when the as-found windows at the start count too."""
        windows = self.trial.windows
        return self.saving * windows / (windows + self.trial.reference_windows)

    def row(self) -> dict[str, Any]:
        """The figures of `rlgov evaluate`, for JSON."""
        saving, best, seed = self.saving, self.oracle_saving, self.trial.seed % 2**32
        each = np.where(best > WORTHWHILE, saving / np.where(best > WORTHWHILE, best, 1.0), np.nan)

        def over_jobs(values: FloatArray) -> Figure:
            return figure(values, seed)

        return {
            "policy": self.policy,
            "objective": self.trial.objective,
            "budget": self.trial.budget,
            "n_jobs": len(saving),
            "seed": self.trial.seed,
            "windows": self.trial.windows,
            "guard": self.trial.guard.enabled,
            "saving": over_jobs(saving),
            "oracle_saving": over_jobs(best),
            "gap": over_jobs(self.gap()),
            "captured": ratio_figure(saving, best, seed, each),
            "slowdown": over_jobs(self.time_ratio.mean(0) - 1.0),
            "violations": over_jobs(self.violations),
            "windows_to_2pct": over_jobs(self.windows_to_close),
            "gap_after_10": over_jobs(self.gap(min(10, self.trial.windows - 1))),
            "saving_with_reference": over_jobs(self.saving_with_reference),
            "guard_share": over_jobs(self.track.guarded.mean(0)),
        }


def _saving(track: Track, reference: Track) -> FloatArray:
    saving: FloatArray = 1.0 - track.step_j.mean(0) / reference.step_j.mean(0)
    return saving


def evaluate(policies: Sequence[Policy], trials: Sequence[Trial]) -> list[Evaluation]:
    """Every policy in every trial."""
    return [trial.evaluate(policy) for trial in trials for policy in policies]
