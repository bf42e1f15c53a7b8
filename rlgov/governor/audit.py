"""Audit windows: a few windows run as found, so that the saving stays a comparison.

Drawn by a generator of its own, so that no policy can learn when they come: one window in every
block of ``1 / share`` windows, at a random place in the block (stratified in time).
"""

from __future__ import annotations

import numpy as np

from rlgov.errors import ConfigError


class AuditPlan:
    """Says which windows run as found.

    Args:
        share: Share of windows; 0 for none.
        seed: Seed of the draw.
    """

    def __init__(self, share: float, seed: int) -> None:
        if not 0 <= share <= 0.5:
            raise ConfigError(f"audit_share={share} must be between 0 and 0.5")
        self._rng = np.random.default_rng([seed, 3])
        self._block = round(1 / share) if share else 0
        self._left = 0
        self._chosen = -1

    def due(self) -> bool:
        """Whether the next window is an audit window; call once a window."""
        if not self._block:
            return False
        if self._left == 0:
            self._left = self._block
            self._chosen = int(self._rng.integers(1, self._block + 1))
        due = self._left == self._chosen
        self._left -= 1
        return due
