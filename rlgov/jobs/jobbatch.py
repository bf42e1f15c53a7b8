"""Many drawn jobs at once: their work, what they are called, and how far they are from others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rlgov.errors import ConfigError
from rlgov.work import FloatArray, Work


@dataclass(frozen=True)
class Roofline:
    """A crude estimate of a step's time, only to keep jobs of a sensible length.

    Defaults: Jetson AGX Orin 64 GB at its highest clocks, with what share of each peak eager
    PyTorch reaches (assumptions).

    Attributes:
        flop_per_s: Vector operations a second.
        flop_half_per_s: Matrix-unit operations a second.
        byte_per_s: Memory traffic.
        cpu_ghz: Clock of a core.
        launch_gcycle: Giga-cycles of a core a launch.
        reached: Share of the three peaks that is reached.
    """

    flop_per_s: float = 5.3e12
    flop_half_per_s: float = 42e12
    byte_per_s: float = 204.8e9
    cpu_ghz: float = 2.2
    launch_gcycle: float = 20e-6
    reached: tuple[float, float, float] = (0.65, 0.5, 0.75)

    def parts(self, work: Work) -> dict[str, FloatArray]:
        """Seconds of each bottleneck if it were alone, ``[n]`` each."""
        one = work.batched()
        compute = one.flop / (self.flop_per_s * self.reached[0])
        matrix = one.flop_half / (self.flop_half_per_s * self.reached[1])
        host = (one.launch * self.launch_gcycle + one.host_gcycle) / self.cpu_ghz
        return {
            "compute": compute.sum(-1),
            "matrix": matrix.sum(-1),
            "memory": one.byte.sum(-1) / (self.byte_per_s * self.reached[2]),
            "host": host.sum(-1),
            "loader": one.loader_gcycle / np.maximum(one.loader_workers, 1) / self.cpu_ghz,
        }

    def step_s(self, work: Work) -> FloatArray:
        """Seconds of a step, ``[n]``: the slowest resource, and what cannot overlap with it."""
        part = self.parts(work)
        device = np.maximum(part["compute"] + part["matrix"], part["memory"])
        step = np.maximum(device, part["host"])
        beside = work.batched().loader_workers > 0
        step = np.where(beside, np.maximum(step, part["loader"]), step + part["loader"])
        return step + work.batched().fixed_s


@dataclass(frozen=True)
class JobBatch:
    """n jobs.

    Attributes:
        work: What one step of each asks of a board.
        labels: Arrays ``[n]`` by name. Text: ``family``, ``model``, ``kind`` (``encoder`` or
            ``decoder``), ``method``, ``precision``, ``loader``. Numbers: ``batch``, ``seq``,
            ``accumulation``, ``rank``, ``parameters``, ``trainable``, ``memory_gib``, ``step_s``
            (the roofline's). Flags: ``instruct``, ``checkpointing``, ``fused_attention``,
            ``fused_optimizer``, ``lora_all``.
        length_cv: Coefficient of variation of the tokens of a step (0: padded to one length).
        eval_every_steps: Steps between evaluations (0: never).
        eval_batches: Forward passes of an evaluation.
        checkpoint_every_steps: Steps between checkpoints (0: never).
        checkpoint_s: Seconds of writing one.
    """

    work: Work
    labels: dict[str, NDArray[np.generic]]
    length_cv: FloatArray
    eval_every_steps: FloatArray
    eval_batches: FloatArray
    checkpoint_every_steps: FloatArray
    checkpoint_s: FloatArray

    def __len__(self) -> int:
        """Number of jobs."""
        return len(self.work)

    def take(self, index: NDArray[np.intp] | slice) -> JobBatch:
        """The jobs at ``index``."""
        labels = {name: values[index] for name, values in self.labels.items()}
        rest = {name: getattr(self, name)[index] for name in SCHEDULE}
        return JobBatch(self.work.take(index), labels, **rest)

    def describe(self, i: int) -> dict[str, str | float | int | bool]:
        """Job ``i`` in plain values that JSON can hold, for a row of a summary."""
        row = {name: values[i].item() for name, values in self.labels.items()}
        row.update({name: float(getattr(self, name)[i]) for name in SCHEDULE})
        for name in ("loader_gcycle", "loader_workers", "fixed_s", "spin"):
            row[name] = float(getattr(self.work, name)[i])
        return row

    @staticmethod
    def concatenate(batches: Sequence[JobBatch]) -> JobBatch:
        """One batch from several.

        Raises:
            ConfigError: There are none.
        """
        if not batches:
            raise ConfigError("no jobs to put together")
        names = batches[0].labels
        labels = {name: np.concatenate([b.labels[name] for b in batches]) for name in names}
        rest = {name: np.concatenate([getattr(b, name) for b in batches]) for name in SCHEDULE}
        return JobBatch(Work.concatenate([b.work for b in batches]), labels, **rest)


SCHEDULE = (
    "length_cv",
    "eval_every_steps",
    "eval_batches",
    "checkpoint_every_steps",
    "checkpoint_s",
)


def features(work: Work, roofline: Roofline | None = None) -> FloatArray:
    """What a job looks like to a governor, in logs, ``[n, 8]``.

    Columns: step time; operations a byte; matrix units', host's and loader's time over the
    device's; optimizer's share of bytes; launches a second; tokens.
    """
    line = roofline or Roofline()
    one = work.batched()
    part = line.parts(one)
    device = np.maximum(part["compute"] + part["matrix"], part["memory"])
    byte = one.byte.sum(-1)
    step = line.step_s(one)
    columns = [
        step,
        (one.flop + one.flop_half).sum(-1) / byte,
        part["matrix"] / (part["compute"] + part["matrix"]) + 0.01,
        part["host"] / device + 0.01,
        part["loader"] / device + 0.01,
        one.byte[:, 2] / byte + 0.001,
        one.launch.sum(-1) / step,
        one.tokens,
    ]
    logs: FloatArray = np.log(np.stack(columns, -1))
    return logs


def distance_to(train: JobBatch, test: JobBatch, *, chunk: int = 256) -> FloatArray:
    """Distance of each test job to the nearest training job, ``[len(test)]``.

    In `features`, each divided by its standard deviation over the training jobs, so 1 is one
    spread of the population along one feature. Compare with the distance of validation jobs: it is
    not 0 either, and shrinks as more training jobs are given.

    Args:
        train: Jobs that a policy was trained on.
        test: Jobs that it is evaluated on.
        chunk: Test jobs compared at a time.
    """
    base = features(train.work)
    scale = base.std(0) + 1e-9
    near, far = base / scale, features(test.work) / scale
    squares = (near**2).sum(-1)
    found = []
    for start in range(0, len(far), chunk):
        part = far[start : start + chunk]
        gap = squares - 2 * part @ near.T + (part**2).sum(-1)[:, None]
        found.append(np.sqrt(np.maximum(gap.min(-1), 0.0)))
    return np.concatenate(found) if found else np.zeros(0)
