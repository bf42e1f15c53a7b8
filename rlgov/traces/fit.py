"""Fit a twin to measured profiles: a board and its jobs, an error table, and an ensemble.

The smallest useful measurement is a handful of settings of one job. What they do not constrain
keeps the board's prior and its uncertainty, and the ensemble spans what remains possible.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rlgov.boards.twin.physics import Load
from rlgov.boards.twin.spec import TwinSpec
from rlgov.traces.fit_ensemble import members
from rlgov.traces.fit_parameters import Parameters, parameters_for, prior_from
from rlgov.traces.fit_points import Points, points_of
from rlgov.traces.fit_solve import Solution, predict, solve_points
from rlgov.traces.profile import Profile
from rlgov.work import FloatArray

UNCONSTRAINED = 0.7
"""A parameter whose uncertainty stays above this share of its prior's is not constrained."""


@dataclass(frozen=True)
class SurfaceError:
    """How far a twin is from measured points.

    Attributes:
        job: Job.
        surface: ``time``, ``power``, ``energy`` or ``rail NAME``.
        points: How many points.
        rms: Root mean square of the relative error.
        worst: Largest relative error.
    """

    job: str
    surface: str
    points: int
    rms: float
    worst: float


@dataclass(frozen=True)
class Constraint:
    """What the measurements say about one parameter.

    Attributes:
        name: Path in the board's spec, or ``job: parameter``.
        value: Fitted value.
        prior: Value before the fit.
        remaining: Remaining uncertainty over the prior's (1: nothing was learnt).
    """

    name: str
    value: float
    prior: float
    remaining: float

    @property
    def constrained(self) -> bool:
        """Whether the measurements say something about it."""
        return self.remaining <= UNCONSTRAINED


@dataclass(frozen=True)
class FittedTwin:
    """The result of a fit.

    Attributes:
        spec: The best fit's board.
        loads: The best fit's jobs, in the order of ``jobs``.
        jobs: Names of the jobs.
        members: Other boards and jobs that fit equally well.
        errors: Errors at the points that were fitted.
        held_out: Errors at points that were not.
        constraints: What was learnt about each parameter.
        ignored: Rails in the measurements that the board's twin does not have.
    """

    spec: TwinSpec
    loads: Load
    jobs: tuple[str, ...]
    members: tuple[tuple[TwinSpec, Load], ...]
    errors: tuple[SurfaceError, ...]
    held_out: tuple[SurfaceError, ...]
    constraints: tuple[Constraint, ...]
    ignored: tuple[str, ...]


def fit(
    profiles: Profile | Sequence[Profile],
    spec: TwinSpec,
    *,
    train: NDArray[np.bool_] | None = None,
    ensemble: int = 24,
    seed: int = 0,
) -> FittedTwin:
    """Fit the board ``spec`` and one job a profile to what was measured.

    Args:
        profiles: One job each, all on the same board.
        spec: The board before the fit; its numbers are the centres of the priors.
        train: Settings to fit, over ``points_of(profiles, spec)``'s; all by default. The others
            are held out.
        ensemble: How many further twins that fit equally well.
        seed: Of the ensemble's draws.

    Raises:
        TraceError: Nothing was measured that could be fitted.
        ConfigError: scipy is not installed.
    """
    several = [profiles] if isinstance(profiles, Profile) else list(profiles)
    points = points_of(several, spec)
    used = np.ones(len(points.job), bool) if train is None else train
    solution = solve_points(points.keep(used), parameters_for(points.keep(used), spec))
    parameters, theta = solution.problem.parameters, solution.theta
    best = parameters.board_of(theta), parameters.load_of(theta)
    return FittedTwin(
        spec=best[0],
        loads=best[1],
        jobs=points.jobs,
        members=tuple(members(solution, ensemble, np.random.default_rng(seed))),
        errors=errors_of(points.keep(used), best[1], best[0]),
        held_out=errors_of(points.keep(~used), best[1], best[0]),
        constraints=constraints_of(solution, points.jobs),
        ignored=points.ignored,
    )


def errors_of(points: Points, load: Load, spec: TwinSpec) -> tuple[SurfaceError, ...]:
    """The errors of a twin at ``points``, by job and surface."""
    if not len(points.value):
        return ()
    error = np.log(predict(points, load, spec) / points.value)
    found = []
    for index, job in enumerate(points.jobs):
        for surface in dict.fromkeys(points.surface.tolist()):
            mine = error[(points.surface == surface) & (points.job[points.row] == index)]
            if len(mine):
                rms, worst = float(np.sqrt((mine**2).mean())), float(np.abs(mine).max())
                found.append(SurfaceError(job, surface, len(mine), rms, worst))
    return tuple(found)


def constraints_of(solution: Solution, jobs: Sequence[str]) -> tuple[Constraint, ...]:
    """What the points say about each parameter, by the curvature at the best fit."""
    parameters = solution.problem.parameters
    spread = np.sqrt(np.diag(np.linalg.inv(solution.jacobian.T @ solution.jacobian)))
    names = [*parameters.board, *(f"{job}: {name}" for job in jobs for name in parameters.job)]
    return tuple(
        Constraint(name, float(np.exp(value)), float(np.exp(prior)), float(left))
        for name, value, prior, left in zip(
            names, solution.theta, parameters.mean, spread / parameters.sigma, strict=True
        )
    )


def fit_job(points: Points, job: int, anchors: NDArray[np.bool_], board: Solution) -> Load:
    """A job that the board was not fitted to, from a few settings of it.

    Args:
        points: All settings.
        job: Which job.
        anchors: Settings that may be used, ``[m]``.
        board: A fit to other jobs on the board.
    """
    alone = points.keep(anchors).of_job(job)
    prior = parameters_for(alone, board.problem.parameters.spec)
    others = board.problem.parameters
    cut, width = len(others.board), len(others.job)
    prior = Parameters(
        others.board_of(board.theta), (), others.job, 1, *_same_names(prior, others.job)
    )
    offsets = (board.theta - others.mean)[cut:].reshape(others.jobs, width)
    fitted = np.unique(board.problem.points.job[board.problem.points.row])
    solved = solve_points(alone, prior_from([offsets[j] for j in fitted], prior))
    return solved.problem.parameters.load_of(solved.theta)


def _same_names(prior: Parameters, names: Sequence[str]) -> tuple[FloatArray, FloatArray]:
    """Means and spreads of ``names``, in their order; an unseen one gets a wide, tiny prior."""
    cut = len(prior.board)
    known = dict(zip(prior.job, zip(prior.mean[cut:], prior.sigma[cut:], strict=True), strict=True))
    pairs = [known.get(name, (-12.0, 3.0)) for name in names]
    return np.array([p[0] for p in pairs]), np.array([p[1] for p in pairs])
