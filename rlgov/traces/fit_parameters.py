"""What a fit may change: the board's parameters, and each job's load, all as logarithms.

Every parameter has a prior: the board's from its spec, the job's from the size of the measured
figures. What no measurement constrains stays there, with the prior's own uncertainty.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from rlgov.boards.twin.physics import Load
from rlgov.boards.twin.spec import TwinSpec
from rlgov.traces.fit_points import ENERGY, POWER, TIME, Points
from rlgov.work import FloatArray

BOARD_PRIORS: dict[str, float] = {
    "smooth.gpu_memory": 0.3,
    "gpu.voltage.knee_ghz": 0.3,
    "gpu.voltage.slope_per_ghz": 0.4,
    "gpu.leak_w": 0.5,
    "gpu.clock_w_per_ghz": 0.7,
    "memory.soc_clock_w_per_ghz": 0.5,
    "memory.mem_clock_w_per_ghz": 0.5,
    "memory.soc_static_w": 0.5,
    "memory.mem_static_w": 0.5,
    "cpu.leak_w": 0.4,
    "cpu.core_w_per_ghz": 0.4,
    "base_w": 0.3,
    "power_softness": 0.5,
}
"""Parameters of a board -> standard deviation of their logarithm before any measurement."""

JOB_PRIORS: dict[str, float] = {
    "gpu_gcycle": 1.5,
    "mem_gcycle": 1.5,
    "host_gcycle": 1.5,
    "fixed_s": 2.0,
    "gpu_j": 1.5,
    "soc_j": 1.5,
    "mem_j": 1.0,
    "spin": 1.0,
}
"""Parameters of a job -> the same. ``spin`` is a share: its logit varies."""

_ENERGIES = ("gpu_j", "soc_j", "mem_j", "spin")
_TINY = 1e-12


@dataclass(frozen=True)
class Guess:
    """Rough size of a job at its fastest setting, to centre the priors on."""

    time_s: float
    power_w: float
    clocks_ghz: FloatArray


@dataclass(frozen=True)
class Parameters:
    """The vector that a fit turns, and how it becomes a board and jobs.

    Attributes:
        spec: The board before the fit.
        board: Paths of the board's fitted parameters.
        job: Names of each job's fitted parameters.
        jobs: How many jobs.
        mean: Prior means, ``[p]``.
        sigma: Prior standard deviations, ``[p]``.
    """

    spec: TwinSpec
    board: tuple[str, ...]
    job: tuple[str, ...]
    jobs: int
    mean: FloatArray
    sigma: FloatArray

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Name of each entry, jobs by number."""
        return self.board + tuple(f"{name}[{j}]" for j in range(self.jobs) for name in self.job)

    def board_of(self, theta: FloatArray) -> TwinSpec:
        """The board at ``theta``."""
        spec = self.spec
        for path, value in zip(self.board, theta, strict=False):
            spec = with_value(spec, path, float(np.exp(value)))
        return spec

    def load_of(self, theta: FloatArray) -> Load:
        """The jobs at ``theta``, with all their work in one phase."""
        table = theta[len(self.board) :].reshape(self.jobs, len(self.job))
        values = {name: np.exp(table[:, i]) for i, name in enumerate(self.job)}
        zero = np.zeros(self.jobs)
        spin = values.get("spin", zero)

        def phases(name: str) -> FloatArray:
            return np.stack([values.get(name, zero), zero, zero], -1)

        soc = values.get("soc_j", zero)
        tied = self.spec.memory.mem_byte_pj / max(self.spec.memory.soc_byte_pj, _TINY)
        return Load(
            gpu_gcycle=phases("gpu_gcycle"),
            mem_gcycle=phases("mem_gcycle"),
            host_gcycle=phases("host_gcycle"),
            gpu_j=phases("gpu_j"),
            soc_j=soc,
            mem_j=values.get("mem_j", soc * tied),
            loader_gcycle=zero,
            loader_workers=zero,
            fixed_s=values["fixed_s"],
            spin=spin / (1.0 + spin),
        )

    def freeze_board(self, theta: FloatArray) -> Parameters:
        """Only the jobs free; the board as at ``theta``."""
        cut = len(self.board)
        return replace(
            self,
            spec=self.board_of(theta),
            board=(),
            mean=self.mean[cut:],
            sigma=self.sigma[cut:],
        )


def with_value(spec: TwinSpec, path: str, value: float) -> TwinSpec:
    """``spec`` with the number at a dotted ``path`` replaced."""
    head, _, rest = path.partition(".")
    inner: Any = value
    if rest:
        inner = _replaced(getattr(spec, head), rest, value)
    return replace(spec, **{head: inner})


