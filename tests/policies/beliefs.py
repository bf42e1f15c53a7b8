"""Small surrogates for tests."""

from __future__ import annotations

import math

import numpy as np

from rlgov.envs.spaces import ActionGrid
from rlgov.policies.surrogate import Surrogate, reference_inputs


def tiny_surrogate(grid: ActionGrid, latents: int = 3, hidden: int = 5, seed: int = 0) -> Surrogate:
    """Random, but of the right shapes: slower clocks cost time and save energy on average."""
    rng = np.random.default_rng(seed)
    settings, inputs = math.prod(grid.sizes), 2 * len(reference_inputs())
    slow = np.linspace(0.0, 0.3, settings)
    out = latents + latents * (latents + 1) // 2

    def drawn(*shape: int, scale: float = 0.1) -> np.ndarray:
        return rng.normal(0.0, scale, shape).astype(np.float32)

    return Surrogate(
        mean=np.stack([slow[::-1], -0.2 * slow[::-1]]).astype(np.float32),
        basis=drawn(2, latents, settings),
        residual=np.full((2, settings), 0.005, np.float32),
        shift=drawn(inputs),
        scale=np.ones(inputs, np.float32),
        w0=drawn(hidden, inputs),
        b0=drawn(hidden),
        w1=drawn(hidden, hidden),
        b1=drawn(hidden),
        w2=drawn(out, hidden),
        b2=drawn(out),
        noise=np.array([0.006, 0.009], np.float32),
        price=np.array([6.0, 0.0015], np.float32),
    )
