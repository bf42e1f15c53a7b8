"""What a policy believes about a job: seconds and joules of *every* setting, kept up to date.

Over the population, the logarithms of time and energy of all settings relative to as found lie
close to a low-dimensional linear space: ``y = mean + basis @ z``. A small network reads the
reference window and gives a Gaussian prior of ``z`` for the job at hand; every window then measured
updates it exactly (a Kalman filter without dynamics). What a governor could not measure never
enters: the input is the observation.

The policy network reads the resulting *regrets*: what each level of each knob would cost at best
above the best setting, with the budget priced at the time's uncertainty.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from rlgov.boards.base import KNOB_NAMES
from rlgov.envs.observation import observation_names
from rlgov.envs.spaces import ActionGrid
from rlgov.errors import PolicyError
from rlgov.policies.actor import Float32Array

LOG_SCALE = 4.0
"""The observation holds logarithms of ratios times this."""
REGRET_SCALE = 20.0
REGRET_CAP = 0.2
"""Regrets beyond this share of the reference's energy all look alike."""
UNREACHABLE = np.float32(50.0)
LEAST_SHARE = 0.01
FULL_SLACK_BUDGET = 0.05
"""Budget from which the whole slack is granted; smaller ones get their share of it."""
VISITED = 12
"""Settings whose own windows are averaged apart from the linear space."""
EXTRAS = ("best_time_margin", "best_time_error", "best_energy", "best_visits", "as_found_regret")

_NAMES = {name: i for i, name in enumerate(observation_names())}


def reference_inputs() -> list[str]:
    """Features of the observation that the prior is read from."""
    return [name for name in _NAMES if name.startswith("reference_")]


def feature_names(grid: ActionGrid) -> list[str]:
    """Names of what `Belief.features` appends to the observation; regrets first."""
    names = []
    for knob, size in zip(KNOB_NAMES, grid.sizes, strict=True):
        names += [f"regret_{knob}_{level}" for level in ["auto", *range(size - 1)]]
    return [*names, *EXTRAS]


@dataclass(frozen=True)
class Surrogate:
    """The learnt part, float32. ``s`` settings in the order of the grid, ``k`` latents, ``h`` wide.

    Attributes:
        mean: Mean log time and log energy of every setting, ``[2, s]``.
        basis: ``[2, k, s]``.
        residual: Standard error of a setting that the latents leave open, ``[2, s]``.
        shift: Of the prior's inputs and their logarithms, ``[d]``.
        scale: Of the prior's inputs and their logarithms, ``[d]``.
        w0: First layer, ``[h, d]``.
        b0: Its bias, ``[h]``.
        w1: Second layer, ``[h, h]``.
        b1: Its bias, ``[h]``.
        w2: Output layer: ``k`` means, then the lower triangle of the precision's Cholesky factor.
        b2: Its bias.
        noise: Standard error of a window's log time and log energy, ``[2]``.
        price: Slope of the price of time beyond the budget, and slack of the budget, ``[2]``.
    """

    mean: Float32Array
    basis: Float32Array
    residual: Float32Array
    shift: Float32Array
    scale: Float32Array
    w0: Float32Array
    b0: Float32Array
    w1: Float32Array
    b1: Float32Array
    w2: Float32Array
    b2: Float32Array
    noise: Float32Array
    price: Float32Array

    def arrays(self) -> dict[str, Float32Array]:
        """Every array by name, for a bundle."""
        return {f.name: getattr(self, f.name) for f in fields(self)}

    @staticmethod
    def of_arrays(arrays: Mapping[str, Float32Array]) -> Surrogate:
        """The inverse of `arrays`."""
        return Surrogate(**{f.name: arrays[f.name] for f in fields(Surrogate)})

    def check(self, grid: ActionGrid, where: str) -> None:
        """Refuse arrays that do not fit together, or not the grid.

        Raises:
            PolicyError: With what was expected.
        """
        k = self.basis.shape[1] if self.basis.ndim == 3 else 0
        s, d, h = math.prod(grid.sizes), 2 * len(reference_inputs()), len(self.b0)
        out = k + k * (k + 1) // 2
        expected: dict[str, tuple[int, ...]] = {
            "mean": (2, s), "basis": (2, k, s), "residual": (2, s),
            "shift": (d,), "scale": (d,), "w0": (h, d), "b0": (h,), "w1": (h, h), "b1": (h,),
            "w2": (out, h), "b2": (out,), "noise": (2,), "price": (2,),
        }  # fmt: skip
        for name, array in self.arrays().items():
            if array.shape != expected[name]:
                raise PolicyError(
                    f"{where}: the belief's {name} is {array.shape}, not {expected[name]}"
                )

    def prior(self, inputs: Float32Array) -> tuple[Float32Array, Float32Array]:
        """Mean ``[n, k]`` and covariance ``[n, k, k]`` of the latents."""
        k = self.basis.shape[1]
        x = prepared(inputs, self.shift, self.scale)
        x = _silu(x @ self.w0.T + self.b0)
        x = _silu(x @ self.w1.T + self.b1)
        out = x @ self.w2.T + self.b2
        factor = np.zeros((len(out), k, k), np.float64)
        rows, columns = np.tril_indices(k)
        factor[:, rows, columns] = out[:, k:]
        diagonal = np.arange(k)
        factor[:, diagonal, diagonal] = np.exp(np.clip(factor[:, diagonal, diagonal], -2.0, 6.0))
        inverse = np.asarray(np.linalg.inv(factor), np.float64)
        covariance = np.einsum("nji,njk->nik", inverse, inverse)
        return out[:, :k], covariance.astype(np.float32)


