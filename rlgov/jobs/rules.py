"""Rules on the labels of drawn jobs: what a split holds out, said once for all splits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Rule: TypeAlias = Mapping[str, Sequence[str | float]]
"""Values of labels; a job matches where each of them is among those listed."""

RULE_KEYS = ("family", "method", "loader", "batch")
Draws: TypeAlias = dict[str, NDArray[Any]]


def matches(labels: Mapping[str, NDArray[Any]], rule: Rule) -> NDArray[np.bool_]:
    """Which jobs match ``rule`` in every label that it names."""
    length = len(next(iter(labels.values())))
    found = np.ones(length, bool)
    for key, values in rule.items():
        found &= np.isin(labels[key], list(values))
    return found


def force(drawn: Draws, rules: Sequence[Rule], rng: np.random.Generator) -> None:
    """Give every job one rule, and the labels that it names."""
    assigned = rng.integers(len(rules), size=len(drawn["family"]))
    for i, rule in enumerate(rules):
        at = np.flatnonzero(assigned == i)
        for key, values in rule.items():
            column = drawn[key]
            chosen = rng.choice(np.asarray(list(values)), len(at))
            wide = np.promote_types(column.dtype, chosen.dtype)
            drawn[key] = column.astype(wide)
            drawn[key][at] = chosen
