"""A bundle: ``weights.safetensors`` and ``card.json`` in a folder. Nothing in it can run.

Neither pickle nor torch is on the load path; spaces are rebuilt from the card.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from importlib.resources import files
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as save_tensors

from rlgov.boards.base import KNOB_NAMES, Knob
from rlgov.envs.spaces import AUTO_ACTION, ActionGrid
from rlgov.errors import PolicyError
from rlgov.files import json_text, write_bytes_atomic
from rlgov.policies.actor import NO_SKIP, MlpActor
from rlgov.policies.base import Observation, Policy, PolicyContext, offered_knobs
from rlgov.policies.baselines import no_arguments
from rlgov.policies.card import Card
from rlgov.policies.surrogate import Belief, Surrogate, feature_names
from rlgov.work import FloatArray

WEIGHTS_FILE = "weights.safetensors"
CARD_FILE = "card.json"
SURROGATE = "surrogate"
"""Prefix of the belief's arrays."""

Layer = tuple[NDArray[np.float32], NDArray[np.float32]]


@dataclass(frozen=True)
class Bundle:
    """A policy at rest.

    Attributes:
        card: See `Card`.
        layers: Weight and bias of each layer of the actor, float32.
        surrogate: What the policy believes about jobs at sight; ``None`` for a policy that reads
            the observation alone.
    """

    card: Card
    layers: Sequence[Layer]
    surrogate: Surrogate | None = None

    @property
    def grid(self) -> ActionGrid:
        """The levels that it chooses from."""
        return ActionGrid({name: tuple(levels) for name, levels in self.card.actions.items()})

    def actor(self) -> MlpActor:
        """The network."""
        return MlpActor(self.layers, self.card.activation, self.grid.sizes, self.skip)

    @property
    def skip(self) -> slice:
        """Inputs of the network that its last layer reads too: the belief's regrets."""
        if self.surrogate is None:
            return NO_SKIP
        start = len(self.card.observation_names)
        return slice(start, start + sum(self.grid.sizes))

    def save(self, folder: Path) -> None:
        """Write the bundle; the card gets the weights' checksum. The same bundle, the same bytes.

        Args:
            folder: Made where it does not exist.
        """
        data = _weights(self.layers, self.surrogate)
        card = replace(self.card, weights_sha256=hashlib.sha256(data).hexdigest())
        folder.mkdir(parents=True, exist_ok=True)
        write_bytes_atomic(folder / WEIGHTS_FILE, data)
        write_bytes_atomic(folder / CARD_FILE, json_text(card.to_dict()).encode())

    @staticmethod
    def load(folder: Path) -> Bundle:
        """Read a bundle.

        Raises:
            PolicyError: A file is missing or damaged, or does not fit this rlgov.
        """
        card = _read_card(folder / CARD_FILE)
        where = folder / WEIGHTS_FILE
        data = _read(where)
        if hashlib.sha256(data).hexdigest() != card.weights_sha256:
            raise PolicyError(f"{where} is not the file that {CARD_FILE} describes: it is damaged")
        layers, surrogate = _tensors(data, len(card.hidden) + 1, bool(card.belief), where)
        bundle = Bundle(card, layers, surrogate)
        _check_shapes(bundle, where)
        return bundle


class BundlePolicy(Policy):
    """A trained policy from its bundle.

    Args:
        bundle: See `Bundle`.
        knobs: Of the board that it is going to act on.
        name: See `Policy`.

    Raises:
        PolicyError: The bundle does not fit the board.
    """

    def __init__(self, bundle: Bundle, knobs: Sequence[Knob], name: str = "ppo") -> None:
        bundle.card.check_knobs(knobs, name)
        self.name = name
        self.bundle = bundle
        self._actor = bundle.actor()
        surrogate = bundle.surrogate
        self._belief = None if surrogate is None else Belief(surrogate, bundle.grid)
        self._mask = bundle.grid.mask(knobs)
        self._levels_mhz = _levels(bundle.grid, knobs)

    def begin(self, n: int) -> None:
        """Forget what was believed about earlier jobs."""
        if self._belief is not None:
            self._belief.begin(n)

    def act(self, observation: Observation) -> FloatArray:
        """The likeliest level of each knob."""
        inputs = np.asarray(observation, np.float32)
        if self._belief is not None:
            inputs = np.concatenate([inputs, self._belief.features(inputs)], axis=1)
        actions = self._actor.act(inputs, self._mask)
        if self._belief is not None:
            self._belief.chose(np.where(offered_knobs(observation), actions, AUTO_ACTION))
        targets = [level[actions[:, k]] for k, level in enumerate(self._levels_mhz)]
        return np.where(offered_knobs(observation), np.stack(targets, axis=1), np.nan)