def with_logarithms(inputs: Float32Array) -> Float32Array:
    """The inputs and their logarithms, ``[n, 2 d]``: shares near 0 and ratios read alike."""
    logs = np.log(np.maximum(inputs, np.float32(LEAST_SHARE)))
    return np.concatenate([inputs, logs], axis=1)


def prepared(inputs: Float32Array, shift: Float32Array, scale: Float32Array) -> Float32Array:
    """What the prior's network reads, ``[n, 2 d]``: normalised, and 0 where nothing was measured.

    The observation holds exactly 0 for what a board or profile lacks.
    """
    x = np.clip((with_logarithms(inputs) - shift) / scale, -6.0, 6.0)
    lacking = np.tile(inputs == 0.0, (1, 2))
    filled: Float32Array = np.where(lacking, np.float32(0.0), x).astype(np.float32)
    return filled


def _silu(x: Float32Array) -> Float32Array:
    out: Float32Array = x / (np.float32(1.0) + np.exp(-x))
    return out


class Belief:
    """The belief about ``n`` jobs, kept by a policy (and by the learner's environment).

    Args:
        surrogate: The learnt part.
        grid: Levels that the policy may choose.
    """

    def __init__(self, surrogate: Surrogate, grid: ActionGrid) -> None:
        self.surrogate = surrogate
        self.grid = grid
        self.sizes = grid.sizes
        self._actions = grid.every_action()
        self._levels = [
            np.array([np.nan, *grid.fractions.get(name, ())], np.float32) for name in KNOB_NAMES
        ]
        columns = [level[self._actions[:, k]] for k, level in enumerate(self._levels)]
        self._shares = np.stack(columns, axis=1)
        self._turns = self._actions > 0
        k = surrogate.basis.shape[1]
        rows, cols = np.tril_indices(k)
        twice = np.where(rows == cols, 1.0, 2.0)[:, None]
        self._quadratic = np.ascontiguousarray(
            twice * surrogate.basis[0][rows] * surrogate.basis[0][cols], np.float32
        )
        self._tril = rows * k + cols
        self._inputs = [_NAMES[name] for name in reference_inputs()]
        self.begin(0)

    def begin(self, n: int) -> None:
        """Forget everything: ``n`` new episodes start."""
        k = self.surrogate.basis.shape[1]
        self._mean = np.zeros((n, k), np.float32)
        self._cov = np.zeros((n, k, k), np.float32)
        self._index = np.full((n, VISITED), -1)
        self._count = np.zeros((n, VISITED), np.float32)
        self._sums = np.zeros((n, VISITED, 2), np.float32)
        self._next = np.zeros(n, np.int64)
        self._banned: NDArray[np.bool_] | None = None
        self._asked: NDArray[np.int64] | None = None
        self._fresh = True

    def chose(self, actions: NDArray[np.int64]) -> None:
        """Take note of what was asked for, ``[n, 3]``."""
        self._asked = self._flat(actions)

    def features(self, observation: Float32Array) -> Float32Array:
        """Take the last window in, and return `feature_names`, ``[n, f]``."""
        if self._fresh:
            self._mean, self._cov = self.surrogate.prior(observation[:, self._inputs])
            self._fresh = False
        else:
            self._learn(observation)
        return self._features(observation)

    def _learn(self, observation: Float32Array) -> None:
        ran = self._ran(observation)
        self._note_overruled(observation, ran)
        logs = [observation[:, _NAMES[f"recent0_log_{w}"]] / LOG_SCALE for w in ("time", "energy")]
        # A logarithm of exactly 0 is what the observation holds for a figure that is not known.
        known = [logs[0] != 0.0, logs[1] != 0.0]
        for which, y in enumerate(logs):
            self._update(which, ran, y, known[which])
        self._visit(ran, np.stack(logs, axis=1), known[0] | known[1])

    def _ran(self, observation: Float32Array) -> NDArray[np.int64]:
        """Index of the setting that the last window really ran at."""
        actions = np.zeros((len(observation), len(KNOB_NAMES)), np.int64)
        for k, name in enumerate(KNOB_NAMES):
            levels = self._levels[k][1:]
            if not len(levels):
                continue
            clock = observation[:, _NAMES[f"recent0_{name}_clock"]]
            nearest = np.abs(clock[:, None] - levels).argmin(1) + 1
            auto = observation[:, _NAMES[f"recent0_{name}_auto"]] > 0.5
            actions[:, k] = np.where(auto, 0, nearest)
        return self._flat(actions)

    def _flat(self, actions: NDArray[np.int64]) -> NDArray[np.int64]:
        flat: NDArray[np.int64] = np.ravel_multi_index(tuple(actions.T), self.sizes)
        return flat

    def _update(
        self, which: int, ran: NDArray[np.int64], y: Float32Array, valid: NDArray[np.bool_]
    ) -> None:
        """Kalman's update of the latents by one measured logarithm a job."""
        s = self.surrogate
        h = s.basis[which].T[ran]
        ph = np.matmul(self._cov, h[:, :, None])[:, :, 0]
        variance = (ph * h).sum(1) + s.residual[which][ran] ** 2 + s.noise[which] ** 2
        innovation = y - s.mean[which][ran] - (self._mean * h).sum(1)
        gain = np.where(valid[:, None], ph / variance[:, None], 0.0).astype(np.float32)
        self._mean += gain * np.clip(innovation, -0.3, 0.3)[:, None]
        self._cov -= gain[:, :, None] * ph[:, None, :]

    def _visit(self, ran: NDArray[np.int64], logs: Float32Array, valid: NDArray[np.bool_]) -> None:
        jobs = np.arange(len(ran))
        known = self._index == ran[:, None]
        found = known.any(1)
        slot = np.where(found, known.argmax(1), self._next % VISITED)
        fresh = ~found
        self._index[jobs[fresh], slot[fresh]] = ran[fresh]
        self._count[jobs[fresh], slot[fresh]] = 0.0
        self._sums[jobs[fresh], slot[fresh]] = 0.0
        self._next += fresh
        self._count[jobs, slot] += valid
        self._sums[jobs, slot] += np.where(valid[:, None], logs, 0.0)

    def _note_overruled(self, observation: Float32Array, ran: NDArray[np.int64]) -> None:
        """A setting that the guard replaced is not worth asking for again, nor what is slower."""
        if self._asked is None:
            return
        rows = np.flatnonzero((self._asked > 0) & (ran == 0))
        if not len(rows):
            return
        if self._banned is None:
            self._banned = np.zeros((len(ran), len(self._actions)), bool)
        for row in rows:
            reference = [observation[row, _NAMES[f"reference_{k}_clock"]] for k in KNOB_NAMES]
            clocks = np.where(np.isnan(self._shares), reference, self._shares)
            slower = (clocks <= clocks[self._asked[row]] + 1e-6).all(1)
            slower[0] = False
            self._banned[row] |= slower

    def _features(self, observation: Float32Array) -> Float32Array:
        n = len(observation)
        log_time, error, log_energy = self._predict(n)
        cost = self._cost(observation, log_time, error, log_energy)
        best = cost.argmin(1)
        jobs = np.arange(n)
        least = cost[jobs, best]
        regrets = _least_by_level((cost - least[:, None]).reshape(n, *self.sizes))
        budget = np.log1p(observation[:, _NAMES["budget"]])
        visits = (self._count * (self._index == best[:, None])).sum(1)
        extras = [
            10.0 * (log_time[jobs, best] - budget),
            50.0 * error[jobs, best],
            5.0 * log_energy[jobs, best],
            np.minimum(visits / 4.0, 2.0),
            REGRET_SCALE * np.minimum(cost[:, 0] - least, REGRET_CAP),
        ]
        shown = REGRET_SCALE * np.minimum(np.concatenate(regrets, axis=1), REGRET_CAP)
        return np.concatenate([shown, np.stack(extras, axis=1)], axis=1).astype(np.float32)

    def _predict(self, n: int) -> tuple[Float32Array, Float32Array, Float32Array]:
        """Log time, its standard error and log energy of every setting, ``[n, s]`` each."""
        s = self.surrogate
        log_time = self._mean @ s.basis[0] + s.mean[0]
        log_energy = self._mean @ s.basis[1] + s.mean[1]
        packed = self._cov.reshape(n, -1)[:, self._tril]
        variance = np.maximum(packed @ self._quadratic, 0.0) + s.residual[0] ** 2
        self._blend(log_time, variance, 0)
        self._blend(log_energy, None, 1)
        return log_time, np.sqrt(variance), log_energy

    def _blend(self, mean: Float32Array, variance: Float32Array | None, which: int) -> None:
        """Pull visited settings towards the mean of their own windows, in place."""
        rows, slots = np.nonzero(self._count > 0)
        if not len(rows):
            return
        at = self._index[rows, slots]
        count = self._count[rows, slots]
        own = self._sums[rows, slots, which] / count
        own_variance = self.surrogate.noise[which] ** 2 / count
        before = self.surrogate.residual[which][at] ** 2 + (
            variance[rows, at] if variance is not None else own_variance
        )
        share = before / (before + own_variance)
        mean[rows, at] += share * (own - mean[rows, at])
        if variance is not None:
            variance[rows, at] *= 1.0 - share

    def _cost(
        self,
        observation: Float32Array,
        log_time: Float32Array,
        error: Float32Array,
        log_energy: Float32Array,
    ) -> Float32Array:
        """Expected cost of every setting: the objective, and the price of breaking a limit."""
        slope, slack = self.surrogate.price
        allowed = observation[:, _NAMES["budget"]]
        budget = np.log1p(allowed) + slack * np.minimum(allowed / FULL_SLACK_BUDGET, 1.0)
        energy = observation[:, _NAMES["energy_weight"], None]
        time = 2.0 * observation[:, _NAMES["time_weight"], None]
        cost = energy * log_energy + time * log_time
        excess = expected_excess(log_time - budget[:, None], error)
        timed = observation[:, _NAMES["reference_log_time"], None] != 0.0
        cost += slope * np.where(timed, excess, np.float32(0.0))  # a budget needs a clock
        capped = observation[:, _NAMES["has_power_cap"]] > 0.5
        if capped.any():
            cap = observation[capped, _NAMES["power_cap"], None]
            over = log_energy[capped] - log_time[capped] - cap
            cost[capped] += slope * expected_excess(over, np.float32(0.01))
        offered = observation[:, [_NAMES[f"offered_{k}"] for k in KNOB_NAMES]] > 0.5
        if not offered.all():
            cost += UNREACHABLE * ((~offered).astype(np.float32) @ self._turns.T.astype(np.float32))
        if self._banned is not None:
            cost[self._banned] += UNREACHABLE
        return cost


def expected_excess(mean: Float32Array, error: Float32Array | np.float32) -> Float32Array:
    """Expectation of ``max(x, 0)`` for x about ``mean``, by the logistic distribution's form."""
    width = error / np.float32(1.702)
    x = mean / width
    # log(1 + e^x), without overflow; NumPy's logaddexp takes six times as long.
    excess: Float32Array = width * (np.maximum(x, 0.0) + np.log1p(np.exp(-np.abs(x))))
    return excess


def _least_by_level(cube: Float32Array) -> list[Float32Array]:
    """Minimum over the other two knobs for each level of each: ``[n, a, b, c]`` to three arrays.

    Slice by slice along the last axis, which is too short for NumPy to reduce quickly.
    """
    slices = [cube[..., i] for i in range(cube.shape[-1])]
    over_last = slices[0].copy()
    for one in slices[1:]:
        np.minimum(over_last, one, out=over_last)
    last = np.stack([one.min(axis=(1, 2)) for one in slices], axis=1)
    return [over_last.min(axis=2), over_last.min(axis=1), last]
