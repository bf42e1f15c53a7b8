"""Other twins that fit the same measurements equally well."""

from __future__ import annotations

import numpy as np

from rlgov.boards.twin.physics import Load
from rlgov.boards.twin.spec import TwinSpec
from rlgov.traces.fit_solve import Problem, Solution, solve
from rlgov.work import FloatArray

EQUALLY_WELL, SLACK = 1.3, 0.002
"""A member errs on no surface by more than this factor over the best fit, or this much beyond."""
DRAWBACKS, DRAWBACK = 12, 0.75
"""Tries of drawing a member back, and what each leaves of its distance."""


def members(
    solution: Solution, count: int, rng: np.random.Generator
) -> list[tuple[TwinSpec, Load]]:
    """``count`` twins that fit as well as the best one.

    The problem is solved again and again with the figures off by their noise and every prior's
    centre drawn anew (randomised maximum likelihood); each solution is drawn back towards the best
    fit until it errs no more than `EQUALLY_WELL` and `SLACK` allow.
    """
    problem, parameters = solution.problem, solution.problem.parameters
    allowed = _allowed(problem, solution.theta)
    noise = np.sqrt(problem.noise**2 + _surface_rms(problem, solution.theta) ** 2)
    weighed = Problem(problem.points, parameters, noise)
    found = []
    for _ in range(count):
        data = noise * rng.standard_normal(len(noise))
        mean = parameters.mean + parameters.sigma * rng.standard_normal(len(parameters.mean))

        def residuals(
            theta: FloatArray, data: FloatArray = data, mean: FloatArray = mean
        ) -> FloatArray:
            return weighed.shifted(theta, data, mean)

        start = _drawn(solution, rng)
        theta, _ = solve(residuals, start, evaluations=8)
        theta = _drawn_back(problem, theta, solution.theta, allowed)
        found.append((parameters.board_of(theta), parameters.load_of(theta)))
    return found


def _drawn(solution: Solution, rng: np.random.Generator) -> FloatArray:
    """A start for a member, from the normal approximation at the best fit."""
    root = np.linalg.cholesky(np.linalg.inv(solution.jacobian.T @ solution.jacobian))
    drawn: FloatArray = solution.theta + root @ rng.standard_normal(len(solution.theta))
    return drawn


def _surface_rms(problem: Problem, theta: FloatArray) -> FloatArray:
    """The error of each figure's surface (all jobs together), ``[k]``."""
    error = np.log(problem.predict(theta) / problem.points.value)
    rms = np.zeros(len(error))
    for surface in np.unique(problem.points.surface):
        mine = problem.points.surface == surface
        rms[mine] = np.sqrt((error[mine] ** 2).mean())
    return rms


def _allowed(problem: Problem, theta: FloatArray) -> FloatArray:
    best = _surface_rms(problem, theta)
    return np.maximum(EQUALLY_WELL * best, best + SLACK)


def _drawn_back(
    problem: Problem, theta: FloatArray, best: FloatArray, allowed: FloatArray
) -> FloatArray:
    candidate = theta
    for _ in range(DRAWBACKS):
        if (_surface_rms(problem, candidate) <= allowed).all():
            break
        candidate = best + DRAWBACK * (candidate - best)
    return candidate
