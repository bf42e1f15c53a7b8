"""The twin's equations, pure and vectorised: work and clocks in, seconds and watts out.

Time of a step follows a smooth maximum of what the GPU computes, what the memory moves and what
the host issues, phase after phase. On measured latency grids of a Jetson TX2 (13 GPU x 4 EMC
clocks) and decode times of an AGX Orin this form errs by 0.4 to 0.7 %, the plain sum of the parts
by 2 to 6 %. Dynamic power follows achieved throughput times the square of the supply voltage, plus
a clock-tree term that burns while the unit is busy.

Shapes: ``n`` jobs; per-phase arrays are ``[n, 3]``; clocks are ``[n]`` in GHz. Any leading shape
broadcasts, so a grid of settings is ``[1, s]`` clocks against ``[n, 1, 3]`` loads.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rlgov.boards.twin.load import Load, beside, load_of
from rlgov.boards.twin.silicon import NOMINAL, Silicon
from rlgov.boards.twin.spec import TwinSpec, VoltageSpec
from rlgov.work import FloatArray

__all__ = [
    "NOMINAL",
    "Load",
    "Silicon",
    "StepCost",
    "StepLoads",
    "StepTimes",
    "beside",
    "idle_watts",
    "load_of",
    "over_phases",
    "rail_watts",
    "smooth_max",
    "step_cost",
    "step_loads",
    "step_time",
    "total_watts",
    "voltage",
]

KELVIN_REFERENCE_C = 45.0
"""Temperature at which the spec's leakage figures hold."""


@dataclass(frozen=True)
class StepTimes:
    """Where the seconds of a step go.

    Attributes:
        time_s: The whole step, ``[...]``.
        phase_s: Each phase, ``[..., 3]``.
        busy_s: The GPU's own time in each phase, ``[..., 3]``.
        host_s: The training thread's own time in each phase, ``[..., 3]``.
        loading_s: Data loading in the training thread, ``[...]``.
        worker_s: Data loading of each worker beside it, ``[...]``.
    """

    time_s: FloatArray
    phase_s: FloatArray
    busy_s: FloatArray
    host_s: FloatArray
    loading_s: FloatArray
    worker_s: FloatArray


@dataclass(frozen=True)
class StepLoads:
    """How busy each unit is over a step; every array ``[...]``.

    Attributes:
        gpu: Busy share of the GPU, as the board's own counter sees it.
        cpu: Busy share of the busiest core.
        emc: Bandwidth used over the peak at this clock.
        cores_busy: Mean number of busy cores.
    """

    gpu: FloatArray
    cpu: FloatArray
    emc: FloatArray
    cores_busy: FloatArray


@dataclass(frozen=True)
class StepCost:
    """What one step costs at given clocks; every array ``[...]``.

    Attributes:
        time_s: Seconds a step.
        component_w: Mean watts by component, at the given temperature.
        loads: How busy each unit is.
        times: The parts of ``time_s``.
    """

    time_s: FloatArray
    component_w: dict[str, FloatArray]
    loads: StepLoads
    times: StepTimes


def over_phases(values: FloatArray) -> FloatArray:
    """Sum over the last axis of length 3; NumPy's own reduction is five times slower on so few."""
    total: FloatArray = values[..., 0] + values[..., 1] + values[..., 2]
    return total


def smooth_max(a: FloatArray, b: FloatArray, q: float) -> FloatArray:
    """``(a^q + b^q)^(1/q)``, computed from the larger one so that nothing overflows."""
    high = np.maximum(a, b)
    ratio = np.minimum(a, b) / np.maximum(high, 1e-300)
    grown: FloatArray = high * np.exp(np.log1p(ratio**q) / q)
    return grown


def voltage(
    f_ghz: FloatArray, spec: VoltageSpec, slope_scale: FloatArray | float = 1.0
) -> FloatArray:
    """Relative supply voltage at clock ``f_ghz``; 1 below the knee."""
    return 1.0 + spec.slope_per_ghz * slope_scale * np.maximum(f_ghz - spec.knee_ghz, 0.0)


def step_time(
    load: Load, gpu_ghz: FloatArray, cpu_ghz: FloatArray, emc_ghz: FloatArray, spec: TwinSpec
) -> StepTimes:
    """Seconds a step at the given clocks."""
    q = spec.smooth
    busy = smooth_max(
        load.gpu_gcycle / gpu_ghz[..., None], load.mem_gcycle / emc_ghz[..., None], q.gpu_memory
    )
    host = load.host_gcycle / cpu_ghz[..., None]
    phase = smooth_max(busy, host, q.host)
    in_thread = load.loader_workers < 0.5
    loader_s = load.loader_gcycle / (np.maximum(load.loader_workers, 1.0) * cpu_ghz)
    loading, worker = np.where(in_thread, loader_s, 0.0), np.where(in_thread, 0.0, loader_s)
    time_s = smooth_max(over_phases(phase), worker, q.loader) + loading + load.fixed_s
    return StepTimes(time_s, phase, busy, host, loading, worker)


