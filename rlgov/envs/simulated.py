"""A plant of twins with synthetic jobs: what policies are trained and compared on."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, replace

import numpy as np

from rlgov.boards.base import KNOB_NAMES
from rlgov.boards.twin import Load, Silicon, TwinModel, TwinSpec, TwinState, WindowOutcome, load_of
from rlgov.boards.twin.noise import job_seeds, normals
from rlgov.envs.change import Change
from rlgov.envs.plant import Plant, WindowData, role_watts
from rlgov.jobs.jobbatch import JobBatch
from rlgov.work import FloatArray, make_work

DrawJobs = Callable[[int, np.random.Generator], JobBatch]

UNCORRECTED = 0.1
"""Share of the variation of batch sizes that normalising by tokens leaves [assumed]."""
_LENGTH_STREAM = np.uint64(0xA5A5A5A5A5A5A5A5)


@dataclass(frozen=True)
class WindowSpec:
    """How long a window is.

    Attributes:
        min_steps: At least so many steps.
        min_seconds: And at least so many seconds.
        reference_windows: As-found windows at the start, pooled into the reference.
    """

    min_steps: int = 24
    min_seconds: float = 5.0
    reference_windows: int = 4


@dataclass(frozen=True)
class Spread:
    """How far a drawn board and job may lie from the calibrated twin (domain randomisation).

    Attributes:
        silicon: Log-normal spread of every factor of `Silicon`.
        work: Log-normal spread of the job's cycles and joules about what was counted.
        warm: Range of the heat at the start: 0 ambient, 1 the steady state as found.
        drop_rail: Chance that a board lacks each rail's reading.
        drop_loads: Chance that a board lacks every utilisation.
    """

    silicon: float = 0.1
    work: float = 0.2
    warm: tuple[float, float] = (0.0, 1.0)
    drop_rail: float = 0.0
    drop_loads: float = 0.0


class SimulatedPlant(Plant):
    """``n`` twins of one board, each with a job of its own.

    `outcome` and `grid` tell the truth; only evaluations may ask.

    Args:
        spec: The board.
        draw: Draws jobs.
        n: How many side by side.
        window: How long a window is.
        spread: How far boards and jobs vary.
        mode: The power mode the board is found in; its first by default.
        change: What changes while time passes; nothing by default.
        fitted: The load of one job, as fitted to measurements, that every board runs instead of
            what was counted for the drawn ones.
    """

    def __init__(
        self,
        spec: TwinSpec,
        draw: DrawJobs,
        n: int,
        window: WindowSpec,
        spread: Spread,
        mode: str | None = None,
        change: Change | None = None,
        fitted: Load | None = None,
    ) -> None:
        self._fitted = fitted
        self.n = n
        self.spec = spec
        self.window_spec = window
        self._draw = draw
        self._spread = spread
        self._change = change
        self._ceiling = spec.ceilings(mode)
        self.knobs = spec.board_knobs(self._ceiling)
        self._rails = list(spec.rails)
        self._rng = np.random.default_rng(0)
        self.jobs: JobBatch
        self.load: Load
        self.model: TwinModel
        self.state: TwinState
        self.outcome: WindowOutcome
        self._lost: FloatArray
        self._blind: FloatArray

    def reset(self, seed: int | None) -> None:
        """Draw ``n`` new jobs on new silicon; a seed starts the stream of draws anew."""
        if seed is not None:
            self._rng = np.random.default_rng(seed)
        rng = self._rng
        jobs = self._draw(self.n, rng)
        if self._fitted is None:
            counted = load_of(jobs.work, self.spec)
        else:
            counted = self._fitted.take(np.zeros(self.n, np.intp))
        load = perturbed(counted, self._spread.work, rng)
        silicon = Silicon.draw(self.n, self._spread.silicon, rng)
        warm = rng.uniform(*self._spread.warm, self.n)
        lost = rng.random((self.n, len(self._rails))) < self._spread.drop_rail
        self._lost = np.where(lost, np.nan, 1.0)
        blind = rng.random((self.n, 1)) < self._spread.drop_loads
        self._blind = np.where(blind, np.nan, 1.0)
        seeds = job_seeds(self.n, rng)
        if self._change is not None:
            silicon = self._change.displaced(silicon, seeds)
        self.place(jobs, load, silicon, seeds, warm)

    def place(
        self,
        jobs: JobBatch,
        load: Load,
        silicon: Silicon,
        seeds: np.ndarray[tuple[int], np.dtype[np.uint64]],
        warm: FloatArray | float,
    ) -> None:
        """Put given jobs on given silicon, instead of drawing them."""
        self.jobs, self.load = jobs, load
        self.model = TwinModel(self.spec, silicon, self._ceiling)
        self.state = self.model.start(load, seeds, warm)

    def window(self, targets_mhz: FloatArray) -> WindowData:
        """Run one window on every board."""
        spec = self.window_spec
        model, load = self._now()
        outcome, self.state = model.window(
            self.state, targets_mhz, load, spec.min_steps, spec.min_seconds
        )
        self.outcome = outcome
        seen = outcome.measured
        step_time_s = seen.step_time_s * self._size_error(outcome.steps)
        return WindowData(
            step_time_s=step_time_s,
            step_j=step_time_s * seen.total_w,
            role_w=role_watts(seen.rail_w * self._lost, self._rails, self.spec.rail_roles),
            utilisation=seen.utilisation * self._blind,
            clocks_mhz=seen.clocks_mhz,
            temperature_c=seen.temperature_c,
            steps=outcome.steps,
        )

    def grid(self, targets_mhz: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The truth: noise-free seconds and joules a step of every setting, ``[n, s]`` each."""
        model, load = self._now()
        return model.grid_cost(load, targets_mhz, self.state.temperature_c)

    def all_settings(self) -> FloatArray:
        """Every combination of the knobs' tables and auto, ``[s, 3]``, NaN for auto."""
        offered = {knob.name: knob.allowed_mhz for knob in self.knobs}
        columns = [[*offered.get(name, ()), np.nan] for name in KNOB_NAMES]
        mesh = np.meshgrid(*columns, indexing="ij")
        return np.stack([m.ravel() for m in mesh], axis=-1)

    def _now(self) -> tuple[TwinModel, Load]:
        """Boards and jobs as the next window meets them."""
        if self._change is None:
            return self.model, self.load
        load, silicon = self._change.at(
            self.load, self.model.silicon, self.state.seed, self.state.window
        )
        model = copy(self.model)
        model.silicon = silicon
        return model, load

    def _size_error(self, steps: FloatArray) -> FloatArray:
        """What a meter that corrects for batches' sizes leaves of their variation, ``[n]``."""
        z = normals(self.state.seed ^ _LENGTH_STREAM, self.state.window, 1)[:, 0]
        left = UNCORRECTED * self.jobs.length_cv / np.sqrt(steps)
        return np.exp(left * np.clip(z, -3.0, 3.0))


