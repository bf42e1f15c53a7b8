"""Minimum, maximum, locks and caps, as kernels of different ages take them.

Kernel 4.9 (JetPack 4) refuses a minimum above the maximum; since 5.10 both are requests, and what
is read back is the range in force.
"""

from __future__ import annotations

import errno
from bisect import bisect_left
from collections.abc import Callable, Sequence

from rlgov.boards.emulate.nodes import Node, Number, live, refusal, whole


class FreqRange:
    """The bounds of one clock, in the kernel's own unit.

    Args:
        table: Its levels.
        strict: Kernel 4.9's manners rather than those since 5.10.
        low: Minimum at the start; the table's by default.
        cap: What heat holds the maximum down to; ``None`` for nothing.
        present: Whether the clock's files are there.
    """

    def __init__(
        self,
        table: Sequence[int],
        *,
        strict: bool,
        low: int | None = None,
        cap: Callable[[], int | None] = lambda: None,
        present: Callable[[], bool] = lambda: True,
    ) -> None:
        self.table = tuple(table)
        self.strict = strict
        self._low, self._high = low or self.table[0], self.table[-1]
        self._cap = cap
        self.present = present

    @property
    def bounds(self) -> tuple[int, int]:
        """The range that reading back shows."""
        if self.strict:
            return self._low, self._high
        top = min(self._high or self.table[-1], self.table[-1], self._cap() or self.table[-1])
        top = max(top, self.table[0])
        return min(max(self._low, self.table[0]), top), top

    @property
    def pinned(self) -> int | None:
        """The level that the clock must run at; ``None`` while it has a choice."""
        low, high = self.bounds
        return self.snap(high) if high and low >= high else None

    @property
    def ceiling(self) -> int:
        """The highest level in force."""
        return self.snap(self.bounds[1] or self.table[-1])

    def snap(self, value: int) -> int:
        """The table's entry at or above ``value``, where the driver goes."""
        return self.table[min(bisect_left(self.table, value), len(self.table) - 1)]

    def nodes(self, minimum: str, maximum: str, table: str) -> dict[str, Node]:
        """The three files, by name."""
        words = " ".join(map(str, self.table)) + "\n"
        there = self.present
        return {
            minimum: Node(lambda: f"{self.bounds[0]}\n", self.set_low, present=there),
            maximum: Node(lambda: f"{self.bounds[1]}\n", self.set_high, present=there),
            table: Node(lambda: words, present=there),
        }

    def set_low(self, text: str) -> None:
        """Store a minimum.

        Raises:
            OSError: EINVAL: no number, or (4.9) above the maximum.
        """
        value = whole(text)
        if self.strict:
            if self._high and value > self._high:
                raise refusal(errno.EINVAL)
            value = min(max(value, self.table[0]), self.table[-1])
        self._low = value

    def set_high(self, text: str) -> None:
        """Store a maximum; 0 is no limit.

        Raises:
            OSError: EINVAL: no number, or (4.9) below the minimum.
        """
        value = whole(text)
        if self.strict and value:
            if value < self._low:
                raise refusal(errno.EINVAL)
            value = min(value, self.table[-1])
        self._high = value


class Emc:
    """The memory clock, in Hz.

    Args:
        rates: What it can run at.
        free_hz: The clock while nothing holds it.
    """

    def __init__(self, rates: Sequence[int], free_hz: Callable[[], float]) -> None:
        self.rates = tuple(rates)
        self.locked = Number(0, (0, 1))
        self._rate = self.rates[-1]
        self._cap = 0
        self._free_hz = free_hz

    @property
    def pinned(self) -> int | None:
        """The rate that a lock or a cap leaves; ``None`` while it is free."""
        if self.locked.value:
            return min(self._rate, self.achievable)
        return self.achievable if self.achievable < self.rates[-1] else None

    @property
    def achievable(self) -> int:
        """The highest rate under the cap."""
        return self._below(self._cap) if self._cap else self.rates[-1]

    def clock_hz(self) -> float:
        """What it runs at: the lock's rate, else the supported rate nearest to what is free."""
        if self.locked.value:
            return min(self._rate, self.achievable)
        free_hz = self._free_hz()
        return min(min(self.rates, key=lambda rate: abs(rate - free_hz)), self.achievable)

    def rate_node(self, mode: int = 0o600) -> Node:
        """Reads the clock, takes a rate; an unsupported one is rounded without a word."""
        return Node(lambda: f"{self.clock_hz():.0f}\n", self._set_rate, mode=mode, moves=True)

    def request_node(self) -> Node:
        """The set point of JetPack 4's override clock: reads back what was set."""
        return Node(lambda: f"{self._rate}\n", self._set_rate, mode=0o644)

    def clock_node(self, mode: int = 0o400) -> Node:
        """Only reads the clock."""
        return live(self.clock_hz, mode)

    def clk_cap_node(self) -> Node:
        """The cap since JetPack 6: reads the highest rate that can be reached, never 0."""
        return Node(lambda: f"{self.achievable}\n", self._set_cap_rounded, mode=0o664)

    def iso_cap_node(self) -> Node:
        """The cap of JetPack 4 and 5: 0 is no cap."""
        return Node(lambda: f"{self._cap}\n", self._set_cap, mode=0o600)

    def _set_rate(self, text: str) -> None:
        self._rate = self._below(whole(text))

    def _set_cap(self, text: str) -> None:
        self._cap = whole(text)

    def _set_cap_rounded(self, text: str) -> None:
        self._cap = self._below(whole(text))

    def _below(self, value: int) -> int:
        return max((rate for rate in self.rates if rate <= value), default=self.rates[0])
