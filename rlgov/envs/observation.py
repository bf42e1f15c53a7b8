"""The observation: named, fixed in shape, finite, normalised by fixed physical ranges.

Normalisation is part of the environment, not a statistic learnt beside it, so a bundle is whole in
itself. What a board or user does not offer reads 0 and its mask reads 0.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rlgov.boards.base import KNOB_NAMES
from rlgov.envs.memory import RECENT, Memory, Seen
from rlgov.envs.plant import ROLES
from rlgov.reward import Preference
from rlgov.work import FloatArray

BOUND = 5.0
"""Every feature is clipped to plus or minus this."""
POWER_SCALE_W = 30.0
"""Reference power reads 0 at this many watts."""

_PER_KNOB = tuple(KNOB_NAMES)


def observation_names() -> tuple[str, ...]:
    """Names of the features, in order."""
    names = ["budget", "budget_sqrt", "energy_weight", "time_weight", "power_cap", "has_power_cap"]
    names += [f"offered_{k}" for k in _PER_KNOB]
    names += ["decided", "headroom"]
    names += ["reference_log_time", "reference_log_power"]
    names += _seen_names("reference")[2:]
    names += _seen_names("best")
    for i in range(RECENT):
        names += [f"recent{i}_valid", *_seen_names(f"recent{i}")]
    return tuple(names)


def _seen_names(prefix: str) -> list[str]:
    names = [f"{prefix}_log_time", f"{prefix}_log_energy"]
    names += [f"{prefix}_{role}_share" for role in ROLES]
    names += [f"{prefix}_{knob}_utilisation" for knob in _PER_KNOB]
    names += [f"{prefix}_{knob}_clock" for knob in _PER_KNOB]
    names += [f"{prefix}_{knob}_auto" for knob in _PER_KNOB]
    names += [f"{prefix}_temperature"]
    return names


def _seen_columns(seen: Seen) -> list[FloatArray]:
    columns = [4.0 * np.log(seen.time_ratio), 4.0 * np.log(seen.energy_ratio)]
    columns += list(seen.role_share.T)
    columns += list(seen.utilisation.T)
    columns += list(seen.clocks.T)
    columns += [column.astype(float) for column in seen.auto.T]
    columns += [(seen.temperature_c - 60.0) / 30.0]
    return columns


def observe(
    memory: Memory, preference: Preference, offered: NDArray[np.bool_]
) -> NDArray[np.float32]:
    """The observation of every episode, ``[n, len(observation_names())]``, float32.

    Args:
        memory: What has been seen.
        preference: What the user wants.
        offered: Which knobs may be turned, ``[3]`` or ``[n, 3]``.
    """
    n = memory.n
    has_cap = ~np.isnan(preference.power_cap)
    columns: list[FloatArray] = [
        np.minimum(preference.budget, 1.0),
        np.sqrt(np.minimum(preference.budget, 1.0)),
        preference.energy_weight,
        preference.time_weight / 2.0,
        np.where(has_cap, np.log(np.where(has_cap, preference.power_cap, 1.0)), 0.0),
        has_cap.astype(float),
    ]
    columns += list(np.broadcast_to(offered, (n, 3)).T.astype(float))
    columns += [np.minimum(memory.decided / 30.0, 2.0), 10.0 * memory.excess.sum(1) / 50.0]
    reference = memory.reference
    columns += [
        0.5 * np.log10(reference.step_time_s),
        np.log10(reference.total_w / POWER_SCALE_W),
    ]
    columns += _seen_columns(memory.relative(reference, np.ones((n, 3), bool)))[2:]
    columns += _seen_columns(memory.best)
    for seen in memory.recent:
        columns += [np.isfinite(seen.time_ratio).astype(float), *_seen_columns(seen)]
    stacked = np.stack(columns, axis=1)
    finite = np.nan_to_num(stacked, nan=0.0, posinf=BOUND, neginf=-BOUND)
    return np.clip(finite, -BOUND, BOUND).astype(np.float32)
