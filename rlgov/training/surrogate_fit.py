"""Learns a `Surrogate` from twins: the space that landscapes lie in, and a prior read at sight.

First the landscapes (log time and log energy of every setting against as found) of some jobs give
the linear space, by a singular value decomposition weighted towards settings that budgets reach.
Then a network learns the Gaussian prior of a job's coordinates from its reference windows, by
maximum likelihood under a Student t, whose tails forgive the jobs that the space fits badly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from rlgov.envs.batched import BatchedGovernorEnv
from rlgov.envs.observation import observation_names
from rlgov.envs.simulated import SimulatedPlant
from rlgov.envs.spaces import ActionGrid
from rlgov.policies.oracle import landscape
from rlgov.policies.surrogate import Surrogate, prepared, reference_inputs, with_logarithms
from rlgov.training.config import SurrogateSpec

CLIP = (-0.5, 0.8)
"""Logarithms of ratios beyond these are all alike: no budget reaches there."""
NEAR = 0.45
"""Log time ratio up to which a setting's residual matters."""
STUDENT = 8.0
"""Degrees of freedom of the likelihood."""

Progress = Callable[[float], None]


@dataclass(frozen=True)
class _Space:
    mean: NDArray[np.float64]
    weight: NDArray[np.float64]
    axes: NDArray[np.float64]
    scale: NDArray[np.float64]
    residual: NDArray[np.float64]

    def coordinates(self, logs: NDArray[np.float64]) -> NDArray[np.float64]:
        projected: NDArray[np.float64] = ((logs - self.mean) * self.weight) @ self.axes.T
        return projected / self.scale

    @property
    def basis(self) -> NDArray[np.float64]:
        return self.axes / self.weight * self.scale[:, None]


