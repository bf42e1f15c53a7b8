"""Policies on the same jobs and noise, against the truth that no governor sees."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rlgov.policies.base import Policy
from rlgov.policies.evaluation import VIOLATION_SLACK, Evaluation, evaluate_policy
from rlgov.policies.track import Track
from rlgov.policies.trial import Trial

__all__ = [
    "VIOLATION_SLACK",
    "Evaluation",
    "Track",
    "Trial",
    "catches_up",
    "evaluate",
    "evaluate_policy",
]

TAIL = 5
"""Windows that must be left for a policy to count as having caught up."""


def evaluate(policies: Sequence[Policy], trials: Sequence[Trial]) -> list[Evaluation]:
    """Every policy in every trial."""
    return [evaluate_policy(trial, policy) for trial in trials for policy in policies]


def catches_up(one: Evaluation, other: Evaluation) -> int | None:
    """From which window (counted from 1) on ``one`` never uses more than ``other``.

    By the mean over jobs of joules over the oracle's; ``None`` where it does not for at least the
    last `TAIL` windows.
    """
    behind = np.flatnonzero(one.regret_by_window > other.regret_by_window)
    first = int(behind[-1]) + 2 if len(behind) else 1
    return first if first <= max(one.trial.windows - TAIL + 1, 1) else None
