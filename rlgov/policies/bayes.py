"""``bayes``: constrained Bayesian optimisation over the settings, by scikit-learn's processes.

One Gaussian process for the cost and one for step time, for each job; the next setting has the
largest expected improvement times the probability that it keeps to the budget (Gardner et al. 2014)
and to the cap. Slow: a job costs a second or more over thirty windows. Needs the extra ``bayes``.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rlgov.errors import ConfigError
from rlgov.policies.arguments import at_least, typed_arguments
from rlgov.policies.arms import joint_settings
from rlgov.policies.base import Observation, Policy, PolicyContext
from rlgov.policies.reading import LastWindow, Wishes, reference_clocks, reference_utilisation
from rlgov.work import FloatArray


@dataclass(frozen=True)
class BayesSpec:
    """Parameters of ``bayes``.

    Attributes:
        levels: Levels kept of each knob's table.
        initial: Settings measured before the first fit, each a twentieth of the clocks lower.
        refit_every: Windows between two fits of the processes' own parameters.
        noise: Standard error of a window's logs.
        sensitivity: Assumed slope of log time over log clock of CPU and EMC before anything is
            seen (the GPU's is its utilisation as found); without it, what is far looks free.
        confidence: Probability of keeping to the budget below which a setting is not tried.
    """

    levels: int = 8
    initial: int = 3
    refit_every: int = 5
    noise: float = 0.01
    sensitivity: float = 0.2
    confidence: float = 0.8

    def __post_init__(self) -> None:
        for key in ("levels", "initial", "refit_every"):
            at_least("bayes", key, getattr(self, key), 1)
        at_least("bayes", "noise", self.noise, 1e-4)
        at_least("bayes", "sensitivity", self.sensitivity, 0.0)
        if not 0 <= self.confidence < 1:
            raise ConfigError("policy_args.bayes.confidence must be at least 0 and below 1")


@dataclass
class _Process:
    """A Gaussian process whose own parameters are fitted now and then only."""

    library: Any
    kernels: Any
    noise: float
    kernel: Any = field(default=None)

    def fit(self, x: FloatArray, y: FloatArray, *, anew: bool) -> Any:
        """The process given ``y`` at ``x``."""
        start = self.kernel or self._prior(x.shape[1])
        model = self.library.GaussianProcessRegressor(
            kernel=start,
            alpha=self.noise**2,
            optimizer="fmin_l_bfgs_b" if anew else None,
            random_state=0,
        )
        with warnings.catch_warnings():
            # A length that ends at its bound only says that a knob does not matter.
            warnings.simplefilter("ignore")
            model.fit(x, y)
        self.kernel = model.kernel_
        return model

    def _prior(self, knobs: int) -> Any:
        k = self.kernels
        return k.ConstantKernel(0.04, (1e-3, 1.0)) * k.Matern([0.7] * knobs, (0.2, 5.0), nu=2.5)


@dataclass
class _Job:
    """What was seen of one job."""

    cost: _Process
    time: _Process
    slopes: FloatArray = field(default_factory=lambda: np.zeros(3))
    x: list[FloatArray] = field(default_factory=list)
    log_time: list[float] = field(default_factory=list)
    log_energy: list[float] = field(default_factory=list)

    def expected(self, x: FloatArray) -> FloatArray:
        """Log time at clocks ``[s, 3]`` before anything is seen, ``[s]``."""
        fall = np.log(np.maximum(self.x[0], 1e-3)) - np.log(np.maximum(x, 1e-3))
        expected: FloatArray = fall @ self.slopes
        return expected


class BayesPolicy(Policy):
    """See `BayesSpec`."""

    name = "bayes"

    def __init__(self, context: PolicyContext, spec: BayesSpec) -> None:
        self._spec = spec
        self._library = _library("sklearn.gaussian_process")
        self._kernels = _library("sklearn.gaussian_process.kernels")
        knobs = context.knobs
        self._targets_mhz = joint_settings(knobs, {knob.name: spec.levels for knob in knobs})
        tops = np.nanmax(np.where(np.isnan(self._targets_mhz), -1.0, self._targets_mhz), axis=0)
        self._shares = self._targets_mhz / np.where(tops > 0, tops, np.nan)
        self._jobs: list[_Job] = []
        self._decided = 0

    def begin(self, n: int) -> None:
        """Forget what was measured."""
        noise = self._spec.noise
        self._jobs = [
            _Job(
                _Process(self._library, self._kernels, noise),
                _Process(self._library, self._kernels, noise),
            )
            for _ in range(n)
        ]
        self._decided = 0

    def act(self, observation: Observation) -> FloatArray:
        """The most promising setting of each job."""
        wishes, last = Wishes.read(observation), LastWindow.read(observation)
        reference = reference_clocks(observation)
        busy = reference_utilisation(observation)[:, 0]
        chosen = [
            self._choose(i, wishes, last, reference[i], float(busy[i]))
            for i in range(len(observation))
        ]
        self._decided += 1
        return self._targets_mhz[chosen]

    def _choose(
        self, i: int, wishes: Wishes, last: LastWindow, reference: FloatArray, busy: float
    ) -> int:
        job = self._jobs[i]
        if not job.x:
            job.slopes = np.full(3, self._spec.sensitivity)
            job.slopes[0] = busy
            _see(job, reference, 0.0, 0.0)
        if last.valid[i]:
            _see(job, last.clocks[i], float(last.log_time[i]), float(last.log_energy[i]))
        turned = ~np.isnan(self._targets_mhz)
        open_ = np.flatnonzero(~(turned & ~wishes.offered[i]).any(1))
        x = np.where(turned, self._shares, reference)[open_]
        if self._decided < self._spec.initial:
            wanted = 1.0 - 0.05 * (self._decided + 1)
            return int(open_[np.abs(x - reference * wanted).sum(1).argmin()])
        return int(open_[self._acquisition(job, x, _one(wishes, i)).argmax()])

    def _acquisition(self, job: _Job, x: FloatArray, wish: Wishes) -> FloatArray:
        """Expected improvement times probability of being allowed, ``[s]``."""
        seen, log_time = np.stack(job.x), np.array(job.log_time)
        log_energy = np.array(job.log_energy)
        cost = wish.cost(log_time[None], log_energy[None])[0]
        anew = self._decided % self._spec.refit_every == 0 or job.cost.kernel is None
        mean, spread = job.cost.fit(seen, cost, anew=anew).predict(x, return_std=True)
        beyond = log_time - job.expected(seen)
        slow, slow_spread = job.time.fit(seen, beyond, anew=anew).predict(x, return_std=True)
        slow = slow + job.expected(x)
        allowed = (log_time <= wish.log_budget) & (log_energy - log_time <= wish.log_cap)
        best = float(cost[allowed].min()) if allowed.any() else 0.0
        chance = _below((wish.log_budget - slow) / np.maximum(slow_spread, 1e-6))
        if np.isfinite(wish.log_cap).all() and wish.energy_weight[0] == 0:
            chance = chance * self._cap_chance(job, seen, x, log_energy - log_time, wish)
        value = _improvement(best - mean, np.maximum(spread, 1e-6)) * chance
        sure = chance >= self._spec.confidence
        return np.where(sure, value, chance * 1e-12)

    def _cap_chance(
        self, job: _Job, seen: FloatArray, x: FloatArray, power: FloatArray, wish: Wishes
    ) -> FloatArray:
        process = _Process(self._library, self._kernels, self._spec.noise, job.cost.kernel)
        mean, spread = process.fit(seen, power, anew=False).predict(x, return_std=True)
        return _below((wish.log_cap - mean) / np.maximum(spread, 1e-6))


def bayes(context: PolicyContext, args: Mapping[str, object]) -> Policy:
    """Constrained Bayesian optimisation over thinned tables of all knobs.

    Raises:
        ConfigError: scikit-learn is not installed, or an argument is wrong.
    """
    return BayesPolicy(context, typed_arguments(BayesSpec, "bayes", args))


def _library(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        raise ConfigError(
            f"policy=bayes needs scikit-learn ({error.name} is missing): pip install 'rlgov[bayes]'"
        ) from error


def _see(job: _Job, clocks: FloatArray, log_time: float, log_energy: float) -> None:
    job.x.append(clocks)
    job.log_time.append(log_time)
    job.log_energy.append(log_energy)


def _one(wishes: Wishes, i: int) -> Wishes:
    return Wishes(**{name: values[i : i + 1] for name, values in vars(wishes).items()})


def _improvement(gain: FloatArray, spread: FloatArray) -> FloatArray:
    z = gain / spread
    density = np.exp(-0.5 * z**2) / math.sqrt(2.0 * math.pi)
    improvement: FloatArray = gain * _below(z) + spread * density
    return improvement


def _below(z: FloatArray) -> NDArray[np.float64]:
    """Standard normal distribution function, as the logistic curve that differs by 1 % at most."""
    clipped = np.clip(z, -8.0, 8.0)
    return 1.0 / (1.0 + np.exp(-1.5976 * clipped - 0.07056 * clipped**3))
