"""A board's total from its rails: its input rail, else a sum, never a total plus its parts."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping

INPUT_RAILS = ("vdd_in", "pom_5v_in", "vin")
"""Rails that carry all of a board's (or module's) input, in order of preference.

``vin_sys_5v0`` of AGX Orin and Thor is *not* one of them: it feeds only part of the board.
"""

SUM_RULE = "sum_of_rails"
NO_RULE = "none"


def total_rule(rails: Collection[str]) -> str:
    """How a total is formed from ``rails`` (names in lower case).

    Returns:
        An input rail in upper case as the board prints it, `SUM_RULE` (documented sum of every
        connected rail; not the board's input), or `NO_RULE`.
    """
    for name in INPUT_RAILS:
        if name in rails:
            return name.upper()
    return SUM_RULE if any(not is_unconnected(rail) for rail in rails) else NO_RULE


def total_w(rails: Mapping[str, float], rule: str) -> float | None:
    """The total in W by ``rule``; ``None`` when the rails do not allow it.

    Rails below zero (a sensor's offset on a gated rail) count as 0.
    """
    if rule == NO_RULE or not rails:
        return None
    if rule != SUM_RULE:
        value = rails.get(rule.lower())
        return None if value is None else max(value, 0.0)
    connected = [max(w, 0.0) for rail, w in rails.items() if not is_unconnected(rail)]
    # A sensor steps in mW; rounding keeps 0.1 + 0.2 from showing up in every file.
    return round(math.fsum(connected), 9) if connected else None


def is_unconnected(rail: str) -> bool:
    """Whether a rail's name says that nothing is connected to it (``NC``)."""
    return rail == "nc" or rail.startswith("nc_")
