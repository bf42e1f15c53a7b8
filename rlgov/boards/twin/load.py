"""A job's work in one board's own terms, and what a co-runner makes of it."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import NDArray

from rlgov.boards.twin.spec import TwinSpec
from rlgov.work import FloatArray, Work


@dataclass(frozen=True)
class Load:
    """A job's work in one board's own terms: cycles of each clock, joules at v = 1.

    Attributes:
        gpu_gcycle: Giga-cycles of the GPU clock, ``[..., 3]``.
        mem_gcycle: Giga-cycles of the EMC clock, ``[..., 3]``.
        host_gcycle: Giga-cycles of the training thread's CPU clock, ``[..., 3]``.
        gpu_j: Dynamic joules of the GPU's operations at v = 1, ``[..., 3]``.
        soc_j: Joules in controller and fabric, ``[...]``.
        mem_j: Joules in the DRAM, ``[...]``.
        loader_gcycle: Giga-cycles of the data-loading workers, ``[...]``.
        loader_workers: Cores that share them, ``[...]``.
        fixed_s: Seconds that no clock changes, ``[...]``.
        spin: Share of its waiting that the training thread spins, ``[...]``.
    """

    gpu_gcycle: FloatArray
    mem_gcycle: FloatArray
    host_gcycle: FloatArray
    gpu_j: FloatArray
    soc_j: FloatArray
    mem_j: FloatArray
    loader_gcycle: FloatArray
    loader_workers: FloatArray
    fixed_s: FloatArray
    spin: FloatArray

    def __len__(self) -> int:
        return int(self.fixed_s.shape[0])

    def take(self, index: NDArray[np.intp] | slice) -> Load:
        """The jobs at ``index``."""
        return Load(**{f.name: getattr(self, f.name)[index] for f in fields(self)})

    def against_grid(self) -> Load:
        """Insert an axis after the jobs', to broadcast against a grid of settings."""
        return Load(**{f.name: getattr(self, f.name)[:, None] for f in fields(self)})

    def scaled(self, factor: FloatArray | float) -> Load:
        """The same job with ``factor`` (``[...]``) times the device work, as longer batches give.

        Host work a step does not grow with the batch: the same kernels are launched.
        """
        factor = np.asarray(factor, float)
        per_phase = factor[..., None]
        return Load(
            gpu_gcycle=self.gpu_gcycle * per_phase,
            mem_gcycle=self.mem_gcycle * per_phase,
            host_gcycle=self.host_gcycle,
            gpu_j=self.gpu_j * per_phase,
            soc_j=self.soc_j * factor,
            mem_j=self.mem_j * factor,
            loader_gcycle=self.loader_gcycle * factor,
            loader_workers=self.loader_workers,
            fixed_s=self.fixed_s,
            spin=self.spin,
        )


def load_of(work: Work, spec: TwinSpec) -> Load:
    """Translate counted work into the board's own cycles and joules.

    A kernel loses ``launch_kcycle`` GPU cycles in ramping up and draining, so that jobs of many
    small kernels reach a smaller share of the peak without a separate efficiency for each.
    """
    work = work.batched()
    gpu, memory, cpu = spec.gpu, spec.memory, spec.cpu
    gpu_gcycle = 1e-9 * (
        work.flop / (gpu.flop_per_cycle * gpu.efficiency)
        + work.flop_half / (gpu.half_flop_per_cycle * gpu.half_efficiency)
        + work.launch * gpu.launch_kcycle * 1e3
    )
    byte = work.byte.sum(-1)
    return Load(
        gpu_gcycle=gpu_gcycle,
        mem_gcycle=1e-9 * work.byte / (memory.byte_per_cycle * memory.efficiency),
        host_gcycle=work.host_gcycle + 1e-6 * work.launch * cpu.launch_kcycle,
        gpu_j=1e-12
        * (work.flop * gpu.flop_pj + work.flop_half * gpu.half_flop_pj + work.byte * gpu.byte_pj),
        soc_j=1e-12 * byte * memory.soc_byte_pj,
        mem_j=1e-12 * byte * memory.mem_byte_pj,
        loader_gcycle=work.loader_gcycle,
        loader_workers=work.loader_workers,
        fixed_s=work.fixed_s,
        spin=work.spin,
    )


def beside(
    load: Load,
    gpu_share: FloatArray | float = 0.0,
    memory_share: FloatArray | float = 0.0,
    cpu_share: FloatArray | float = 0.0,
) -> Load:
    """``load`` beside a co-runner that takes shares (0 to below 1) of GPU, bandwidth and CPU.

    The job's own share shrinks, so its work takes longer; what the co-runner does in the meantime
    draws power like the job's own and is on the same rails.
    """
    gpu = 1.0 / (1.0 - np.asarray(gpu_share, float))
    memory = 1.0 / (1.0 - np.asarray(memory_share, float))
    cpu = 1.0 / (1.0 - np.asarray(cpu_share, float))
    return replace(
        load,
        gpu_gcycle=load.gpu_gcycle * gpu[..., None],
        mem_gcycle=load.mem_gcycle * memory[..., None],
        host_gcycle=load.host_gcycle * cpu[..., None],
        gpu_j=load.gpu_j * gpu[..., None],
        soc_j=load.soc_j * memory,
        mem_j=load.mem_j * memory,
        loader_gcycle=load.loader_gcycle * cpu,
    )
