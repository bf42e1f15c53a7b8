"""Fits twins to a folder of published measurements and prints the errors, in sample and held out.

    python scripts/fit_measured.py --measured FOLDER [--ensemble 0] [--only jetson_tx2]

What is held out stands in tests/traces/holdout.json. The choice test fits each curve with energy
from five settings, neither the best nor its neighbours among them, starting from a board whose
voltage curve, throughput and clock power are set to neutral values, and compares the energy at the
clock that the fitted twin picks with the best measured one.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from rlgov.boards.twin import TwinSpec
from rlgov.traces.fit import FittedTwin, SurfaceError, errors_of, fit, fit_job
from rlgov.traces.fit_parameters import parameters_for
from rlgov.traces.fit_points import Points, points_of
from rlgov.traces.fit_solve import predict, solve_points
from rlgov.traces.profile import KNOB_COLUMNS, Profile
from rlgov.traces.profiles import read_profiles

ROOT = Path(__file__).resolve().parent.parent
CARDS = ("nvidia_v100", "nvidia_p100")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--measured", type=Path, required=True)
    parser.add_argument("--ensemble", type=int, default=0)
    parser.add_argument("--only", default="")
    args = parser.parse_args()
    groups = json.loads((ROOT / "tests/traces/holdout.json").read_text())["groups"]
    for group in groups:
        if args.only in group["board"]:
            report(group, profiles_of(group, args.measured), args.ensemble)


def profiles_of(group: dict[str, Any], folder: Path) -> list[Profile]:
    """The group's profiles; a card's epochs stand for its steps (only ratios matter)."""
    found = [p for name in group["files"] for p in read_profiles(folder / name)]
    if group["board"] not in CARDS:
        return found
    mine = [p for p in found if p.device == group["board"]]
    return [
        Profile([replace(r, step_time_s=r.note_number("time_per_epoch_s")) for r in p.rows])
        for p in mine
    ]


def report(group: dict[str, Any], profiles: list[Profile], ensemble: int) -> None:
    spec = spec_of(group["board"])
    print(f"\n== {group['board']} ({', '.join(group['files'])})")
    fitted = fit(profiles, spec, ensemble=ensemble)
    print_errors("in sample", fitted.errors)
    print_errors("held out", held_out_errors(group, profiles, spec))
    free = [c.name for c in fitted.constraints if not c.constrained and ":" not in c.name]
    print(f"  board parameters that these points do not constrain: {', '.join(free) or 'none'}")
    if ensemble:
        print_ensemble(fitted, points_of(profiles, spec))
    for profile in profiles:
        print_choice(profile, neutral(spec))


def spec_of(name: str) -> TwinSpec:
    return TwinSpec.from_dict(yaml.safe_load((ROOT / f"conf/board/{name}.yaml").read_text()))


def print_errors(title: str, errors: Sequence[SurfaceError]) -> None:
    """By surface, all jobs together, then by job."""
    print(f"  {title}")
    for surface in dict.fromkeys(e.surface for e in errors):
        mine = [e for e in errors if e.surface == surface]
        rms = pooled(mine)
        by_job = ", ".join(f"{e.job[:34]} {100 * e.rms:.2f}" for e in mine)
        count = sum(e.points for e in mine)
        print(f"    {surface:18s} rms {100 * rms:5.2f} %  ({count} points: {by_job})")
    rails = [e for e in errors if e.surface.startswith("rail")]
    if rails:
        print(f"    {'all rails':18s} rms {100 * pooled(rails):5.2f} %")


def pooled(errors: Sequence[SurfaceError]) -> float:
    points = sum(e.points for e in errors)
    return float(np.sqrt(sum(e.rms**2 * e.points for e in errors) / points))


def matching(profiles: Sequence[Profile], chosen: dict[str, float]) -> np.ndarray:
    """Settings whose knobs have the given values."""
    rows = [row for profile in profiles for row in profile.settings()]
    return np.array(
        [all(close(getattr(row, k), v) for k, v in chosen.items()) for row in rows], bool
    )


def close(value: float | None, wanted: float) -> bool:
    return value is not None and abs(value - wanted) < 1e-2 * wanted


def held_out_errors(
    group: dict[str, Any], profiles: list[Profile], spec: TwinSpec
) -> list[SurfaceError]:
    points = points_of(profiles, spec)
    away = np.array([any(name in job for name in group["jobs"]) for job in points.jobs])
    setting = np.any([matching(profiles, {group["knob"]: v}) for v in group["settings"]], axis=0)
    anchors = np.any([matching(profiles, a) for a in group["anchors"]], axis=0)
    other_job = away[points.job]
    train = ~setting & ~other_job
    solution = solve_points(points.keep(train), parameters_for(points.keep(train), spec))
    board, theta = solution.problem.parameters, solution.theta
    errors = list(
        errors_of(points.keep(setting & ~other_job), board.load_of(theta), board.board_of(theta))
    )
    for job in np.flatnonzero(away):
        load = fit_job(points, int(job), anchors, solution)
        rest = points.keep(~anchors).of_job(int(job))
        errors += errors_of(rest, load, board.board_of(theta))
    held = int((setting & ~other_job).sum() + (other_job & ~anchors).sum())
    print(f"  held out: {held} of {len(points.job)} settings; {int(away.sum())} whole jobs")
    return errors


def print_ensemble(fitted: FittedTwin, points: Points) -> None:
    rms = [[e.rms for e in errors_of(points, load, spec)] for spec, load in fitted.members]
    best = [e.rms for e in fitted.errors]
    worst = np.max(np.array(rms) / np.array(best), 0)
    print(f"  ensemble of {len(rms)}: worst member's rms over the best fit's: {worst.round(2)}")


def neutral(spec: TwinSpec) -> TwinSpec:
    """The board without what was learnt from the curves: only idle power and tables are kept."""
    top = spec.knobs["gpu"].levels_mhz[-1] / 1e3
    gpu = replace(
        spec.gpu,
        voltage=replace(spec.gpu.voltage, knee_ghz=0.5 * top, slope_per_ghz=0.8 / top),
        clock_w_per_ghz=0.3 * (spec.base_w + spec.gpu.leak_w) / top,
    )
    return replace(spec, gpu=gpu, smooth=replace(spec.smooth, gpu_memory=3.5))


def print_choice(profile: Profile, spec: TwinSpec) -> None:
    rows = [r for r in profile.settings() if r.energy_per_step_j is not None]
    knob = next((k for k in KNOB_COLUMNS if len({getattr(r, k) for r in rows}) > 1), None)
    if knob is None or len(rows) < 6:
        return
    joules = np.array([r.energy_per_step_j for r in rows], float)
    best = int(joules.argmin())
    near = {best - 1, best, best + 1}
    left = [i for i in range(len(rows)) if i not in near]
    few = [left[i] for i in np.unique(np.linspace(0, len(left) - 1, 5).round().astype(int))]
    points = points_of([Profile(rows)], spec)
    train = np.isin(np.arange(len(rows)), few)
    solution = solve_points(points.keep(train), parameters_for(points.keep(train), spec))
    p, theta = solution.problem.parameters, solution.theta
    predicted = predicted_energy(points, p.load_of(theta), p.board_of(theta))
    pick = int(predicted.argmin())
    values = [getattr(rows[i], knob) for i in (*few, pick, best)]
    cost = 100 * (joules[pick] / joules[best] - 1)
    print(
        f"  choice of {knob} for {profile.job[:44]}: from {[round(v) for v in values[:-2]]} picks "
        f"{values[-2]:g}, best {values[-1]:g}, costs {cost:.2f} %"
    )


def predicted_energy(points: Points, load: Any, spec: TwinSpec) -> np.ndarray:
    """Joules a step at every setting, over what the file's energy covers."""
    shown = predict(points, load, spec)
    time, power, energy = (
        {
            int(r): v
            for r, v, k, s in zip(points.row, shown, points.kind, points.surface, strict=True)
            if k == kind and not str(s).startswith("rail")
        }
        for kind in ("time", "power", "energy")
    )
    return np.array([energy.get(r) or time[r] * power[r] for r in range(len(points.job))])


if __name__ == "__main__":
    main()
