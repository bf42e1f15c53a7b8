"""A measured profile, to evaluate policies on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from rlgov.cli.confdir import ConfPath
from rlgov.cli.evaluate_world import World, common
from rlgov.cli.instantiate import instantiate_group
from rlgov.envs.guard import GuardSpec
from rlgov.envs.replayed import ReplayPlant
from rlgov.errors import ConfigError, TraceError
from rlgov.policies.trial import Trial
from rlgov.policies.truth import TruePlant, is_metered, is_timed
from rlgov.traces.profile import Profile
from rlgov.traces.profiles import read_profile
from rlgov.traces.surface import surface_of

REPLAY = "replay"
"""Name of the board that is a profile."""


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
        """The world that a configuration asks for."""
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
    turned = [name for name in np.atleast_1d(config["knobs"]) if name in _names(plant)]
    if not turned:
        raise ConfigError(
            f"knobs: none of {config['knobs']} was varied in the profile, which has "
            f"{', '.join(_names(plant))}"
        )


def _names(plant: TruePlant) -> list[str]:
    return [knob.name for knob in plant.knobs]
