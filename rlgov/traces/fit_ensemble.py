"""Other twins that fit the same measurements equally well."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rlgov.boards.twin.physics import Load
from rlgov.boards.twin.spec import TwinSpec
from rlgov.traces.fit_solve import Problem, Solution, solve
from rlgov.work import FloatArray

EQUALLY_WELL, SLACK = 1.3, 0.002
"""A member errs on no job's surface by more than this over the best fit, or this much beyond."""
REFINEMENTS = 15
"""Steps of each solution; it starts at the best fit, close by."""
DRAWBACKS, DRAWBACK = 20, 0.75
"""Tries of drawing a member back, and what each leaves of its distance."""


def members(
    solution: Solution, count: int, rng: np.random.Generator
) -> list[tuple[TwinSpec, Load]]:
    """``count`` twins that fit as well as the best one.

    The problem is solved again and again with the figures off by their noise and every prior's
    centre drawn anew (randomised maximum likelihood). A solution that errs more than
    `EQUALLY_WELL` and `SLACK` allow is moved to the nearest that fits the figures as they are, and
    in the end drawn back towards the best fit.
    """
    problem, best = solution.problem, solution.theta
    parameters, allowed = problem.parameters, _allowed(problem, best)
    rms = _surface_rms(problem, best)
    weighed = replace(problem, noise=np.sqrt(problem.noise**2 + rms**2))
    found = []
    for _ in range(count):
        data = weighed.noise * rng.standard_normal(len(rms))
        mean = parameters.mean + parameters.sigma * rng.standard_normal(len(best))
        theta = _solved(weighed, data, mean, best)
        if not (_surface_rms(problem, theta) <= allowed).all():
            theta = _solved(problem, np.zeros(len(rms)), theta, theta)
        theta = _drawn_back(problem, theta, best, allowed)
        found.append((parameters.board_of(theta), parameters.load_of(theta)))
    return found


def _solved(problem: Problem, data: FloatArray, mean: FloatArray, start: FloatArray) -> FloatArray:
    """The solution of ``problem`` with figures off by ``data`` and prior centres ``mean``."""

    def residuals(theta: FloatArray) -> FloatArray:
        return problem.shifted(theta, data, mean)

    return solve(residuals, start, evaluations=REFINEMENTS)[0]


def _surface_rms(problem: Problem, theta: FloatArray) -> FloatArray:
    """The error of each figure's job and surface, ``[k]``."""
    points = problem.points
    error = np.log(problem.predict(theta) / points.value)
    _, surface = np.unique(points.surface, return_inverse=True)
    group = surface * len(points.jobs) + points.job[points.row]
    count = np.bincount(group)
    rms: FloatArray = np.sqrt(np.bincount(group, error**2) / np.maximum(count, 1))[group]
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
