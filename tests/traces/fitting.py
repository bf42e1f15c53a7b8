"""Profiles made by a twin whose truth is known, for tests of fits."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import yaml

from rlgov.boards.twin import Load, TwinSpec
from rlgov.boards.twin.spec import COMPONENTS
from rlgov.traces.fit_points import points_of
from rlgov.traces.fit_solve import cost_at
from rlgov.traces.schema import Profile, ProfileRow

CONF = Path(__file__).resolve().parents[2] / "conf"


def board(name: str) -> TwinSpec:
    return TwinSpec.from_dict(yaml.safe_load((CONF / f"board/{name}.yaml").read_text()))


def other(spec: TwinSpec) -> TwinSpec:
    """A board that differs from the spec as another piece of silicon might."""
    voltage = replace(spec.gpu.voltage, knee_ghz=spec.gpu.voltage.knee_ghz * 1.15)
    gpu = replace(spec.gpu, voltage=voltage, leak_w=spec.gpu.leak_w * 1.3)
    return replace(spec, gpu=gpu, base_w=spec.base_w * 1.1)


def job() -> Load:
    """A job bound by compute at low GPU clocks and by memory at high ones."""
    one = np.ones(1)
    phases = [np.array([[v, 0.0, 0.0]]) for v in (0.20, 0.45, 0.05, 2.0)]
    return Load(*phases, 1.5 * one, 0.6 * one, 0 * one, 0 * one, 0.01 * one, 0.3 * one)


def profile(
    spec: TwinSpec,
    load: Load,
    settings: list[dict[str, float]],
    noise: float = 0.0,
    rails: bool = False,
    seed: int = 0,
) -> Profile:
    """What would have been measured of ``load`` at ``settings``."""
    rows = [ProfileRow("board", "job", step_time_s=1.0, power_w=1.0, **s) for s in settings]
    points = points_of([Profile(rows)], spec)
    cost = cost_at(points, load, spec)
    rng = np.random.default_rng(seed)
    ordered = Profile(rows).settings()
    filled = []
    for i, row in enumerate(ordered):
        watts = {
            c: float(np.broadcast_to(cost.component_w[c], cost.time_s.shape)[i]) for c in COMPONENTS
        }
        by_rail = {r: sum(w * watts[c] for c, w in ws.items()) for r, ws in spec.rails.items()}
        error = np.exp(noise * rng.standard_normal(2 + len(by_rail)))
        filled.append(
            replace(
                row,
                step_time_s=float(cost.time_s[i] * error[0]),
                power_w=float(sum(by_rail[r] for r in spec.total_rails) * error[1]),
                energy_per_step_j=None,
                rails={
                    r.lower(): float(w * e)
                    for (r, w), e in zip(by_rail.items(), error[2:], strict=True)
                    if rails
                },
            )
        )
    return Profile(filled)
