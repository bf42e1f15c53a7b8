"""Jobs of a population on twins, to evaluate policies on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from rlgov.boards.twin import TwinSpec
from rlgov.boards.twin.loadfile import read_job
from rlgov.cli.evaluate_world import World, common
from rlgov.cli.instantiate import instantiate_group
from rlgov.envs.simulated import SimulatedPlant, about_fitted, draw_fitted
from rlgov.errors import ConfigError
from rlgov.jobs.jobbatch import JobBatch, distance_to
from rlgov.policies.figures import figure
from rlgov.policies.scenario import Scenario
from rlgov.policies.trial import Trial

FEWEST_JOBS = 20
"""Jobs on twins below which a mean says too little to be printed."""
TWIN_JOBS = 200
TRAIN_JOBS = 4096
"""Training jobs among which the nearest is looked for."""


@dataclass
class TwinWorld(World):
    """Jobs of a population on twins."""

    board: str
    source: str
    base: Trial
    scenario: Scenario
    seeds: dict[str, int]
    distance: dict[str, Any] | None
    notices: list[str] = field(default_factory=list)
    closing: str = ""

    @staticmethod
    def of(config: dict[str, Any]) -> TwinWorld:
        """The world that a configuration asks for."""
        n_jobs = config["n_jobs"] or TWIN_JOBS
        if n_jobs < FEWEST_JOBS:
            raise ConfigError(
                f"n_jobs={n_jobs}: on twins at least {FEWEST_JOBS} jobs are needed; the mean over "
                "fewer says more about the draw than about a policy"
            )
        drift = config.get("drift")
        scenario = instantiate_group(drift, "drift") if drift else Scenario()
        source, make, seed = _plants(config, n_jobs, scenario)
        guard = instantiate_group(config["guard"], "guard")
        base = Trial(make, seed=seed, guard=guard, **common(config))
        world = TwinWorld(
            config["board"]["name"],
            source,
            scenario.applied(base),
            scenario,
            {"seed": config["seed"], "jobs_seed": seed},
            _distance(config, make(), seed) if source == "heldout" else None,
        )
        world.notices = world._opening(n_jobs)
        world.closing = world._last_line()
        return world

    def trial(self, budget: float, on_window: Callable[[], None]) -> Trial:
        """The trial at a budget."""
        return replace(self.base, budget=budget, on_window=on_window)

    def summary(self) -> dict[str, Any]:
        """What the figures are of, for JSON."""
        return {
            "board": self.board,
            "emulated": True,
            "source": self.source,
            **self.seeds,
            "drift": self.scenario.describe(),
            "distance_to_training": self.distance,
        }

    def _opening(self, n_jobs: int) -> list[str]:
        lines = [f"{n_jobs} jobs of {self.source} on twins of {self.board}"]
        if self.distance is not None:
            here, there = self.distance["heldout"], self.distance["training"]
            lines.append(
                f"distance to the nearest training job: median {here['median']:.2f}, 95 % below "
                f"{here['p95']:.2f} (fresh training jobs: {there['median']:.2f}, "
                f"{there['p95']:.2f})"
            )
        return lines

    def _last_line(self) -> str:
        kind = "one best static setting a job"
        if self.base.segment or self.base.budgets or self.base.cuts:
            kind = "the best static setting of each segment"
        return (
            f"Emulated: figures of twins. Seed {self.seeds['seed']}; the oracle is {kind}; means "
            "over jobs, with medians, tails and intervals in summary.json."
        )


def _plants(
    config: dict[str, Any], n_jobs: int, scenario: Scenario
) -> tuple[str, Callable[[], SimulatedPlant], int]:
    """What the jobs are, what makes their boards, and the seed of both."""
    spec = TwinSpec.from_dict(config["board"])
    population = instantiate_group(config["population"], "population")
    window = instantiate_group(config["window"], "window")
    spread = instantiate_group(config["spread"], "spread")
    draw, fitted, source = population.draw, None, population.split
    if config["job"] is not None:
        source, fitted = read_job(Path(config["job"]))
        draw, spread = draw_fitted(source), about_fitted(spread)

    def make() -> SimulatedPlant:
        change = scenario.change
        return SimulatedPlant(spec, draw, n_jobs, window, spread, change=change, fitted=fitted)

    return source, make, int(population.rng(config["seed"]).integers(2**31))


def _distance(config: dict[str, Any], plant: SimulatedPlant, seed: int) -> dict[str, Any]:
    population = instantiate_group(config["train_population"], "train_population")
    known = population.draw(TRAIN_JOBS, population.rng(0))
    plant.reset(seed)
    fresh: JobBatch = population.draw(plant.n, population.rng(1))
    return {
        "heldout": figure(distance_to(known, plant.jobs), 0),
        "training": figure(distance_to(known, fresh), 0),
        "train_jobs": TRAIN_JOBS,
    }
