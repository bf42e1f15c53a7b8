"""Energy counters that wrap, reset or are read too seldom."""

from __future__ import annotations

AMBIGUOUS = "energy_quality=ambiguous: the counter may have wrapped more than once since last read"
UNRESOLVED = "the counter went back and its range is not known"
FIRST = "a counter needs a second look"


class EnergyCounter:
    """Power from a cumulative energy counter, never negative and never guessed.

    Args:
        range_j: Where the counter wraps; ``None`` where it is not known.
        max_power_w: No unit draws more: a gap long enough for a whole range at this power could
            hide a wrap.

    Attributes:
        total_j: Joules of every interval that was certain; never falls.
        wraps_unresolved: Falls of the counter that could not be resolved, whose joules are lost.
        ambiguous: Gaps that were too long to know the number of wraps.
    """

    def __init__(self, range_j: float | None, max_power_w: float = 1000.0) -> None:
        self.total_j = 0.0
        self.wraps_unresolved = 0
        self.ambiguous = 0
        self._range_j = range_j if range_j else None
        self._max_power_w = max_power_w
        self._last: tuple[float, float] | None = None

    def power(self, t_s: float, joules: float) -> tuple[float | None, str]:
        """Mean watts since the last look, or ``None`` with the reason."""
        last, self._last = self._last, (t_s, joules)
        if last is None or t_s <= last[0]:
            return None, FIRST
        gap_s = t_s - last[0]
        spent, reason = self._spent(joules - last[1], gap_s)
        if spent is None:
            return None, reason
        self.total_j += spent
        return spent / gap_s, ""

    def _spent(self, change_j: float, gap_s: float) -> tuple[float | None, str]:
        if self._range_j is None:
            if change_j < 0:
                self.wraps_unresolved += 1
                return None, UNRESOLVED
            return change_j, ""
        if gap_s * self._max_power_w >= self._range_j:
            self.ambiguous += 1
            return None, AMBIGUOUS
        return change_j % self._range_j, ""
