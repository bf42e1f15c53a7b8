"""The work of ``rlgov train``: a policy from a population of jobs on twins."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from rlgov.boards.twin import TwinSpec
from rlgov.boards.twin.loadfile import read_job
from rlgov.cli.command import Invocation
from rlgov.cli.instantiate import instantiate_group
from rlgov.cli.text import table
from rlgov.envs.simulated import about_fitted, draw_fitted
from rlgov.errors import ConfigError
from rlgov.training.config import TrainConfig

NOT_IN_CARD = ("out", "overwrite", "resume", "debug")


def run(invocation: Invocation) -> int:
    """Train, print how good the bundle is on the validation jobs, and record it."""
    config = invocation.config
    if invocation.folder.resumed:
        raise ConfigError("a training run cannot be resumed yet: give another out=DIR")
    typed = train_config(config)
    board = TwinSpec.from_dict(config["board"])
    settings = {key: value for key, value in config.items() if key not in NOT_IN_CARD}
    train, jobs = _learner(config)
    console = Console(stderr=True, highlight=False)
    console.print(f"rlgov: training for {board.name} (emulated: a model), seed {typed.seed}")
    began = time.monotonic()
    result = train(typed, board, jobs, invocation.folder.path, settings)
    seconds = time.monotonic() - began
    invocation.folder.write_summary(
        {
            "bundle": str(result.folder),
            "board": board.name,
            "emulated": True,
            "seed": typed.seed,
            "train_seed": jobs.train_seed,
            "validation_seed": jobs.validation_seed,
            "score": result.score,
            "best_at": result.best_at,
            "decisions": result.decisions,
            "wall_s": seconds,
            "rows": result.evaluation,
        }
    )
    print(_table(result.evaluation))
    print(f"\nEmulated: figures of twins. Best at {result.best_at}; {seconds:.0f} s.")
    print(f"Bundle: {result.folder} (rlgov run policy={result.folder} -- …)")
    return 0


def train_config(config: dict[str, Any]) -> TrainConfig:
    """The typed configuration of a training run.

    Raises:
        ConfigError: A key or value that cannot be used.
    """
    mixture = instantiate_group(config["preferences"], "preferences")
    spread = instantiate_group(config["spread"], "spread")
    return TrainConfig(
        seed=config["seed"],
        agent=instantiate_group(config["agent"], "agent"),
        mixture=mixture.only(config["objective"]),
        validation=instantiate_group(config["validation"], "validation"),
        window=instantiate_group(config["window"], "window"),
        spread=spread if config["job"] is None else about_fitted(spread),
        guard=instantiate_group(config["guard"], "guard"),
        reward=instantiate_group(config["reward"], "reward"),
        torch_threads=config["torch_threads"],
    )


def _learner(config: dict[str, Any]) -> tuple[Any, Any]:
    """The training function and the jobs, once the extra that holds torch is there."""
    try:
        from rlgov.training.train import Jobs, train
    except ImportError as error:
        raise ConfigError(
            f"training needs the extra `train` ({error.name} is missing): "
            "pip install 'rlgov[train]'"
        ) from error
    population = instantiate_group(config["population"], "population")
    validation = instantiate_group(config["validation_population"], "validation_population")
    fitted = None if config["job"] is None else read_job(Path(config["job"]))
    jobs = Jobs(
        train=population.draw if fitted is None else draw_fitted(fitted[0]),
        validation=validation.draw if fitted is None else draw_fitted(fitted[0]),
        fitted=None if fitted is None else fitted[1],
        train_seed=_seed(population.rng(config["seed"])),
        # Not the run's seed: runs of several seeds are compared on the same jobs.
        validation_seed=_seed(validation.rng(0)),
    )
    return train, jobs


def _seed(rng: np.random.Generator) -> int:
    return int(rng.integers(2**31))


def _table(rows: list[dict[str, Any]]) -> str:
    header = ("budget", "saving", "oracle", "gap", "captured", "slowdown", "violations", "guard")
    names = ("saving", "oracle_saving", "gap", "captured", "slowdown", "violations", "guard_share")
    return table(
        header,
        [
            (f"{row['budget']:.0%}", *(_percent(row[name]["mean"]) for name in names))
            for row in rows
        ],
    )


def _percent(value: float | None) -> str | None:
    return None if value is None else f"{100 * value:.2f} %"