def _levels(grid: ActionGrid, knobs: Sequence[Knob]) -> list[FloatArray]:
    """Target in MHz of every action of each knob, worked out once."""
    columns = []
    for k, size in enumerate(grid.sizes):
        actions = np.zeros((size, len(grid.sizes)), np.int64)
        actions[:, k] = np.arange(size)
        columns.append(grid.targets(actions, knobs)[:, k])
    return columns


def packaged_bundles() -> dict[str, Path]:
    """Board -> folder of the bundle that ships with rlgov."""
    root = Path(str(files("rlgov"))) / "policies" / "bundles"
    return {path.parent.name: path.parent for path in sorted(root.glob(f"*/{CARD_FILE}"))}


def packaged(context: PolicyContext, args: Mapping[str, object]) -> Policy:
    """The packaged bundle of the board, or the one whose tables are nearest among those that fit.

    Raises:
        PolicyError: None does.
    """
    no_arguments("ppo", args)
    shipped = packaged_bundles()
    if context.board in shipped:
        return BundlePolicy(Bundle.load(shipped[context.board]), context.knobs)
    fitting = [b for b in map(Bundle.load, shipped.values()) if b.card.fits(context.knobs)]
    if fitting:
        nearest = min(fitting, key=lambda bundle: bundle.card.distance(context.knobs))
        return BundlePolicy(nearest, context.knobs)
    raise PolicyError(
        f"no bundle ships for board {context.board or 'at hand'}; there are some for "
        f"{', '.join(shipped) or 'none'}: train one with rlgov train board=… and give its folder"
    )


def _weights(layers: Sequence[Layer], surrogate: Surrogate | None) -> bytes:
    tensors = {}
    for i, (weight, bias) in enumerate(layers):
        tensors[f"layer{i}.weight"] = np.ascontiguousarray(weight, np.float32)
        tensors[f"layer{i}.bias"] = np.ascontiguousarray(bias, np.float32)
    for name, array in ({} if surrogate is None else surrogate.arrays()).items():
        tensors[f"{SURROGATE}.{name}"] = np.ascontiguousarray(array, np.float32)
    return save_tensors(tensors)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise PolicyError(
            f"cannot read {path}: {error.strerror}; a bundle is a folder with {WEIGHTS_FILE} and "
            f"{CARD_FILE}"
        ) from error


def _read_card(path: Path) -> Card:
    try:
        values = json.loads(_read(path))
    except (ValueError, RecursionError) as error:
        raise PolicyError(f"{path} is not valid JSON: {error}") from error
    card = Card.from_dict(values, str(path))
    card.check_observation(str(path))
    return card


def _tensors(
    data: bytes, count: int, believes: bool, where: Path
) -> tuple[list[Layer], Surrogate | None]:
    try:
        tensors = load_tensors(data)
    except (SafetensorError, ValueError, KeyError) as error:
        raise PolicyError(f"{where} is not a safetensors file: {error}") from error
    names = {f"layer{i}.{part}" for i in range(count) for part in ("weight", "bias")}
    learnt = [f.name for f in fields(Surrogate)] if believes else []
    names |= {f"{SURROGATE}.{name}" for name in learnt}
    if set(tensors) != names:
        raise PolicyError(
            f"{where} holds {', '.join(sorted(tensors)) or 'nothing'}; "
            f"expected {', '.join(sorted(names))}"
        )
    for name, tensor in tensors.items():
        if tensor.dtype != np.float32:
            raise PolicyError(f"{where}: {name} is {tensor.dtype}, not float32")
        if not np.isfinite(tensor).all():
            raise PolicyError(f"{where}: {name} holds values that are not finite")
    layers = [(tensors[f"layer{i}.weight"], tensors[f"layer{i}.bias"]) for i in range(count)]
    if not believes:
        return layers, None
    return layers, Surrogate.of_arrays({name: tensors[f"{SURROGATE}.{name}"] for name in learnt})


def _check_shapes(bundle: Bundle, where: Path) -> None:
    inputs = len(bundle.card.observation_names) + len(bundle.card.belief)
    widths = [inputs, *bundle.card.hidden, sum(bundle.grid.sizes)]
    shapes = [weight.shape for weight, _ in bundle.layers]
    expected = [(out, into) for into, out in pairwise(widths)]
    beside = bundle.skip.stop - bundle.skip.start
    expected[-1] = (expected[-1][0], expected[-1][1] + beside)
    if shapes != expected:
        raise PolicyError(f"{where}: layers are {shapes}, the card says {expected}")
    bundle.actor()
    if bundle.surrogate is not None:
        bundle.surrogate.check(bundle.grid, str(where))
        if list(bundle.card.belief) != feature_names(bundle.grid):
            raise PolicyError(f"{where}: the belief's features are not those of this rlgov")


def board_tables(knobs: Sequence[Knob]) -> dict[str, list[float]]:
    """Knob -> table in MHz, as a card holds them."""
    by_name = {knob.name: [float(level) for level in knob.levels_mhz] for knob in knobs}
    return {name: by_name[name] for name in KNOB_NAMES if name in by_name}