FITTED_SPREAD = 0.05
"""Spread of silicon and work about a fit: that of repeated measurements, not of a population."""


def about_fitted(spread: Spread) -> Spread:
    """``spread`` narrowed to what a fit leaves open."""
    return replace(
        spread,
        silicon=min(spread.silicon, FITTED_SPREAD),
        work=min(spread.work, FITTED_SPREAD),
    )


def draw_fitted(name: str) -> DrawJobs:
    """Draws a fitted job again and again: all of its work is in its load."""

    def draw(n: int, _: np.random.Generator) -> JobBatch:
        work = make_work().batched().take(np.zeros(n, np.intp))
        nothing = np.zeros(n)
        labels = {"model": np.full(n, name), "family": np.full(n, "fitted")}
        return JobBatch(work, labels, nothing, nothing, nothing, nothing, nothing)

    return draw


def perturbed(load: Load, spread: float, rng: np.random.Generator) -> Load:
    """``load`` with every cycle count and energy off by a log-normal factor of its own."""
    n = len(load)

    def factor(scale: float = 1.0) -> FloatArray:
        return np.exp(rng.normal(0.0, spread * scale, n))

    gpu, host, joules = factor(), factor(1.5), factor()
    mem = factor()
    return Load(
        gpu_gcycle=load.gpu_gcycle * gpu[:, None],
        mem_gcycle=load.mem_gcycle * mem[:, None],
        host_gcycle=load.host_gcycle * host[:, None],
        gpu_j=load.gpu_j * joules[:, None],
        soc_j=load.soc_j * factor(),
        mem_j=load.mem_j * factor(),
        loader_gcycle=load.loader_gcycle * factor(),
        loader_workers=load.loader_workers,
        fixed_s=load.fixed_s,
        spin=load.spin,
    )
