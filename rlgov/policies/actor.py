"""The policy network in NumPy: a decision costs microseconds, and no torch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from rlgov.envs.spaces import AUTO_ACTION, IntArray
from rlgov.errors import PolicyError

Float32Array: TypeAlias = NDArray[np.float32]


def _tanh(x: Float32Array) -> Float32Array:
    squashed = np.empty_like(x)
    np.tanh(x, out=squashed)
    return squashed


def _relu(x: Float32Array) -> Float32Array:
    cut = np.empty_like(x)
    np.maximum(x, np.float32(0.0), out=cut)
    return cut


NO_SKIP = slice(0, 0)

ACTIVATIONS: Mapping[str, Callable[[Float32Array], Float32Array]] = {"tanh": _tanh, "relu": _relu}


class MlpActor:
    """Layers of a perceptron with one group of logits a knob.

    Args:
        layers: Weight ``[out, in]`` and bias ``[out]`` of each layer, float32.
        activation: Name in `ACTIVATIONS`, between layers.
        sizes: Actions a knob.
        skip: Inputs that the last layer reads beside the last hidden layer.

    Raises:
        PolicyError: Shapes that do not fit together, or values that are not finite.
    """

    def __init__(
        self,
        layers: Sequence[tuple[Float32Array, Float32Array]],
        activation: str,
        sizes: Sequence[int],
        skip: slice = NO_SKIP,
    ) -> None:
        self._skip = skip
        _check_layers(layers, activation, sum(sizes), skip.stop - skip.start)
        self._layers = [
            (np.ascontiguousarray(weight.T, np.float32), bias.astype(np.float32))
            for weight, bias in layers
        ]
        self._activation = ACTIVATIONS[activation]
        ends = np.cumsum([0, *sizes])
        self._parts = [slice(int(a), int(b)) for a, b in pairwise(ends)]

    @property
    def inputs(self) -> int:
        """Features that it reads."""
        return int(self._layers[0][0].shape[0])

    def logits(self, observation: Float32Array) -> Float32Array:
        """Unnormalised log probabilities, ``[n, sum(sizes)]``."""
        x = observation
        for weight, bias in self._layers[:-1]:
            x = self._activation(x @ weight + bias)
        x = np.concatenate([x, observation[:, self._skip]], axis=1)
        weight, bias = self._layers[-1]
        return x @ weight + bias

    def act(self, observation: Float32Array, mask: NDArray[np.bool_] | None = None) -> IntArray:
        """The likeliest action of each knob, ``[n, knobs]``.

        A job whose logits are not all finite gets `AUTO_ACTION` for every knob.

        Args:
            observation: ``[n, d]``.
            mask: Actions that can be taken, ``[sum(sizes)]`` or ``[n, sum(sizes)]``.
        """
        logits = self.logits(observation)
        finite = np.asarray(np.isfinite(logits).all(axis=1))
        if mask is not None:
            logits = np.where(mask, logits, -np.inf)
        best = [logits[:, part].argmax(axis=1) for part in self._parts]
        return np.where(finite[:, None], np.stack(best, axis=1), AUTO_ACTION)


def _check_layers(
    layers: Sequence[tuple[Float32Array, Float32Array]],
    activation: str,
    outputs: int,
    skipped: int,
) -> None:
    if activation not in ACTIVATIONS:
        raise PolicyError(f"activation {activation!r} is none of {', '.join(ACTIVATIONS)}")
    if not layers:
        raise PolicyError("a policy network needs at least one layer")
    for i, (weight, bias) in enumerate(layers):
        if weight.ndim != 2 or bias.shape != weight.shape[:1]:
            raise PolicyError(f"layer {i}: weight {weight.shape} does not go with {bias.shape}")
        if not (np.isfinite(weight).all() and np.isfinite(bias).all()):
            raise PolicyError(f"layer {i} holds weights that are not finite")
    for i, (one, two) in enumerate(pairwise(weight for weight, _ in layers)):
        beside = skipped if i + 2 == len(layers) else 0
        if two.shape[1] != one.shape[0] + beside:
            raise PolicyError(f"layer {i} gives {one.shape[0]} values, the next reads {two.shape}")
    if layers[-1][0].shape[0] != outputs:
        raise PolicyError(f"the last layer gives {layers[-1][0].shape[0]} logits, not {outputs}")
