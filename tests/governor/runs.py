"""Whole governed runs of a synthetic job, in a moment."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from rlgov.boards.base import BoardState, Setting
from rlgov.boards.twin.board import TwinBoard
from rlgov.envs.simulated import WindowSpec
from rlgov.governor.emulated import EmulatedJob
from rlgov.governor.session import Session, SessionResult, SessionSpec
from rlgov.governor.summary import summarise
from rlgov.jobs.base import Job
from rlgov.policies.base import Observation, Policy
from rlgov.policies.registry import load_policy
from tests.envs.world import SPEC

WINDOW = WindowSpec(min_steps=5, min_seconds=2.0, reference_windows=3)


@dataclass
class Run:
    """What a run left, and what it did to the board."""

    board: WatchedBoard
    job: EmulatedJob
    result: SessionResult
    summary: dict[str, Any]
    found: BoardState
    folder: Path


class WatchedBoard(TwinBoard):
    """Keeps every setting that was applied."""

    def __init__(self, seed: int = 1) -> None:
        super().__init__(SPEC, seed=seed)
        self.applied: list[Setting] = []

    def apply(self, setting: Setting) -> Setting:
        self.applied.append(setting)
        return super().apply(setting)


@dataclass
class Choosing(Policy):
    """Picks whatever ``choose`` says of the number of the decision."""

    choose: Any
    name: str = "choosing"
    decisions: int = field(default=0)

    def act(self, observation: Observation) -> np.ndarray:
        self.decisions += 1
        return np.array([self.choose(self.decisions)], float)


def govern(
    folder: Path,
    job: Job,
    policy: str | Policy = "as_found",
    *,
    board: WatchedBoard | None = None,
    args: dict[str, Any] | None = None,
    scale: float = 1.0,
    **spec: Any,
) -> Run:
    board = board or WatchedBoard()
    found = board.capture()
    emulated = EmulatedJob(job, board, scale)
    spec = {"window": WINDOW, "seed": 1, "audit_share": 0.1, **spec}
    session = SessionSpec(**spec)
    if isinstance(policy, str):
        best = partial(emulated.best_targets, session.budget)
        policy = load_policy(policy, board.knobs, board=board.name, args=args, best=best)
    run = Session(session, board, emulated, policy, SPEC.rail_roles, board.drain, folder)
    result = run.run()
    summary = summarise(result, session, board, policy.name, job.name, emulated)
    return Run(board, emulated, result, summary, found, folder)
