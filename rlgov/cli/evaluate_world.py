"""What policies are evaluated on: jobs on twins, or a measured profile."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from rlgov.boards.twin import TwinSpec
from rlgov.boards.twin.loadfile import read_job
from rlgov.cli.confdir import ConfPath
from rlgov.cli.instantiate import instantiate_group
from rlgov.envs.guard import GuardSpec
from rlgov.envs.replayed import ReplayPlant
from rlgov.envs.simulated import SimulatedPlant, about_fitted, draw_fitted
from rlgov.errors import ConfigError, TraceError
from rlgov.jobs.jobbatch import JobBatch, distance_to
from rlgov.policies.figures import figure
from rlgov.policies.scenario import Scenario
from rlgov.policies.trial import Trial
from rlgov.policies.truth import TruePlant, is_metered, is_timed
from rlgov.traces.profile import Profile
from rlgov.traces.profiles import read_profile
from rlgov.traces.surface import surface_of

REPLAY = "replay"
FEWEST_JOBS = 20
"""Jobs on twins below which a mean says too little to be printed."""
TWIN_JOBS = 200
TRAIN_JOBS = 4096
"""Training jobs among which the nearest is looked for."""


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


def world_of(config: dict[str, Any]) -> World:
    """The world that a configuration asks for.

    Raises:
        ConfigError: It cannot be.
    """
    if config["objective"] == "power_cap" and config["power_cap"] is None:
        raise ConfigError("objective=power_cap needs power_cap=SHARE of the power as found")
    if config["profile"] is not None:
        return ReplayWorld.of(config)
    if config["board"].get("name") == REPLAY:
        raise ConfigError("board=replay needs profile=FILE")
    return TwinWorld.of(config)


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
        """See `world_of`."""
        n_jobs = config["n_jobs"] or TWIN_JOBS
        if n_jobs < FEWEST_JOBS:
            raise ConfigError(
                f"n_jobs={n_jobs}: on twins at least {FEWEST_JOBS} jobs are needed; the mean over "
                "fewer says more about the draw than about a policy"
            )
        spec = TwinSpec.from_dict(config["board"])
        population = instantiate_group(config["population"], "population")
        seed = int(population.rng(config["seed"]).integers(2**31))
        window = instantiate_group(config["window"], "window")
        spread = instantiate_group(config["spread"], "spread")
        drift = config.get("drift")
        scenario = instantiate_group(drift, "drift") if drift else Scenario()

        draw, fitted, source = population.draw, None, population.split
        if config["job"] is not None:
            source, fitted = read_job(Path(config["job"]))
            draw, spread = draw_fitted(source), about_fitted(spread)

        def make() -> SimulatedPlant:
            change = scenario.change
            return SimulatedPlant(spec, draw, n_jobs, window, spread, change=change, fitted=fitted)

        guard = instantiate_group(config["guard"], "guard")
        base = Trial(make, seed=seed, guard=guard, **common(config))
        world = TwinWorld(
            spec.name,
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
        lines = [f"{n_jobs} jobs of population {self.source} on twins of {self.board}"]
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


@dataclass
class ReplayWorld(World):
    """A measured profile."""

    board: str
    source: str
    base: Trial
    facts: dict[str, Any]
    notices: list[str] = field(default_factory=list)
    closing: str = "Replayed: figures that were measured, interpolated between measured settings."

    @staticmethod
    def of(config: dict[str, Any]) -> ReplayWorld:
        """See `world_of`."""
        if config.get("drift"):
            raise ConfigError("drift= is a model's; a profile is replayed as it was measured")
        profile = _profile(config)
        surface = surface_of(profile)
        window = instantiate_group(config["window"], "window")
        n_jobs, noise = config["n_jobs"] or 1, config["profile_noise"]
        roles = _rail_roles(config)

        def make() -> TruePlant:
            return ReplayPlant(surface, window, n_jobs, noise, roles)

        _check_replay(config, make())
        guard = instantiate_group(config["guard"], "guard")
        timed = is_timed(make())
        base = Trial(
            make,
            seed=config["seed"],
            guard=guard if timed else GuardSpec(enabled=False),
            board=profile.device,
            **common(config),
        )
        facts = {
            "job": profile.job,
            "energy_scope": surface.scope,
            "reference": "as found" if surface.as_found else "highest setting measured",
            "timed": timed,
            "knobs": list(surface.levels_mhz),
            "seed": config["seed"],
        }
        world = ReplayWorld(profile.device, str(config["profile"]), base, facts)
        world.notices = world._opening()
        return world

    def trial(self, budget: float, on_window: Callable[[], None]) -> Trial:
        """The trial at a budget."""
        return replace(self.base, budget=budget, on_window=on_window)

    def summary(self) -> dict[str, Any]:
        """What the figures are of, for JSON."""
        return {"board": self.board, "emulated": True, "source": self.source, **self.facts}

    def _opening(self) -> list[str]:
        facts = self.facts
        knobs, reference = ", ".join(facts["knobs"]), facts["reference"]
        what = f"{facts['job']} as measured on {self.board}"
        lines = [f"{what}, knobs {knobs}; relative to the {reference}"]
        if not facts["timed"]:
            lines.append("the profile has no step times: no budget is kept, the guard is off")
        return lines


def _rail_roles(config: dict[str, Any]) -> dict[str, str]:
    """Those of board=replay, which profile=FILE implies whatever board is named beside it."""
    board = config["board"]
    if board.get("name") != REPLAY:
        path = ConfPath().find(f"board/{REPLAY}")
        board = {} if path is None else yaml.safe_load(path.read_text(encoding="utf-8"))
    return {str(rail): str(role) for rail, role in board.get("rail_roles", {}).items()}


def _profile(config: dict[str, Any]) -> Profile:
    job, device = config["profile_job"], config["profile_device"]
    try:
        return read_profile(Path(config["profile"]), job, device)
    except TraceError as error:
        # The keys are called otherwise here than the reader's own arguments.
        text = str(error).replace(" job=", " profile_job=").replace(" device=", " profile_device=")
        raise TraceError(text) from error


def _check_replay(config: dict[str, Any], plant: TruePlant) -> None:
    if not is_metered(plant):
        raise ConfigError(
            f"profile={config['profile']} has no energy as found (or at its highest setting): "
            "there is nothing to compare with"
        )
    if config["objective"] != "energy" and not is_timed(plant):
        raise ConfigError(
            f"objective={config['objective']} weighs time, and the profile has none: "
            "use objective=energy"
        )
    silent = [name for name in np.atleast_1d(config["knobs"]) if name in _names(plant)]
    if not silent:
        raise ConfigError(
            f"knobs: none of {config['knobs']} was varied in the profile, which has "
            f"{', '.join(_names(plant))}"
        )


def _names(plant: TruePlant) -> list[str]:
    return [knob.name for knob in plant.knobs]
