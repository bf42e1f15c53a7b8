"""One experiment: jobs, noise and wishes that every policy is put through alike."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from rlgov.boards.base import KNOB_NAMES
from rlgov.envs.batched import BatchedGovernorEnv, BatchStep
from rlgov.envs.guard import GuardSpec
from rlgov.envs.simulated import SimulatedPlant
from rlgov.envs.spaces import ActionGrid
from rlgov.errors import ConfigError, JobError
from rlgov.policies.base import Policy, PolicyContext
from rlgov.policies.baselines import OraclePolicy, as_found
from rlgov.policies.oracle import Landscape, landscape
from rlgov.policies.track import Track
from rlgov.policies.truth import TruePlant, confined, is_timed, truth_of
from rlgov.reward import Preference, RewardSpec
from rlgov.work import FloatArray

MakePlant = Callable[[], TruePlant]
NO_BUDGET = 1.0
"""What a policy is told where no budget can be kept: in effect none."""
ROUNDING = 1e-9
"""Settings whose time equals the budget's edge up to rounding keep to it."""


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
        offered: Knobs that may be turned, for the oracle too.
        budgets: From which decided window (counted from 0) the user wants which other budget.
        segment: The oracle may change its setting every so many windows, and whenever the budget
            changes; 0 for one setting throughout.
        cuts: Further windows at which it may.
        audit_every: An as-found window refreshes the reference after so many; 0 for never. Like
            reference windows they are left out of every figure.
        board: Name of a replayed board; a twin has its own.
        on_window: Told after each window, for a progress bar.
    """

    make_plant: MakePlant
    objective: str = "energy"
    budget: float = 0.1
    seed: int = 0
    windows: int = 30
    reference_windows: int = 2
    power_cap: float | None = None
    guard: GuardSpec = field(default_factory=GuardSpec)
    offered: Sequence[str] = KNOB_NAMES
    budgets: Sequence[tuple[int, float]] = ()
    segment: int = 0
    cuts: Sequence[int] = ()
    audit_every: int = 0
    board: str | None = None
    on_window: Callable[[], None] | None = None

    def run(self, policy: Policy) -> Track:
        """One policy through all windows, with the guard."""
        return self._run(policy, self.guard)

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
        """The best static setting of each job, ``[n, 3]``; of each window with segments."""
        return self._best(self.offered)

    @cached_property
    def timed(self) -> bool:
        """Whether step times are known at all."""
        return is_timed(self.make_plant())

    @cached_property
    def budget_by_window(self) -> FloatArray:
        """The budget in force, ``[windows]``."""
        budget = np.full(self.windows, float(self.budget))
        for first, value in sorted(self.budgets):
            budget[first:] = value
        return budget

    def taken(self, window: int) -> int:
        """Windows that a job has run before decided window ``window``, audits included."""
        audits = window // self.audit_every if self.audit_every else 0
        return self.reference_windows + window + audits

    def context(self) -> PolicyContext:
        """What policies of this trial are built from."""
        plant = self.make_plant()
        spec = plant.spec if isinstance(plant, SimulatedPlant) else None
        return PolicyContext(
            plant.knobs,
            self.board if spec is None else spec.name,
            self.seed,
            lambda: self.best_mhz,
            lambda: self._best([k for k in self.offered if k == KNOB_NAMES[0]]),
            {} if spec is None else {mode: spec.ceilings(mode) for mode in spec.modes},
        )

    def _best(self, offered: Sequence[str]) -> FloatArray:
        plant = self.make_plant()
        env = self._env(plant, GuardSpec(enabled=False))
        env.reset(self.seed)
        turnable = env.episodes.offered & _mask(offered, plant.n)
        if not (self.segment or self.budgets or self.cuts):
            wish = self._wish(0, plant.n)
            return _best(landscape(plant), wish, turnable)
        return self._best_by_window(env, plant, turnable)

    def _best_by_window(
        self, env: BatchedGovernorEnv, plant: TruePlant, turnable: NDArray[np.bool_]
    ) -> FloatArray:
        """The best static setting of each segment, ``[windows, n, 3]``."""
        schedule = np.empty((self.windows, plant.n, 3))
        for first, last in pairwise(self._edges()):
            seen = []
            for window in range(first, last):
                self._audit(env, window)
                seen.append(landscape(plant))
                plant.window(np.full((plant.n, 3), np.nan))
            wish = self._wish(first, plant.n)
            schedule[first:last] = _best(_mean(seen), wish, turnable)
        return schedule

    def _edges(self) -> list[int]:
        """First windows of the segments, and the end."""
        step = self.segment or self.windows
        inner = [*range(0, self.windows, step), *(w for w, _ in self.budgets), *self.cuts]
        return sorted({w for w in inner if 0 <= w < self.windows} | {self.windows})

    def _wish(self, window: int, n: int) -> Preference:
        # Without times no budget can be kept; a policy is told that there is none.
        budget = float(self.budget_by_window[window]) if self.timed else NO_BUDGET
        return Preference.of(self.objective, budget, n, self.power_cap)

    def _env(self, plant: TruePlant, guard: GuardSpec) -> BatchedGovernorEnv:
        unknown = [name for name in self.offered if name not in KNOB_NAMES]
        if unknown:
            raise ConfigError(f"knobs: {unknown[0]!r} is none of {', '.join(KNOB_NAMES)}")
        return BatchedGovernorEnv(
            plant,
            ActionGrid.of_tables(plant.knobs),
            lambda n, _: self._wish(0, n),
            guard,
            RewardSpec(),
            self.reference_windows,
            lambda n, _: _mask(self.offered, n),
        )

    def _audit(self, env: BatchedGovernorEnv, window: int) -> bool:
        """Run the audit window that is due before ``window``, if one is."""
        due = bool(self.audit_every and window and window % self.audit_every == 0)
        if due:
            env.audit()
        return due

    def _run(self, policy: Policy, guard: GuardSpec) -> Track:
        plant = self.make_plant()
        env = self._env(plant, guard)
        observation = env.reset(self.seed)
        policy.begin(plant.n)
        rows = []
        for window in range(self.windows):
            # An audit, or a user who changed their mind, makes for another observation.
            if self._audit(env, window) or self._changes_its_mind(window):
                env.preference = self._wish(window, plant.n)
                observation = env.observe()
            result = env.step_targets(confined(plant, policy.act(observation)))
            observation = result.observation
            rows.append(_row(plant, result))
            if self.on_window is not None:
                self.on_window()
        return Track(*(np.stack(column) for column in zip(*rows, strict=True)))

    def _changes_its_mind(self, window: int) -> bool:
        return any(window == first for first, _ in self.budgets)


def _row(plant: TruePlant, step: BatchStep) -> tuple[FloatArray, ...]:
    """One window's entries of `Track`."""
    if step.window is None:
        raise JobError("the job ended before the trial did")
    truth = truth_of(plant, step.targets_mhz, step.window)
    acted = np.zeros(plant.n, bool)
    for jobs in step.acts.values():
        acted |= jobs
    return truth.step_j, truth.step_s, truth.steps, acted.astype(float), step.targets_mhz


def _best(costs: Landscape, wish: Preference, turnable: NDArray[np.bool_]) -> FloatArray:
    return costs.best(wish, turnable, ROUNDING)


def _mean(seen: Sequence[Landscape]) -> Landscape:
    """Costs over several windows, each relative to the board as found in it."""
    return Landscape(
        seen[0].targets_mhz,
        np.mean([each.time_ratio for each in seen], axis=0),
        np.mean([each.energy_ratio for each in seen], axis=0),
    )


def _mask(offered: Sequence[str], n: int) -> NDArray[np.bool_]:
    return np.tile([name in offered for name in KNOB_NAMES], (n, 1))
