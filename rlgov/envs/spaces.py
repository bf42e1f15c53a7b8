"""Actions: one level of normalised frequency per knob, or ``auto``.

A level is a share of the knob's as-found maximum, never an index into the board's table: the same
board's table changes between releases, and a policy must survive that. `ActionGrid.targets` finds
the nearest entry of the table at hand.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from rlgov.boards.base import KNOB_NAMES, Knob
from rlgov.errors import ConfigError
from rlgov.work import FloatArray

IntArray = NDArray[np.int64]

AUTO_ACTION = 0
"""Action that leaves a knob as found; level k is action k + 1."""


@dataclass(frozen=True)
class ActionGrid:
    """Levels a policy may choose, as shares of each knob's maximum, ascending.

    Attributes:
        fractions: Knob -> levels; a knob that the policy does not know has none.
    """

    fractions: Mapping[str, tuple[float, ...]]

    def __post_init__(self) -> None:
        for name, levels in self.fractions.items():
            if name not in KNOB_NAMES:
                raise ConfigError(f"unknown knob {name!r}; knobs are {', '.join(KNOB_NAMES)}")
            if any(b <= a for a, b in pairwise(levels)):
                raise ConfigError(f"levels of {name} must ascend")

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of actions per knob (``nvec`` of the action space)."""
        return tuple(1 + len(self.fractions.get(k, ())) for k in KNOB_NAMES)

    @staticmethod
    def of_tables(knobs: Sequence[Knob], at_most: Mapping[str, int] | None = None) -> ActionGrid:
        """The knobs' own tables as shares of their ceilings, thinned to ``at_most`` levels."""
        limits = at_most or {}
        grid = {}
        for knob in knobs:
            allowed = np.asarray(knob.allowed_mhz)
            count = min(limits.get(knob.name, len(allowed)), len(allowed))
            kept = np.unique(np.linspace(0, len(allowed) - 1, count).round().astype(int))
            grid[knob.name] = tuple(float(f) for f in (allowed[kept] / allowed[-1]).round(6))
        return ActionGrid(grid)

    def every_action(self) -> IntArray:
        """Every combination of actions, ``[prod(sizes), 3]``, the last knob running fastest."""
        mesh = np.meshgrid(*(np.arange(size) for size in self.sizes), indexing="ij")
        return np.stack([m.ravel() for m in mesh], axis=-1)

    def targets(self, actions: IntArray, knobs: Sequence[Knob]) -> FloatArray:
        """Targets in MHz, ``[n, 3]`` (NaN: auto), of ``actions`` ``[n, 3]`` on these knobs."""
        targets = np.full(actions.shape, np.nan)
        by_name = {knob.name: knob for knob in knobs}
        for k, name in enumerate(KNOB_NAMES):
            if name in by_name:
                lookup = self._lookup(by_name[name])
                targets[:, k] = lookup[np.minimum(actions[:, k], len(lookup) - 1)]
        return targets

    def actions(self, targets_mhz: FloatArray, knobs: Sequence[Knob]) -> IntArray:
        """The actions nearest to ``targets_mhz`` ``[n, 3]`` (NaN: auto)."""
        actions = np.zeros(targets_mhz.shape, np.int64)
        by_name = {knob.name: knob for knob in knobs}
        for k, name in enumerate(KNOB_NAMES):
            if name not in by_name or not self.fractions.get(name):
                continue
            levels = self._lookup(by_name[name])[1:]
            distance = np.abs(targets_mhz[:, k, None] - levels)
            nearest = np.argmin(np.where(np.isnan(distance), np.inf, distance), axis=1)
            actions[:, k] = np.where(np.isnan(targets_mhz[:, k]), AUTO_ACTION, nearest + 1)
        return actions

    def mask(self, knobs: Sequence[Knob]) -> NDArray[np.bool_]:
        """Which actions this board can take, ``[sum(sizes)]``; auto always is."""
        offered = {knob.name for knob in knobs}
        parts = []
        for name, size in zip(KNOB_NAMES, self.sizes, strict=True):
            part = np.full(size, name in offered)
            part[AUTO_ACTION] = True
            parts.append(part)
        return np.concatenate(parts)

    def _lookup(self, knob: Knob) -> FloatArray:
        allowed = np.asarray(knob.allowed_mhz)
        wanted = np.asarray(self.fractions.get(knob.name, ())) * allowed[-1]
        nearest = np.abs(wanted[:, None] - allowed).argmin(1) if len(wanted) else []
        return np.concatenate([[np.nan], allowed[nearest] if len(wanted) else []])
