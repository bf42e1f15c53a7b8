"""The oracle's choice, softened: what the warm start imitates."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rlgov.boards.base import Knob
from rlgov.envs.spaces import ActionGrid, IntArray
from rlgov.policies.oracle import Landscape
from rlgov.reward import Preference, RewardSpec, reward_terms, total_reward
from rlgov.work import FloatArray


def every_action(grid: ActionGrid) -> IntArray:
    """Every combination of actions, ``[prod(sizes), 3]``, the last knob running fastest."""
    mesh = np.meshgrid(*(np.arange(size) for size in grid.sizes), indexing="ij")
    return np.stack([m.ravel() for m in mesh], axis=-1)


def every_target(grid: ActionGrid, knobs: list[Knob]) -> FloatArray:
    """Targets in MHz of `every_action`, ``[prod(sizes), 3]``."""
    return grid.targets(every_action(grid), knobs)


def costs(costs_of: Landscape, preference: Preference, spec: RewardSpec) -> FloatArray:
    """Minus the noise-free reward of every setting, ``[n, s]``."""
    wide = Preference(
        *(
            values[:, None]
            for values in (
                preference.budget,
                preference.energy_weight,
                preference.time_weight,
                preference.power_cap,
            )
        )
    )
    return -total_reward(reward_terms(costs_of.time_ratio, costs_of.energy_ratio, wide, spec))


def soft_labels(
    cost: FloatArray, reachable: NDArray[np.bool_], temperature: float, sizes: tuple[int, ...]
) -> list[NDArray[np.float32]]:
    """Probabilities by knob, ``[n, size]`` each: marginals of a softmin over settings.

    Args:
        cost: Of every setting, ``[n, s]``, in the order of `every_action`.
        reachable: Settings that leave alone what is not offered, ``[n, s]``.
        temperature: Difference in cost that changes odds by a factor of e.
        sizes: Actions by knob.
    """
    shown = np.where(reachable, cost, np.inf)
    weight = np.exp(-(shown - shown.min(axis=1, keepdims=True)) / temperature)
    joint = (weight / weight.sum(axis=1, keepdims=True)).reshape(len(cost), *sizes)
    axes = range(1, joint.ndim)
    return [joint.sum(axis=tuple(a for a in axes if a != axis)).astype(np.float32) for axis in axes]
