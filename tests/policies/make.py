"""Small bundles for tests."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np

from rlgov.envs.observation import observation_names
from rlgov.envs.spaces import ActionGrid
from rlgov.policies.bundle import Bundle, board_tables
from rlgov.policies.card import Card
from tests.envs.world import BOARD, make_plant

KNOBS = make_plant(1).knobs
GRID = ActionGrid.of_tables(KNOBS, {"cpu": 4})


def make_bundle(seed: int = 0, hidden: tuple[int, ...] = (8, 6), **changes: object) -> Bundle:
    rng = np.random.default_rng(seed)
    widths = [len(observation_names()), *hidden, sum(GRID.sizes)]
    layers = [
        (
            rng.normal(0, into**-0.5, (out, into)).astype(np.float32),
            rng.normal(0, 0.1, out).astype(np.float32),
        )
        for into, out in pairwise(widths)
    ]
    card = Card(
        board=BOARD,
        knobs=board_tables(KNOBS),
        actions={name: list(levels) for name, levels in GRID.fractions.items()},
        hidden=list(hidden),
        activation="tanh",
        weights_sha256="",
        seed=seed,
        versions={"rlgov": "0.1.0"},
    )
    return Bundle(replace(card, **changes), layers)
