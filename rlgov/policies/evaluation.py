"""A policy's run against the truth: the figures of ``rlgov evaluate`` (see docs/evaluation.md)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from rlgov.policies.base import Policy
from rlgov.policies.figures import NOTHING, Figure, figure, ratio_figure
from rlgov.policies.track import Track
from rlgov.policies.trial import Trial
from rlgov.work import FloatArray

VIOLATION_SLACK = 0.005
"""Share of the allowed time by which a window may exceed it without being a violation."""
CLOSE = 0.02
"""Gap within which a policy counts as having arrived."""
WORTHWHILE = 0.01
"""Oracle's saving below which a job has no share captured of its own."""


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
        ratio = self.track.j_per_step(first) / self.trial.oracle.j_per_step(first)
        gap: FloatArray = np.maximum(ratio - 1.0, 0.0)
        return gap

    @property
    def regret_by_window(self) -> FloatArray:
        """Mean over jobs of joules over the oracle's - 1, ``[windows]``; it may be negative."""
        regret: FloatArray = (self.track.step_j / self.trial.oracle.step_j - 1.0).mean(1)
        return regret

    @property
    def time_ratio(self) -> FloatArray:
        """Seconds a step over the reference's, ``[windows, n]``."""
        ratio: FloatArray = self.track.step_s / self.trial.as_found.step_s
        return ratio

    @property
    def slowdown(self) -> FloatArray:
        """Seconds a step over the reference's - 1, over all windows."""
        slowdown: FloatArray = self.track.s_per_step / self.trial.as_found.s_per_step - 1.0
        return slowdown

    @property
    def kept(self) -> FloatArray:
        """1 where a window keeps to its budget, ``[windows, n]``."""
        allowed = (1.0 + self.trial.budget_by_window[:, None]) * (1.0 + VIOLATION_SLACK)
        kept: FloatArray = (self.time_ratio <= allowed).astype(float)
        return kept

    @property
    def violations(self) -> FloatArray:
        """Share of windows whose time breaks the budget."""
        share: FloatArray = 1.0 - self.kept.mean(0)
        return share

    @property
    def windows_to_close(self) -> FloatArray:
        """First window within `CLOSE` of the oracle's joules; one more than there are if none."""
        gap = self.track.step_j / self.trial.oracle.step_j - 1.0
        close = (gap <= CLOSE) & (self.kept > 0)
        first = np.where(close.any(0), close.argmax(0) + 1, len(close) + 1)
        return first.astype(float)

    @property
    def saving_with_reference(self) -> FloatArray:
        """The saving when the as-found windows (reference and audits) count too."""
        trial = self.trial
        audits = (trial.windows - 1) // trial.audit_every if trial.audit_every else 0
        left_alone = (trial.reference_windows + audits) * trial.as_found.steps.mean(0)
        decided = self.track.steps.sum(0)
        saving: FloatArray = self.saving * decided / (decided + left_alone)
        return saving

    def row(self) -> dict[str, Any]:
        """The figures of `rlgov evaluate`, for JSON."""
        saving, best, seed = self.saving, self.oracle_saving, self.trial.seed % 2**32
        each = np.where(best > WORTHWHILE, saving / np.where(best > WORTHWHILE, best, 1.0), np.nan)

        def over_jobs(values: FloatArray) -> Figure:
            return figure(values, seed)

        def timed(values: FloatArray) -> Figure:
            return over_jobs(values) if self.trial.timed else NOTHING

        return {
            "policy": self.policy,
            "objective": self.trial.objective,
            "budget": self.trial.budget,
            "n_jobs": len(saving),
            "seed": self.trial.seed,
            "windows": self.trial.windows,
            "guard": self.trial.guard.enabled,
            "knobs": list(self.trial.offered),
            "saving": over_jobs(saving),
            "oracle_saving": over_jobs(best),
            "gap": over_jobs(self.gap()),
            "captured": ratio_figure(saving, best, seed, each),
            "slowdown": timed(self.slowdown),
            "violations": timed(self.violations),
            "windows_to_2pct": over_jobs(self.windows_to_close),
            "gap_after_10": over_jobs(self.gap(min(10, self.trial.windows - 1))),
            "saving_with_reference": over_jobs(self.saving_with_reference),
            "guard_share": over_jobs(self.track.guarded.mean(0)),
        }


def _saving(track: Track, reference: Track) -> FloatArray:
    saving: FloatArray = 1.0 - track.j_per_step() / reference.j_per_step()
    return saving


def evaluate_policy(trial: Trial, policy: Policy) -> Evaluation:
    """One policy against the truth."""
    return Evaluation(policy.name, trial, trial.run(policy))