def fit_surrogate(
    make_env: Callable[[int], tuple[BatchedGovernorEnv, SimulatedPlant]],
    grid: ActionGrid,
    spec: SurrogateSpec,
    seed: int,
    progress: Progress,
) -> Surrogate:
    """Learn a surrogate.

    Args:
        make_env: Makes an environment of so many training jobs, with its plant.
        grid: Levels that the policy may choose.
        spec: See `SurrogateSpec`.
        seed: Of jobs and network.
        progress: Told the share that is done.
    """
    env, plant = make_env(spec.chunk)
    lessons = _lessons(env, plant, grid, seed)
    _, first = next(lessons)
    _, second = next(lessons)
    space = _space(np.concatenate([first, second]), spec.latents)
    inputs, targets = [], []
    chunks = max(spec.jobs // spec.chunk, 2)
    for i in range(chunks):
        x, logs = next(lessons)
        inputs.append(x)
        targets.append(space.coordinates(logs))
        progress(0.3 * (i + 1) / chunks)
    raw = np.concatenate(inputs)
    z = np.concatenate(targets)
    wide = with_logarithms(raw)
    shift, scale = wide.mean(0), wide.std(0) + 1e-3
    net = _learn_prior(prepared(raw, shift, scale), z, spec, seed, progress)
    return _assemble(space, net, shift, scale, spec)


def _lessons(
    env: BatchedGovernorEnv, plant: SimulatedPlant, grid: ActionGrid, seed: int
) -> Iterator[tuple[NDArray[np.float32], NDArray[np.float64]]]:
    """Inputs of the prior and landscapes ``[n, 2 s]``, of new jobs each time."""
    names = observation_names()
    columns = [names.index(name) for name in reference_inputs()]
    targets = grid.targets(grid.every_action(), plant.knobs)
    first: int | None = seed
    while True:
        observation = env.reset(first)
        first = None
        truth = landscape(plant, targets)
        logs = np.log(np.concatenate([truth.time_ratio, truth.energy_ratio], axis=1))
        yield observation[:, columns], np.clip(logs, *CLIP)


def _space(logs: NDArray[np.float64], latents: int) -> _Space:
    settings = logs.shape[1] // 2
    mean = logs.mean(0)
    log_time = logs[:, :settings]
    relevance = (1.0 / (1.0 + (log_time / 0.2) ** 2)).mean(0)
    weight = np.sqrt(np.concatenate([relevance, relevance]))
    weight /= np.sqrt((weight**2).mean())
    centred = (logs - mean) * weight
    _, vectors = np.linalg.eigh(centred.T @ centred)
    axes = vectors.T[::-1][:latents]
    # eigh leaves signs open; fixed ones keep the same seed's bundle the same on every LAPACK.
    axes = axes * np.sign(axes[np.arange(latents), np.abs(axes).argmax(1)])[:, None]
    scale = (centred @ axes.T).std(0)
    left = centred - centred @ axes.T @ axes
    return _Space(mean, weight, axes, scale, _residual(left / weight, log_time < NEAR))


def _residual(left: NDArray[np.float64], near: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Robust standard error by setting: the median square, scaled as for a normal."""
    squares = np.where(np.tile(near, (1, 2)), left**2, np.nan)
    known = ~np.isnan(squares).all(0)
    out = np.full(left.shape[1], 0.1)
    out[known] = np.sqrt(np.nanmedian(squares[:, known], axis=0) / 0.455)
    floored: NDArray[np.float64] = np.maximum(out, 1e-3)
    return floored


def _learn_prior(
    x: NDArray[np.float32],
    z: NDArray[np.float64],
    spec: SurrogateSpec,
    seed: int,
    progress: Progress,
) -> nn.Sequential:
    k, wide = spec.latents, spec.hidden
    generator = torch.Generator().manual_seed(seed)
    torch.manual_seed(seed)
    net = nn.Sequential(
        nn.Linear(x.shape[1], wide),
        nn.SiLU(),
        nn.Linear(wide, wide),
        nn.SiLU(),
        nn.Linear(wide, k + k * (k + 1) // 2),
    )
    inputs = torch.as_tensor(x, dtype=torch.float32)
    targets = torch.as_tensor(z, dtype=torch.float32)
    optimizer = torch.optim.Adam(net.parameters(), lr=spec.learning_rate, weight_decay=1e-5)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, spec.learning_rate, total_steps=spec.steps
    )
    for step in range(spec.steps):
        rows = torch.randint(len(inputs), (spec.batch_size,), generator=generator)
        blur = 0.01 * torch.randn(spec.batch_size, x.shape[1], generator=generator)
        loss = _loss(net(inputs[rows] + blur), targets[rows], k)
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        if step % 100 == 0:
            progress(0.3 + 0.7 * step / spec.steps)
    return net


def _loss(out: Tensor, z: Tensor, k: int) -> Tensor:
    """Negative log likelihood of a Student t whose precision has the given Cholesky factor."""
    rows, columns = torch.tril_indices(k, k)
    factor = torch.zeros(len(out), k, k).index_put(
        (torch.arange(len(out))[:, None], rows[None], columns[None]), out[:, k:]
    )
    raw = torch.diagonal(factor, dim1=1, dim2=2)
    diagonal = torch.exp(raw.clamp(-2.0, 6.0))
    factor = factor - torch.diag_embed(raw) + torch.diag_embed(diagonal)
    white = torch.einsum("nij,ni->nj", factor, z - out[:, :k])
    square = (white**2).sum(1) / STUDENT
    log_determinant = torch.log(diagonal).sum(1)
    return (0.5 * (STUDENT + k) * torch.log1p(square) - log_determinant).mean()


def _assemble(
    space: _Space,
    net: nn.Sequential,
    shift: NDArray[np.float64],
    scale: NDArray[np.float64],
    spec: SurrogateSpec,
) -> Surrogate:
    layers = [m for m in net if isinstance(m, nn.Linear)]
    weights = [layer.weight.detach().numpy() for layer in layers]
    biases = [layer.bias.detach().numpy() for layer in layers]
    k, half = spec.latents, len(space.mean) // 2

    def split(values: NDArray[np.float64]) -> NDArray[np.float32]:
        return np.stack([values[..., :half], values[..., half:]]).astype(np.float32)

    return Surrogate(
        mean=split(space.mean),
        basis=np.ascontiguousarray(split(space.basis).reshape(2, k, half)),
        residual=split(space.residual),
        shift=shift.astype(np.float32),
        scale=scale.astype(np.float32),
        w0=weights[0].copy(),
        b0=biases[0].copy(),
        w1=weights[1].copy(),
        b1=biases[1].copy(),
        w2=weights[2].copy(),
        b2=biases[2].copy(),
        noise=np.array(spec.noise, np.float32),
        price=np.array([spec.slope, spec.slack], np.float32),
    )
