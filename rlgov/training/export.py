"""From a trained network to a bundle."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Any

import numpy as np
from numpy.typing import NDArray
from stable_baselines3 import PPO
from torch import nn

import rlgov
from rlgov.boards.base import Knob
from rlgov.envs.spaces import ActionGrid
from rlgov.policies.bundle import Bundle, board_tables
from rlgov.policies.card import Card
from rlgov.policies.surrogate import Surrogate, feature_names

LIBRARIES = ("torch", "stable-baselines3", "gymnasium", "numpy", "safetensors")

LIMITS = (
    "trained on twins: times and joules of the training are a model's",
    "evaluation phases, checkpoints, co-runners and drifting lengths were not met in training",
)


def actor_layers(model: PPO) -> list[tuple[NDArray[np.float32], NDArray[np.float32]]]:
    """Weight and bias of every layer of the actor."""
    modules = [*model.policy.mlp_extractor.policy_net, model.policy.action_net]
    linear = [module for module in modules if isinstance(module, nn.Linear)]
    return [
        (
            layer.weight.detach().cpu().numpy().astype(np.float32).copy(),
            layer.bias.detach().cpu().numpy().astype(np.float32).copy(),
        )
        for layer in linear
    ]


def library_versions() -> dict[str, str]:
    """Of everything that shapes the weights."""
    found = {name: version(name) for name in LIBRARIES}
    return {"rlgov": rlgov.__version__, "python": platform.python_version(), **found}


def make_bundle(
    layers: Sequence[tuple[NDArray[np.float32], NDArray[np.float32]]],
    *,
    board: str,
    knobs: Sequence[Knob],
    grid: ActionGrid,
    activation: str,
    seed: int,
    training: Mapping[str, Any],
    evaluation: Sequence[Mapping[str, Any]],
    surrogate: Surrogate | None = None,
) -> Bundle:
    """A bundle of ``layers``, without a time of day: the same run gives the same bytes."""
    card = Card(
        board=board,
        knobs=board_tables(knobs),
        actions={name: list(levels) for name, levels in grid.fractions.items()},
        hidden=[int(weight.shape[0]) for weight, _ in layers[:-1]],
        activation=activation,
        weights_sha256="",
        seed=seed,
        training=training,
        versions=library_versions(),
        evaluation=evaluation,
        limits=LIMITS,
        belief=() if surrogate is None else feature_names(grid),
    )
    return Bundle(card, layers, surrogate)
