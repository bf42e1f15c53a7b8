"""The least-squares problem of a fit: a twin's predictions against measured points."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from rlgov.boards.twin.physics import NOMINAL, Load, StepCost, step_cost, total_watts
from rlgov.boards.twin.powercap import busy_watts, gpu_within_limit
from rlgov.boards.twin.spec import COMPONENTS, TwinSpec
from rlgov.errors import ConfigError
from rlgov.traces.fit_parameters import Parameters
from rlgov.traces.fit_points import ENERGY, TIME, Points
from rlgov.work import FloatArray

NOISE = {"time": 0.004, "power": 0.007, "energy": 0.01, "rail": 0.01}
"""Relative error expected of a measured figure, until the fit has shown its own."""
HEAT_PASSES = 2
"""Passes between power and the temperature that it causes; leakage makes the loop weak."""

HOTTEST_C = 125.0
"""Silicon that ran at all was not hotter; keeps trial steps of a fit from running away."""


@dataclass(frozen=True)
class Problem:
    """Points to be explained by parameters.

    Attributes:
        points: What was measured.
        parameters: What may be turned.
        noise: Relative error of each figure, ``[k]``.
    """

    points: Points
    parameters: Parameters
    noise: FloatArray

    def predict(self, theta: FloatArray) -> FloatArray:
        """The figures that the twin at ``theta`` would show, ``[k]``."""
        spec = self.parameters.board_of(theta)
        return predict(self.points, self.parameters.load_of(theta), spec)

    def residuals(self, theta: FloatArray) -> FloatArray:
        """Deviations of figures and of parameters, each in its standard deviation, ``[k + p]``."""
        return self.shifted(theta, 0.0, self.parameters.mean)

    def shifted(self, theta: FloatArray, data: FloatArray | float, mean: FloatArray) -> FloatArray:
        """As `residuals` with the figures off by ``data`` (in logs) and other prior means."""
        # A wild trial step must not overflow; no sensible solution is as far as this.
        reach = 8.0 * self.parameters.sigma
        near = np.clip(theta, self.parameters.mean - reach, self.parameters.mean + reach)
        error = np.log(self.predict(near) / self.points.value) - data
        prior = (theta - mean) / self.parameters.sigma
        return np.concatenate([error / self.noise, prior])


@dataclass(frozen=True)
class Solution:
    """A solved `Problem`.

    Attributes:
        problem: What was solved.
        theta: Its parameters at the best fit, ``[p]``.
        jacobian: Derivatives of its residuals there, ``[k + p, p]``.
    """

    problem: Problem
    theta: FloatArray
    jacobian: FloatArray


def expected_noise(points: Points) -> FloatArray:
    """`NOISE` of every figure, ``[k]``."""
    return np.array([NOISE[str(surface).partition(" ")[0]] for surface in points.surface])


def predict(points: Points, load: Load, spec: TwinSpec) -> FloatArray:
    """The figures of ``points`` on a board with jobs ``load``, ``[k]``."""
    cost = cost_at(points, load, spec)
    watts = np.stack([np.broadcast_to(cost.component_w[c], cost.time_s.shape) for c in COMPONENTS])
    power = (points.weights * watts.T[points.row]).sum(-1)
    time_s = cost.time_s[points.row]
    by_kind = np.where(points.kind == ENERGY, power * time_s, power)
    shown: FloatArray = np.where(points.kind == TIME, time_s, by_kind)
    return shown


def cost_at(points: Points, load: Load, spec: TwinSpec) -> StepCost:
    """Steady cost of every setting, warmed by its own power, within its power limit."""
    rows = load.take(points.job)
    gpu, cpu, emc = points.clocks_ghz.T
    capped = np.isfinite(points.limit_w)
    thermal = spec.thermal
    temperature = np.full(len(points.job), thermal.ambient_c + 20.0)
    cost = step_cost(rows, gpu, cpu, emc, temperature, spec)
    for _ in range(HEAT_PASSES):
        if capped.any():

            def watts(ghz: FloatArray, celsius: FloatArray = temperature) -> FloatArray:
                return busy_watts(rows, np.stack([ghz, cpu, emc], -1), celsius, spec, NOMINAL)

            floor = spec.knobs["gpu"].levels_mhz[0] / 1e3
            free = points.clocks_ghz[:, 0]
            gpu = gpu_within_limit(watts, free, floor, points.limit_w, spec.power_softness)
        cost = step_cost(rows, gpu, cpu, emc, temperature, spec)
        total = total_watts(cost.component_w, spec)
        warmed = thermal.ambient_c + thermal.resistance_k_per_w * total
        temperature = np.minimum(warmed, HOTTEST_C)
    return cost


def solve(
    residuals: Callable[[FloatArray], FloatArray], start: FloatArray, evaluations: int = 60
) -> tuple[FloatArray, FloatArray]:
    """The least-squares solution and its Jacobian.

    Args:
        residuals: Function of the parameters.
        start: Where to begin.
        evaluations: Steps allowed.
    """
    optimize = _scipy_optimize()
    found = optimize.least_squares(
        residuals, start, method="trf", x_scale="jac", max_nfev=evaluations, ftol=1e-6, xtol=1e-6
    )
    return np.asarray(found.x, float), np.asarray(found.jac, float)


def solve_points(points: Points, parameters: Parameters) -> Solution:
    """The best parameters for ``points``."""
    problem = Problem(points, parameters, expected_noise(points))
    theta, jacobian = solve(problem.residuals, parameters.mean)
    return Solution(problem, theta, jacobian)


def _scipy_optimize() -> Any:
    try:
        return import_module("scipy.optimize")
    except ImportError as error:
        raise ConfigError("fitting needs scipy: install rlgov[fit]") from error
