"""The board's own governors: what a clock does while it is left as found.

nvhost_podgov aims the GPU at a load and jumps to its ceiling above ``LOAD_MAX``; schedutil gives
the CPU its utilisation times a headroom; the EMC follows bandwidth and the GPU's own request. Each
picks the table's entry at or above its estimate.
"""

from __future__ import annotations

import numpy as np

from rlgov.boards.twin.physics import StepCost
from rlgov.boards.twin.spec import TwinSpec
from rlgov.work import FloatArray

LOAD_MAX = 0.9
"""nvhost_podgov's ``load_max`` (900 per mille): above it the GPU goes to its ceiling."""


def snap_up(f_ghz: FloatArray, levels_ghz: FloatArray) -> FloatArray:
    """The table's entry at or above ``f_ghz`` (the last one above the table)."""
    index = np.searchsorted(levels_ghz, f_ghz * (1 - 1e-9))
    snapped: FloatArray = levels_ghz[np.minimum(index, len(levels_ghz) - 1)]
    return snapped


def next_clocks(
    clocks_ghz: FloatArray, cost: StepCost, ceiling_ghz: FloatArray, spec: TwinSpec
) -> FloatArray:
    """Where the three governors go next, ``[..., 3]`` GHz, from a step at ``clocks_ghz``."""
    g = spec.governors
    tables = [np.asarray(spec.knobs[k].levels_mhz) / 1e3 for k in ("gpu", "cpu", "emc")]
    gpu_max = tables[0][-1]
    wanted_gpu = np.where(
        cost.gpu_load > LOAD_MAX, gpu_max, clocks_ghz[..., 0] * cost.gpu_load / g.gpu_target
    )
    wanted_cpu = np.maximum(
        clocks_ghz[..., 1] * cost.cpu_load * g.cpu_headroom, g.cpu_floor_mhz / 1e3
    )
    asked_by_gpu = g.emc_gpu_floor * tables[2][-1] * np.minimum(cost.gpu_load / 0.5, 1.0)
    wanted_emc = np.maximum(clocks_ghz[..., 2] * cost.emc_load / g.emc_target, asked_by_gpu)
    wanted = [wanted_gpu, wanted_cpu, wanted_emc]
    snapped = [snap_up(w, table) for w, table in zip(wanted, tables, strict=True)]
    return np.minimum(np.stack(snapped, axis=-1), ceiling_ghz)
