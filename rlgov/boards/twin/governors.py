"""The board's own governors: what a clock does while it is left as found.

nvhost_podgov aims the GPU at a load and jumps to its ceiling above ``LOAD_MAX``; schedutil gives
the CPU its utilisation times a headroom; the EMC follows bandwidth and the GPU's own request. Each
picks the table's entry at or above its estimate.

A governor looks at tens of milliseconds, not at whole steps: through a busy stretch that is longer
than its period it sees that stretch's load, and only stretches much shorter blur into the mean.
Without this, a job with one host-bound phase would be slowed by its idle remainder.
"""

from __future__ import annotations

import numpy as np

from rlgov.boards.twin.physics import StepLoads, StepTimes, over_phases
from rlgov.boards.twin.spec import TwinSpec
from rlgov.work import FloatArray

LOAD_MAX = 0.9
"""nvhost_podgov's ``load_max`` (900 per mille): above it the GPU goes to its ceiling."""


def snap_up(f_ghz: FloatArray, levels_ghz: FloatArray) -> FloatArray:
    """The table's entry at or above ``f_ghz`` (the last one above the table)."""
    index = np.searchsorted(levels_ghz, f_ghz * (1 - 1e-9))
    snapped: FloatArray = levels_ghz[np.minimum(index, len(levels_ghz) - 1)]
    return snapped


def seen_load(
    mean: FloatArray, busy_s: FloatArray, stretch_s: FloatArray, period_s: float
) -> FloatArray:
    """Highest load that a governor of ``period_s`` sees in a step, ``[...]``.

    Args:
        mean: Load over the whole step, ``[...]``.
        busy_s: Busy seconds of each stretch, ``[..., 3]``.
        stretch_s: Length of each stretch, ``[..., 3]``.
        period_s: How long the governor averages.
    """
    stretches = [(busy_s[..., k], stretch_s[..., k]) for k in range(stretch_s.shape[-1])]
    # All of the step's work together is a stretch too, when a wait for data or disk follows it.
    stretches.append((over_phases(busy_s), over_phases(stretch_s)))
    seen = mean
    for busy, stretch in stretches:
        load = np.minimum(busy / np.maximum(stretch, 1e-12), 1.0)
        seen = np.maximum(seen, mean + (load - mean) * (stretch / (stretch + period_s)))
    return seen


def next_clocks(
    clocks_ghz: FloatArray,
    times: StepTimes,
    loads: StepLoads,
    ceiling_ghz: FloatArray,
    spec: TwinSpec,
) -> FloatArray:
    """Where the three governors go next, ``[..., 3]`` GHz, from a step at ``clocks_ghz``."""
    g = spec.governors
    tables = [np.asarray(spec.knobs[k].levels_mhz) / 1e3 for k in ("gpu", "cpu", "emc")]
    gpu_load = seen_load(loads.gpu, times.busy_s, times.phase_s, g.gpu_period_s)
    cpu_load = _cpu_seen(times, loads, g.cpu_period_s)
    scaled = clocks_ghz[..., 0] * gpu_load / g.gpu_target
    wanted_gpu = np.where(gpu_load > LOAD_MAX, tables[0][-1], scaled)
    wanted_cpu = np.maximum(clocks_ghz[..., 1] * cpu_load * g.cpu_headroom, g.cpu_floor_mhz / 1e3)
    asked_by_gpu = g.emc_gpu_floor * tables[2][-1] * np.minimum(gpu_load / 0.5, 1.0)
    wanted_emc = np.maximum(clocks_ghz[..., 2] * loads.emc / g.emc_target, asked_by_gpu)
    wanted = [wanted_gpu, wanted_cpu, wanted_emc]
    snapped = [snap_up(w, table) for w, table in zip(wanted, tables, strict=True)]
    return np.minimum(np.stack(snapped, axis=-1), ceiling_ghz)


def _cpu_seen(times: StepTimes, loads: StepLoads, period_s: float) -> FloatArray:
    """What schedutil sees; loading in the training thread is a stretch at full load."""
    phases = seen_load(loads.cpu, times.host_s, times.phase_s, period_s)
    sharpness = times.loading_s / (times.loading_s + period_s)
    seen: FloatArray = np.maximum(phases, loads.cpu + (1.0 - loads.cpu) * sharpness)
    return seen
