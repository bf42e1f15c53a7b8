"""The truth about one run of a policy, window by window."""

from __future__ import annotations

from dataclasses import dataclass

from rlgov.work import FloatArray


@dataclass(frozen=True)
class Track:
    """The truth about a run, window by window.

    Attributes:
        step_j: Joules a step, changes of clock included, ``[windows, n]``.
        step_s: Seconds a step, ``[windows, n]``.
        steps: Steps, ``[windows, n]``.
        guarded: 1 where the guard acted, ``[windows, n]``.
        targets_mhz: Settings, ``[windows, n, 3]``.
    """

    step_j: FloatArray
    step_s: FloatArray
    steps: FloatArray
    guarded: FloatArray
    targets_mhz: FloatArray

    def j_per_step(self, first: int = 0) -> FloatArray:
        """Joules over steps from window ``first`` on, ``[n]``."""
        return pooled(self.step_j[first:], self.steps[first:])

    @property
    def s_per_step(self) -> FloatArray:
        """Seconds over steps, ``[n]``."""
        return pooled(self.step_s, self.steps)


def pooled(values: FloatArray, steps: FloatArray) -> FloatArray:
    """Mean of ``values`` over windows, weighted by steps: ``[windows, n]`` each to ``[n]``."""
    mean: FloatArray = (values * steps).sum(0) / steps.sum(0)
    return mean
