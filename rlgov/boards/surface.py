"""What was measured of one job over its clocks, and what follows in between.

Nothing is modelled: between measured settings the logarithms of time and energy are interpolated
over the logarithms of the clocks, and outside of them there is no answer, but an error. Automatic
clocks stand for the profile's as-found row; where it has none, for the highest setting.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rlgov.boards.base import KNOB_NAMES, Knob
from rlgov.errors import ConfigError
from rlgov.work import FloatArray

TOLERANCE = 1e-6
"""Relative; a clock this close to the hull's edge is on it."""


@dataclass(frozen=True)
class Surface:
    """What was measured of one job.

    Attributes:
        clocks_mhz: Clock of each varied knob at each of ``m`` settings, by knob, ``[m]``.
        figures: Positive figures at the settings (``time_s``, ``energy_j``, ``rail NAME`` in
            watts), ``[m]``; NaN where one was not measured.
        as_found: The same figures of the as-found row; empty where there is none.
        scope: What power and energy cover, in words.
        name: Name of the job.
    """

    clocks_mhz: Mapping[str, FloatArray]
    figures: Mapping[str, FloatArray]
    as_found: Mapping[str, float]
    scope: str
    name: str = "replay"

    def __post_init__(self) -> None:
        if not self.clocks_mhz:
            raise ConfigError(
                "this profile cannot be replayed: no clock (gpu_mhz, cpu_mhz or emc_mhz) has at "
                "least two values in it"
            )

    @cached_property
    def levels_mhz(self) -> dict[str, tuple[float, ...]]:
        """The measured values of each varied knob, in the order of `KNOB_NAMES`."""
        return {
            name: tuple(np.unique(self.clocks_mhz[name]).tolist())
            for name in KNOB_NAMES
            if name in self.clocks_mhz
        }

    def knobs(self) -> list[Knob]:
        """The varied knobs; others are not offered."""
        return [Knob(name, levels) for name, levels in self.levels_mhz.items()]

    def at(self, figure: str, targets_mhz: FloatArray) -> FloatArray:
        """A figure at targets ``[n, 3]`` (NaN: automatic), ``[n]``; NaN where not measured.

        Raises:
            ConfigError: A target lies outside of what was measured, or on a knob that was not
                varied.
        """
        known = self.figures.get(figure)
        if known is None:
            return np.full(len(targets_mhz), np.nan)
        auto = np.isnan(targets_mhz).all(-1) & bool(self.as_found)
        values = np.full(len(targets_mhz), self.as_found.get(figure, np.nan))
        if not auto.all():
            values[~auto] = self._inside(known, self._filled(targets_mhz[~auto]))
        return values

    def covers(self, targets_mhz: FloatArray) -> NDArray[np.bool_]:
        """Which targets lie within what was measured, ``[n]``."""
        if self._is_grid:
            return np.ones(len(targets_mhz), bool)
        auto = np.isnan(targets_mhz).all(-1) & bool(self.as_found)
        probe = np.zeros(len(next(iter(self.clocks_mhz.values()))))
        inside = np.isfinite(self._scattered(probe, np.log(self._filled(targets_mhz))))
        return auto | inside

    def _filled(self, targets_mhz: FloatArray) -> FloatArray:
        """The varied knobs' clocks ``[n, k]``, automatic ones at the highest level."""
        columns = []
        for k, name in enumerate(KNOB_NAMES):
            asked = targets_mhz[:, k]
            if name in self.levels_mhz:
                columns.append(np.where(np.isnan(asked), self.levels_mhz[name][-1], asked))
            elif np.isfinite(asked).any():
                raise ConfigError(f"this profile does not vary {name}; leave it automatic")
        return np.stack(columns, -1)

    def _inside(self, figure: FloatArray, clocks: FloatArray) -> FloatArray:
        for i, (name, levels) in enumerate(self.levels_mhz.items()):
            low, high = levels[0] * (1 - TOLERANCE), levels[-1] * (1 + TOLERANCE)
            out = clocks[(clocks[:, i] < low) | (clocks[:, i] > high), i]
            if len(out):
                raise ConfigError(
                    f"{name}={out[0]:g} MHz was not measured: the profile spans "
                    f"{levels[0]:g} to {levels[-1]:g} MHz"
                )
        if self._is_grid:
            return np.exp(self._linear(self._on_grid(np.log(figure)), clocks))
        # Where the log figure is unknown at a corner the answer is NaN; that is not "outside".
        found = self._scattered(np.log(figure), np.log(clocks))
        reached = np.isfinite(self._scattered(np.zeros(len(figure)), np.log(clocks)))
        if not reached.all():
            wrong = clocks[~reached][0]
            asked = " ".join(f"{n}={v:g}" for n, v in zip(self.levels_mhz, wrong, strict=True))
            raise ConfigError(f"{asked} MHz lies outside of the measured settings")
        return np.exp(found)

    @cached_property
    def _is_grid(self) -> bool:
        cells = list(
            zip(*(self.clocks_mhz[name].tolist() for name in self.levels_mhz), strict=True)
        )
        return len(set(cells)) == len(list(product(*self.levels_mhz.values()))) == len(cells)

    def _on_grid(self, values: FloatArray) -> FloatArray:
        grid = np.empty([len(levels) for levels in self.levels_mhz.values()])
        index = tuple(
            np.searchsorted(levels, self.clocks_mhz[name])
            for name, levels in self.levels_mhz.items()
        )
        grid[index] = values
        return grid

    def _linear(self, grid: FloatArray, clocks: FloatArray) -> FloatArray:
        """Multilinear interpolation over the logarithms of the clocks, ``[n]``."""
        places = []
        for i, levels in enumerate(self.levels_mhz.values()):
            axis = np.log(levels)
            x = np.clip(np.log(clocks[:, i]), axis[0], axis[-1])
            low = np.clip(np.searchsorted(axis, x, side="right") - 1, 0, len(axis) - 2)
            places.append((low, (x - axis[low]) / (axis[low + 1] - axis[low])))
        total = np.zeros(len(clocks))
        for corner in product((0, 1), repeat=len(places)):
            weight = np.ones(len(clocks))
            for side, (_, share) in zip(corner, places, strict=True):
                weight = weight * (share if side else 1.0 - share)
            at = tuple(low + side for side, (low, _) in zip(corner, places, strict=True))
            # A corner without weight must not spread its NaN.
            total += np.where(weight > 0, weight * grid[at], 0.0)
        return total

    def _scattered(self, values: FloatArray, log_clocks: FloatArray) -> FloatArray:
        """Linear interpolation over a triangulation; NaN outside of it."""
        found: FloatArray = self._interpolate.LinearNDInterpolator(self._triangles, values)(
            log_clocks
        )
        return found

    @cached_property
    def _triangles(self) -> Any:
        points = np.log(np.stack([self.clocks_mhz[name] for name in self.levels_mhz], -1))
        spatial = _scipy("spatial")
        try:
            return spatial.Delaunay(points)
        except spatial.QhullError as error:
            raise ConfigError(
                "this profile cannot be replayed: its clocks vary together only; measure more "
                "combinations of them"
            ) from error

    @cached_property
    def _interpolate(self) -> Any:
        return _scipy("interpolate")


def _scipy(part: str) -> Any:
    try:
        return import_module(f"scipy.{part}")
    except ImportError as error:
        raise ConfigError(
            "replaying a profile that is no full grid of clocks needs scipy: install rlgov[fit]"
        ) from error
