"""The card of a bundle: what a policy reads, may choose, and how it came to be."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from rlgov.boards.base import KNOB_NAMES, Knob
from rlgov.envs.observation import BOUND, observation_names
from rlgov.errors import PolicyError

FORMAT_VERSION = 2
"""Grows when a reader of an older version could misread a bundle."""
TABLE_TOLERANCE = 0.1
"""Relative difference of a table's top at which it is another chip's, not another release's."""

_TYPES: Mapping[str, type | tuple[type, ...]] = {
    "format_version": int,
    "board": str,
    "knobs": dict,
    "actions": dict,
    "observation_names": list,
    "observation_bound": (int, float),
    "belief": list,
    "hidden": list,
    "activation": str,
    "weights_sha256": str,
    "seed": int,
    "training": dict,
    "versions": dict,
    "evaluation": list,
    "limits": list,
}


@dataclass(frozen=True)
class Card:
    """Everything beside the weights, as plain JSON values.

    Attributes:
        board: The board that it was trained for.
        knobs: Knob -> that board's table in MHz.
        actions: Knob -> levels as shares of the knob's ceiling; action 0 is always auto.
        hidden: Widths of the hidden layers.
        activation: Between the layers.
        weights_sha256: Of ``weights.safetensors``.
        seed: Of the training run.
        training: Its resolved configuration.
        versions: Of rlgov and of the libraries that made it.
        evaluation: Rows of figures on the validation population.
        limits: What it is known not to do, in words.
        observation_names: Features in order.
        observation_bound: Every feature is clipped to plus or minus this.
        belief: Names of what the bundle's own `rlgov.policies.surrogate.Belief` appends to the
            observation; empty for a policy that reads the observation alone.
        format_version: See `FORMAT_VERSION`.
    """

    board: str
    knobs: Mapping[str, Sequence[float]]
    actions: Mapping[str, Sequence[float]]
    hidden: Sequence[int]
    activation: str
    weights_sha256: str
    seed: int
    training: Mapping[str, Any] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    evaluation: Sequence[Mapping[str, Any]] = ()
    limits: Sequence[str] = ()
    observation_names: Sequence[str] = field(default_factory=observation_names)
    observation_bound: float = BOUND
    belief: Sequence[str] = ()
    format_version: int = FORMAT_VERSION

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return asdict(self)

    @staticmethod
    def from_dict(values: Any, where: str) -> Card:
        """Read a card.

        Args:
            values: What the JSON file held.
            where: Its path, for messages.

        Raises:
            PolicyError: Keys are missing or of the wrong type, or the format is another.
        """
        if not isinstance(values, dict):
            raise PolicyError(f"{where} is not the card of a bundle: it holds no mapping")
        version = values.get("format_version")
        if version != FORMAT_VERSION:
            raise PolicyError(
                f"{where}: the bundle has format {version!r}, this rlgov reads {FORMAT_VERSION}; "
                f"it was made with {_shown(values.get('versions'))}: use those, or train anew"
            )
        known = {f.name for f in fields(Card)}
        missing = sorted(known - set(values))
        if missing:
            raise PolicyError(f"{where} lacks {', '.join(missing)}")
        _check_types(values, where)
        return Card(**{name: values[name] for name in known})

    def check_observation(self, where: str) -> None:
        """Refuse a card whose features are not those that this rlgov makes.

        Raises:
            PolicyError: Both sides are printed.
        """
        mine, here = list(self.observation_names), list(observation_names())
        if mine == here and self.observation_bound == BOUND:
            return
        only_mine = [name for name in mine if name not in here]
        only_here = [name for name in here if name not in mine]
        order = "" if only_mine or only_here else " (the order differs)"
        raise PolicyError(
            f"{where} reads {len(mine)} features bounded by {self.observation_bound:g}, this rlgov "
            f"makes {len(here)} bounded by {BOUND:g}; only the bundle's: {_listed(only_mine)}; "
            f"only rlgov's: {_listed(only_here)}{order}; "
            f"it was made with {_shown(self.versions)}: use that version, or train anew"
        )

    def fits(self, knobs: Sequence[Knob]) -> bool:
        """Whether `check_knobs` would pass."""
        common = [knob for knob in knobs if knob.name in self.knobs]
        return bool(common) and not any(self._is_other_chip(knob) for knob in common)

    def check_knobs(self, knobs: Sequence[Knob], where: str) -> None:
        """Refuse a board whose clocks are another chip's.

        Tables may differ in their steps, since levels are shares of the top; a knob that the board
        lacks is masked.

        Raises:
            PolicyError: Both tables are printed.
        """
        common = [knob for knob in knobs if knob.name in self.knobs]
        if not common:
            here = ", ".join(knob.name for knob in knobs) or "none"
            raise PolicyError(
                f"{where} turns {', '.join(self.knobs)}, the board's knobs are {here}"
            )
        for knob in common:
            if self._is_other_chip(knob):
                mine = _table(self.knobs[knob.name])
                raise PolicyError(
                    f"{where} is for {self.board}, whose {knob.name} table is {mine} MHz; "
                    f"this board's is {_table(knob.levels_mhz)} MHz"
                )

    def distance(self, knobs: Sequence[Knob]) -> float:
        """Largest relative difference of a common table's top; infinite without a common knob."""
        common = [knob for knob in knobs if knob.name in self.knobs]
        return max((self._difference(knob) for knob in common), default=math.inf)

    def _is_other_chip(self, knob: Knob) -> bool:
        return self._difference(knob) > TABLE_TOLERANCE

    def _difference(self, knob: Knob) -> float:
        return abs(knob.levels_mhz[-1] / self.knobs[knob.name][-1] - 1.0)


def _check_types(values: Mapping[str, Any], where: str) -> None:
    for name, kind in _TYPES.items():
        value = values[name]
        if isinstance(value, bool) or not isinstance(value, kind):
            raise PolicyError(f"{where}: {name} has the wrong type ({type(value).__name__})")
    if not all(isinstance(name, str) for name in values["observation_names"]):
        raise PolicyError(f"{where}: observation_names must be texts")
    if not all(_is_count(width) for width in values["hidden"]):
        raise PolicyError(f"{where}: hidden must be positive whole numbers")
    for group in ("knobs", "actions"):
        _check_levels(values[group], f"{where}: {group}")


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _check_levels(levels: Mapping[str, Any], where: str) -> None:
    for name, row in levels.items():
        if name not in KNOB_NAMES:
            raise PolicyError(f"{where} names {name!r}; knobs are {', '.join(KNOB_NAMES)}")
        if not isinstance(row, list) or not row or not all(_is_level(x) for x in row):
            raise PolicyError(f"{where}.{name} must be a list of positive numbers")
        if sorted(set(row)) != row:
            raise PolicyError(f"{where}.{name} must ascend")


def _is_level(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value > 0


def _table(levels: Sequence[float]) -> str:
    return ", ".join(f"{level:g}" for level in levels)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:12]) + (" …" if len(names) > 12 else "") or "none"


def _shown(versions: Any) -> str:
    if not isinstance(versions, Mapping) or not versions:
        return "unknown versions"
    return ", ".join(f"{name} {version}" for name, version in versions.items())
