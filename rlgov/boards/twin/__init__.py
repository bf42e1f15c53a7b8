"""The twin: a calibrated model of a board, vectorised over jobs.

`TwinModel` steps thousands of jobs at once (training, evaluation); `TwinBoard` puts one of them
behind the `Board` seam. Both run the same equations (`physics`).
"""

from rlgov.boards.twin.drift import Drift, DriftSpec, drift_at
from rlgov.boards.twin.model import Silicon, TwinModel, TwinState, WindowOutcome
from rlgov.boards.twin.physics import Load, StepCost, beside, load_of, step_cost
from rlgov.boards.twin.spec import TwinSpec

__all__ = [
    "Drift",
    "DriftSpec",
    "Load",
    "Silicon",
    "StepCost",
    "TwinModel",
    "TwinSpec",
    "TwinState",
    "WindowOutcome",
    "beside",
    "drift_at",
    "load_of",
    "step_cost",
]
