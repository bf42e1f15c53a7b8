"""What a policy is: an observation in, one target per knob out.

Policies speak MHz, so that those which choose among levels (PPO) and those which name a clock
(``fixed``, ``max``, the oracle) serve the same environment; a policy with levels translates them by
its own `rlgov.envs.spaces.ActionGrid`. The contract is checked by
``tests/conformance/policy_contract.py``, which every policy passes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from rlgov.boards.base import KNOB_NAMES, Knob
from rlgov.envs.observation import observation_names
from rlgov.work import FloatArray

Observation = NDArray[np.float32]

_OFFERED = [observation_names().index(f"offered_{knob}") for knob in KNOB_NAMES]


class Policy(ABC):
    """Chooses settings for ``n`` jobs at once; whatever it remembers lives inside it.

    Attributes:
        name: As in ``policy=NAME``.
    """

    name: str

    def begin(self, n: int) -> None:
        """Forget everything: ``n`` new episodes start. Policies without memory inherit this."""
        return

    @abstractmethod
    def act(self, observation: Observation) -> FloatArray:
        """Targets in MHz, ``[n, 3]`` in the order of `KNOB_NAMES`, NaN for auto.

        A target is always of the board's table, and never for a knob that is not offered.

        Args:
            observation: ``[n, d]`` as `rlgov.envs.observation.observe` makes it.
        """


@dataclass(frozen=True)
class PolicyContext:
    """What a policy may know of where it is going to act.

    Attributes:
        knobs: The board's knobs.
        board: The board's name, where it has one (picks the packaged bundle).
        seed: Seed of whatever the policy draws.
        best: The oracle's targets for the jobs at hand, ``[n, 3]``; only an evaluation on twins
            can give it.
        best_gpu: The same with the GPU's clock alone, others as found.
        modes: Caps in MHz by knob of each power mode that the board has; ``None`` for no cap.
    """

    knobs: Sequence[Knob]
    board: str | None = None
    seed: int = 0
    best: Callable[[], FloatArray] | None = None
    best_gpu: Callable[[], FloatArray] | None = None
    modes: Mapping[str, Mapping[str, float | None]] = field(default_factory=dict)


def offered_knobs(observation: Observation) -> NDArray[np.bool_]:
    """Which knobs may be turned, ``[n, 3]``, as the observation says."""
    offered: NDArray[np.bool_] = observation[:, _OFFERED] > 0.5
    return offered


def only_offered(targets_mhz: FloatArray, observation: Observation) -> FloatArray:
    """``targets_mhz`` with auto for every knob that is not offered."""
    return np.where(offered_knobs(observation), targets_mhz, np.nan)
