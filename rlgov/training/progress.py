"""One line that says how far a run is and how long it will take; silent without a terminal."""

from __future__ import annotations

from types import TracebackType

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.progress import Progress as Bar

from rlgov.training.config import TrainConfig


class Progress:
    """How far the belief is learnt, and rollouts.

    Args:
        config: The run.
        console: Where the bar goes; standard error by default.
    """

    def __init__(self, config: TrainConfig, console: Console | None = None) -> None:
        self._console = console or Console(stderr=True)
        agent = config.agent
        self._rollouts = -(-agent.total_steps // agent.rollout)
        self._bar = Bar(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[note]}"),
            console=self._console,
            disable=not self._console.is_terminal,
        )
        self._belief = self._bar.add_task(
            "belief", total=100 if agent.surrogate.jobs else 0, note=""
        )
        self._ppo = self._bar.add_task("ppo rollouts", total=self._rollouts, note="")

    def __enter__(self) -> Progress:
        self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bar.stop()

    def belief(self, share: float) -> None:
        """So much of the belief is learnt."""
        self._bar.update(self._belief, completed=round(100 * share))

    def rollout(self) -> None:
        """A rollout and its update are done."""
        self._bar.advance(self._ppo)

    def looked(self, where: str, score: float) -> None:
        """The validation jobs were looked at."""
        self._bar.update(self._ppo, note=f"score {score:.4f} at {where}")
