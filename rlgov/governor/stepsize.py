"""How large a step is: batches differ in tokens, and a window of short ones is no saving.

The step time as found is fitted as ``a + b * tokens`` by least squares over as-found steps; a
window's figures are divided by the size of its mean step relative to the mean as-found step.
"""

from __future__ import annotations

from collections.abc import Iterable

LEAST_STEPS = 10
"""As-found steps below which nothing is corrected."""


class StepSize:
    """Learns the size of a step from its tokens."""

    def __init__(self) -> None:
        self._n = 0
        self._mean_tokens = 0.0
        self._mean_s = 0.0
        self._var = 0.0
        self._cov = 0.0

    def learn(self, steps: Iterable[tuple[int | None, float]]) -> None:
        """Take in as-found steps as pairs of tokens (``None`` where unknown) and seconds."""
        for tokens, seconds in steps:
            if tokens is None:
                continue
            self._n += 1
            before = tokens - self._mean_tokens
            self._mean_tokens += before / self._n
            self._mean_s += (seconds - self._mean_s) / self._n
            self._var += before * (tokens - self._mean_tokens)
            self._cov += before * (seconds - self._mean_s)

    @property
    def corrects(self) -> bool:
        """Whether sizes differ at all, as far as is known."""
        return self._n >= LEAST_STEPS and self._var > 0 and self._cov > 0 and self._mean_s > 0

    def size(self, tokens: int | None, steps: int) -> float:
        """Relative size of ``steps`` steps with ``tokens`` tokens in all; 1 where not known."""
        if tokens is None or steps < 1 or not self.corrects:
            return 1.0
        slope = self._cov / self._var
        expected_s = self._mean_s + slope * (tokens / steps - self._mean_tokens)
        return max(expected_s / self._mean_s, 0.1)