def step_loads(load: Load, times: StepTimes, emc_ghz: FloatArray, spec: TwinSpec) -> StepLoads:
    """How busy each unit is during a step."""
    time_s = times.time_s
    thread = (over_phases(times.host_s) + times.loading_s) / time_s
    thread_busy = np.minimum(thread + load.spin * (1.0 - np.minimum(thread, 1.0)), 1.0)
    worker_load = np.minimum(times.worker_s / time_s, 1.0)
    worker_busy = worker_load * np.maximum(load.loader_workers, 1.0)
    bandwidth = over_phases(load.mem_gcycle) * spec.memory.efficiency
    return StepLoads(
        gpu=np.minimum(over_phases(times.busy_s) / time_s, 1.0),
        cpu=np.maximum(thread_busy, worker_load),
        emc=bandwidth / (emc_ghz * time_s),
        cores_busy=np.minimum(thread_busy + worker_busy, spec.cpu.cores),
    )


def step_cost(
    load: Load,
    gpu_ghz: FloatArray,
    cpu_ghz: FloatArray,
    emc_ghz: FloatArray,
    temperature_c: FloatArray,
    spec: TwinSpec,
    silicon: Silicon | None = None,
) -> StepCost:
    """Seconds and mean watts of a step at the given clocks and temperature."""
    silicon = silicon or NOMINAL
    times = step_time(load, gpu_ghz, cpu_ghz, emc_ghz, spec)
    busy = step_loads(load, times, emc_ghz, spec)
    time_s = times.time_s
    leak = np.exp(spec.thermal.leak_per_k * (temperature_c - KELVIN_REFERENCE_C))
    gated = spec.memory.gated_share
    awake = emc_ghz * (gated + (1.0 - gated) * busy.gpu)
    component_w = {
        "gpu": _gpu_w(load, time_s, busy.gpu, gpu_ghz, leak, spec, silicon),
        "cpu": _cpu_w(busy.cores_busy, cpu_ghz, leak, spec, silicon),
        "soc": _soc_w(load, time_s, awake, spec, silicon),
        "mem": _mem_w(load, time_s, awake, spec, silicon),
        "base": np.broadcast_to(np.asarray(spec.base_w * silicon.base, float), time_s.shape),
    }
    return StepCost(time_s, component_w, busy, times)


def _gpu_w(
    load: Load,
    time_s: FloatArray,
    busy: FloatArray,
    gpu_ghz: FloatArray,
    leak: FloatArray,
    spec: TwinSpec,
    silicon: Silicon,
) -> FloatArray:
    gpu = spec.gpu
    v = voltage(gpu_ghz, gpu.voltage, silicon.voltage)
    clock = gpu.clock_w_per_ghz * gpu_ghz * (busy + gpu.gated_share * (1.0 - busy))
    dynamic = silicon.dynamic * v**2 * (over_phases(load.gpu_j) / time_s + clock)
    watts: FloatArray = dynamic + silicon.leak * gpu.leak_w * v * leak
    return watts


def _cpu_w(
    cores_busy: FloatArray, cpu_ghz: FloatArray, leak: FloatArray, spec: TwinSpec, silicon: Silicon
) -> FloatArray:
    cpu = spec.cpu
    v = voltage(cpu_ghz, cpu.voltage, silicon.voltage)
    dynamic = silicon.dynamic * cores_busy * cpu.core_w_per_ghz * cpu_ghz * v**2
    watts: FloatArray = dynamic + silicon.leak * cpu.leak_w * v * leak
    return watts


def _soc_w(
    load: Load, time_s: FloatArray, clock: FloatArray, spec: TwinSpec, silicon: Silicon
) -> FloatArray:
    memory = spec.memory
    moving = load.soc_j / time_s + memory.soc_clock_w_per_ghz * clock
    watts: FloatArray = silicon.memory * moving + memory.soc_static_w * silicon.leak
    return watts


def _mem_w(
    load: Load, time_s: FloatArray, clock: FloatArray, spec: TwinSpec, silicon: Silicon
) -> FloatArray:
    memory = spec.memory
    moving = load.mem_j / time_s + memory.mem_clock_w_per_ghz * clock
    watts: FloatArray = silicon.memory * moving + memory.mem_static_w
    return watts


def rail_watts(component_w: dict[str, FloatArray], spec: TwinSpec) -> FloatArray:
    """Watts by rail ``[..., rails]``, in the order of ``spec.rails``."""
    rails = [
        sum(weight * component_w[name] for name, weight in weights.items())
        for weights in spec.rails.values()
    ]
    return np.stack(np.broadcast_arrays(*rails), axis=-1).astype(float)


def idle_watts(
    clocks_ghz: FloatArray, temperature_c: FloatArray, spec: TwinSpec, silicon: Silicon
) -> FloatArray:
    """Watts of the total with nothing running at ``clocks_ghz`` (``[..., 3]``), ``[...]``."""
    gpu, cpu, emc = clocks_ghz[..., 0], clocks_ghz[..., 1], clocks_ghz[..., 2]
    none = np.zeros(gpu.shape)
    phases = np.zeros((*gpu.shape, 3))
    nothing = Load(phases, phases, phases, phases, none, none, none, none, none + 1.0, none)
    cost = step_cost(nothing, gpu, cpu, emc, temperature_c, spec, silicon)
    return total_watts(cost.component_w, spec)


def total_watts(component_w: dict[str, FloatArray], spec: TwinSpec) -> FloatArray:
    """Watts of the board's total, by its rule."""
    total: FloatArray = np.zeros_like(component_w["gpu"])
    for rail in spec.total_rails:
        for name, weight in spec.rails[rail].items():
            total = total + weight * component_w[name]
    return total