def _replaced(node: Any, path: str, value: float) -> Any:
    head, _, rest = path.partition(".")
    inner = _replaced(getattr(node, head), rest, value) if rest else value
    return replace(node, **{head: inner})


def value_at(spec: TwinSpec, path: str) -> float:
    """The number at a dotted ``path`` of ``spec``."""
    node: Any = spec
    for part in path.split("."):
        node = getattr(node, part)
    return float(node)


def parameters_for(points: Points, spec: TwinSpec) -> Parameters:
    """The parameters that ``points`` may have something to say about, with their priors."""
    board = tuple(path for path in BOARD_PRIORS if _worth_fitting(path, points, spec))
    job = _job_parameters(points, spec)
    mean = [np.log(value_at(spec, path)) for path in board]
    sigma = [BOARD_PRIORS[path] for path in board]
    for index in range(len(points.jobs)):
        centre = job_centre(guess_of(points, index, spec))
        mean += [float(np.log(max(centre[name], _TINY))) for name in job]
        sigma += [JOB_PRIORS[name] for name in job]
    return Parameters(spec, board, job, len(points.jobs), np.array(mean), np.array(sigma))


def _worth_fitting(path: str, points: Points, spec: TwinSpec) -> bool:
    powered = bool((points.kind != TIME).any())
    on_cpu = spec.knobs["cpu"].offered
    if path == "power_softness":
        return bool(np.isfinite(points.limit_w).any())
    if path.startswith("cpu."):
        return powered and on_cpu and value_at(spec, path) > 0
    return (powered or path.startswith("smooth.")) and value_at(spec, path) > 0


def _job_parameters(points: Points, spec: TwinSpec) -> tuple[str, ...]:
    names = list(JOB_PRIORS)
    if not (points.kind != TIME).any():
        names = [name for name in names if name not in _ENERGIES]
    if not spec.knobs["cpu"].offered:
        names = [name for name in names if name not in ("host_gcycle", "spin")]
    if not any(str(surface).startswith("rail") for surface in points.surface):
        names = [name for name in names if name != "mem_j"]
    return tuple(names)


def guess_of(points: Points, job: int, spec: TwinSpec) -> Guess:
    """A job's size from its fastest setting; what was not measured from the board's own scale."""
    rows = np.flatnonzero(points.job == job)
    known: dict[str, list[tuple[float, int]]] = {TIME: [], POWER: [], ENERGY: []}
    for row, kind, value, surface in zip(
        points.row, points.kind, points.value, points.surface, strict=True
    ):
        if row in rows and not str(surface).startswith("rail"):
            known[str(kind)].append((float(value), int(row)))
    power = max(known[POWER])[0] if known[POWER] else _loaded_w(spec)
    if known[TIME]:
        time_s, row = min(known[TIME])
    elif known[ENERGY]:
        joules, row = min(known[ENERGY])
        time_s = joules / power
    else:
        time_s, row = 1.0, int(rows[-1])
    return Guess(time_s, power, points.clocks_ghz[row])


def _loaded_w(spec: TwinSpec) -> float:
    """What a busy board draws when nothing else is known: a few times its idle power."""
    idle = spec.base_w + spec.gpu.leak_w + spec.memory.soc_static_w + spec.memory.mem_static_w
    return 4.0 * idle


def job_centre(guess: Guess) -> dict[str, float]:
    """Prior medians of a job's parameters: half compute, half memory, a little of the rest."""
    gpu, cpu, emc = guess.clocks_ghz
    joules = guess.time_s * guess.power_w
    return {
        "gpu_gcycle": 0.6 * guess.time_s * gpu,
        "mem_gcycle": 0.6 * guess.time_s * emc,
        "host_gcycle": 0.1 * guess.time_s * cpu,
        "fixed_s": 0.03 * guess.time_s,
        "gpu_j": 0.2 * joules,
        "soc_j": 0.2 * joules,
        "mem_j": 0.1 * joules,
        "spin": 1.0,
    }


def prior_from(offsets: Sequence[FloatArray], prior: Parameters) -> Parameters:
    """A new job's prior from how other jobs of the board came to differ from theirs.

    Priors are centred on each job's own size, so that these offsets are about shapes: how much of
    a step is compute, how its joules are split.

    Args:
        offsets: Of each other job, fitted less prior mean, ``[p]``.
        prior: The job's prior by its size alone.
    """
    table = np.stack(offsets)
    few = 0.3**2 / len(table)  # the mean of a few jobs says little about the next one
    spread = np.sqrt(table.var(0) * (1.0 + 1.0 / len(table)) + few)
    return replace(prior, mean=prior.mean + table.mean(0), sigma=np.minimum(spread, prior.sigma))
