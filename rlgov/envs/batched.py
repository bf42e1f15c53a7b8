"""The environment for ``n`` jobs at once, free of any learner's types.

`GovernorEnv` is the case n = 1 behind Gymnasium's interface; the learner's vectorised environment
wraps this one. All episodes start and end together.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rlgov.envs.episode import Episodes, Scored
from rlgov.envs.guard import GuardSpec
from rlgov.envs.plant import Plant, WindowData
from rlgov.envs.spaces import ActionGrid, IntArray
from rlgov.errors import JobError
from rlgov.reward import Preference, RewardSpec
from rlgov.work import FloatArray

DrawPreference = Callable[[int, np.random.Generator], Preference]
DrawOffered = Callable[[int, np.random.Generator], NDArray[np.bool_]]


KEPT_REFERENCES = 4
"""As-found windows pooled into the reference; older ones give way, since boards drift."""


class JobOverError(JobError):
    """The job ended before the reference was measured."""


@dataclass(frozen=True)
class BatchStep:
    """What one decision led to.

    Attributes:
        observation: ``[n, d]``, float32.
        scored: Reward and its terms.
        targets_mhz: The setting that the guard let through, ``[n, 3]``, NaN for auto.
        acts: Guard rule -> jobs on which it acted.
        window: What was measured; ``None`` when the job ended in the window.
        ended: The job is over.
    """

    observation: NDArray[np.float32]
    scored: Scored | None
    targets_mhz: FloatArray
    acts: dict[str, NDArray[np.bool_]]
    window: WindowData | None
    ended: bool


class BatchedGovernorEnv:
    """``n`` episodes on a plant.

    Args:
        plant: The boards with their jobs.
        grid: Levels that the policy may choose.
        preference: Draws what each user wants at the start of an episode.
        guard: Which rules stand.
        reward: How hard the limits bite.
        reference_windows: As-found windows at the start of an episode.
        offered: Draws which knobs may be turned, ``[n, 3]``; all that the boards have by default.
    """

    def __init__(
        self,
        plant: Plant,
        grid: ActionGrid,
        preference: DrawPreference,
        guard: GuardSpec | None = None,
        reward: RewardSpec | None = None,
        reference_windows: int = 2,
        offered: DrawOffered | None = None,
    ) -> None:
        self.plant = plant
        self.grid = grid
        self.n = plant.n
        self._draw_preference = preference
        self._draw_offered = offered
        self._reference_windows = reference_windows
        self._rng = np.random.default_rng(0)
        self.episodes = Episodes(
            plant.n, plant.knobs, grid, guard or GuardSpec(), reward or RewardSpec()
        )
        self.preference = preference(plant.n, self._rng)
        self.references: list[WindowData] = []
        self.last_acts: dict[str, NDArray[np.bool_]] = {}

    def reset(self, seed: int | None = None) -> NDArray[np.float32]:
        """Begin new episodes: run the reference windows as found.

        Raises:
            JobOverError: The job ended first.
        """
        if seed is not None:
            self._rng = np.random.default_rng([seed, 1])
        self.plant.reset(seed)
        self.preference = self._draw_preference(self.n, self._rng)
        if self._draw_offered is not None:
            self.episodes.restrict(self._draw_offered(self.n, self._rng))
        self.references = []
        for _ in range(self._reference_windows):
            window = self.plant.window(np.full((self.n, 3), np.nan))
            if window is None:
                raise JobOverError("the job ended before the reference was measured")
            self.references.append(window)
        self.episodes.begin(WindowData.mean(self.references))
        return self.observe()

    def audit(self) -> WindowData | None:
        """Run one window as found and refresh the reference with it; ``None`` at the job's end."""
        self.last_acts = {}
        window = self.plant.window(np.full((self.n, 3), np.nan))
        if window is not None:
            self.references = [*self.references, window][-KEPT_REFERENCES:]
            self.episodes.refresh(WindowData.mean(self.references))
        return window

    def observe(self) -> NDArray[np.float32]:
        """The observation, ``[n, d]``."""
        return self.episodes.observe(self.preference)

    def step(self, actions: IntArray) -> BatchStep:
        """One decision for every job: ``actions`` ``[n, 3]``."""
        return self.step_targets(self.episodes.targets(actions))

    def step_targets(self, targets_mhz: FloatArray) -> BatchStep:
        """One decision given in MHz, ``[n, 3]`` with NaN for auto (policies without a grid)."""
        ruling = self.episodes.rule(targets_mhz, self.preference)
        self.last_acts = ruling.acts
        window = self.plant.window(ruling.targets_mhz)
        if window is None:
            return BatchStep(self.observe(), None, ruling.targets_mhz, ruling.acts, None, True)
        scored = self.episodes.remember(window, ruling.targets_mhz, self.preference)
        return BatchStep(self.observe(), scored, ruling.targets_mhz, ruling.acts, window, False)
