"""A plant that replays a measured profile, to compare policies on figures nobody modelled."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from rlgov.boards.base import KNOB_NAMES
from rlgov.boards.surface import Surface
from rlgov.envs.plant import Plant, WindowData, role_watts
from rlgov.envs.simulated import WindowSpec
from rlgov.work import FloatArray


class ReplayPlant(Plant):
    """``n`` copies of one measured job, which differ in their noise only.

    What the profile lacks (utilisation, temperature, often rails) is NaN. `grid` tells the truth;
    only evaluations may ask.

    Args:
        surface: What was measured.
        window: How long a window is.
        n: How many side by side.
        noise: Relative noise of a window's time and power; 0 replays the profile as it is.
        rail_roles: Rail (lower case) -> what it mostly feeds, see `rlgov.envs.plant.ROLES`.
    """

    def __init__(
        self,
        surface: Surface,
        window: WindowSpec,
        n: int = 1,
        noise: float = 0.0,
        rail_roles: Mapping[str, str] | None = None,
    ) -> None:
        self.n = n
        self.surface = surface
        self.window_spec = window
        self.knobs = surface.knobs()
        self._noise = noise
        self._roles = rail_roles or {}
        self._rails = [key[5:] for key in surface.figures if key.startswith("rail ")]
        self._rng = np.random.default_rng(0)

    def reset(self, seed: int | None) -> None:
        """Begin the job again; a seed starts the stream of noise anew."""
        if seed is not None:
            self._rng = np.random.default_rng(seed)

    def window(self, targets_mhz: FloatArray) -> WindowData:
        """Replay one window.

        Raises:
            ConfigError: A target lies outside of what was measured.
        """
        time_s, joules = (self.surface.at(name, targets_mhz) for name in ("time_s", "energy_j"))
        slower, hungrier = np.exp(self._noise * self._rng.standard_normal((2, self.n)))
        spec = self.window_spec
        nothing = np.full((self.n, len(KNOB_NAMES)), np.nan)
        return WindowData(
            step_time_s=time_s * slower,
            step_j=joules * slower * hungrier,
            role_w=self._role_watts(targets_mhz) * hungrier[:, None],
            utilisation=nothing,
            clocks_mhz=self._clocks(targets_mhz),
            temperature_c=nothing[:, 0],
            steps=np.fmax(np.ceil(spec.min_seconds / time_s), spec.min_steps),
        )

    def grid(self, targets_mhz: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The truth: seconds and joules a step of every setting, ``[n, s]`` each."""
        shape = (self.n, len(targets_mhz))
        time_s, joules = (self.surface.at(name, targets_mhz) for name in ("time_s", "energy_j"))
        return np.broadcast_to(time_s, shape).copy(), np.broadcast_to(joules, shape).copy()

    def all_settings(self) -> FloatArray:
        """Every combination of measured levels within what was measured, and as found, ``[s, 3]``.

        A knob that was not varied is automatic throughout.
        """
        levels = self.surface.levels_mhz
        columns = [np.array(levels.get(name, (np.nan,))) for name in KNOB_NAMES]
        mesh = np.meshgrid(*columns, indexing="ij")
        settings = np.stack([m.ravel() for m in mesh], axis=-1)
        kept = settings[self.surface.covers(settings)]
        return np.concatenate([kept, np.full((1, len(KNOB_NAMES)), np.nan)])

    def _role_watts(self, targets_mhz: FloatArray) -> FloatArray:
        if not self._rails:
            return role_watts(np.zeros((self.n, 0)), [], {})
        rails = [self.surface.at(f"rail {rail}", targets_mhz) for rail in self._rails]
        return role_watts(np.stack(rails, -1), self._rails, self._roles)

    def _clocks(self, targets_mhz: FloatArray) -> FloatArray:
        """What ran: targets, the highest level for an automatic knob, NaN where nobody knows."""
        levels = self.surface.levels_mhz
        tops = np.array([levels[k][-1] if k in levels else np.nan for k in KNOB_NAMES])
        clocks: FloatArray = np.where(np.isnan(targets_mhz), tops, targets_mhz)
        if self.surface.as_found:
            clocks[np.isnan(targets_mhz).all(-1)] = np.nan
        return clocks
