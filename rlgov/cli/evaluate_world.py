"""What policies are evaluated on, as ``rlgov evaluate`` sees it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from rlgov.policies.trial import Trial


class World(ABC):
    """Makes the trials.

    Attributes:
        board: Name of the board.
        source: Population or profile.
        notices: What the user should know before.
        closing: What the user should know with the table.
    """

    board: str
    source: str
    notices: list[str]
    closing: str

    @abstractmethod
    def trial(self, budget: float, on_window: Callable[[], None]) -> Trial:
        """The trial at a budget."""

    @abstractmethod
    def summary(self) -> dict[str, Any]:
        """What the figures are of, for JSON."""


def common(config: dict[str, Any]) -> dict[str, Any]:
    """Arguments of `Trial` that do not depend on the world."""
    knobs = config["knobs"]
    return {
        "objective": config["objective"],
        "power_cap": config["power_cap"],
        "windows": config["windows"],
        "reference_windows": config["window"]["reference_windows"],
        "offered": knobs if isinstance(knobs, list) else [knobs],
    }
