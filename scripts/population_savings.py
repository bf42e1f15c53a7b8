"""Prints what a board's twin says of the training population: as found, pinned, best static clocks.

    python scripts/population_savings.py [--board NAME] [--jobs 1000]

The rails that the literature reports (without VIN_SYS_5V0) stand beside the board's total.
Published on one AGX Orin: 13 % mean and 27 % peak saving, and as found 0 to 27 % under pinned
maximum.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np
import yaml

from rlgov.boards.twin import TwinModel, TwinSpec, load_of
from rlgov.boards.twin.noise import job_seeds
from rlgov.cli.instantiate import instantiate_group

CONF = Path(__file__).resolve().parent.parent / "conf"
KNOBS = ("gpu", "cpu", "emc")
BUDGETS = (0.05, 0.2, 1e9)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--board", default="jetson_agx_orin_64gb")
    parser.add_argument("--jobs", type=int, default=1000)
    args = parser.parse_args()
    values = yaml.safe_load((CONF / f"board/{args.board}.yaml").read_text())
    spec = TwinSpec.from_dict(values)
    rng = np.random.default_rng(0)
    jobs = yaml.safe_load((CONF / "population/default.yaml").read_text())
    load = load_of(instantiate_group(jobs, "population").draw(args.jobs, rng).work, spec)
    heat = TwinModel(spec).start(load, job_seeds(args.jobs, rng)).temperature_c
    rails = tuple(r for r in spec.total_rails if r != "VIN_SYS_5V0")
    print(f"{args.board}, {args.jobs} jobs of the training population (emulated)")
    for title, board in (("total", spec), ("literature's rails", replace(spec, total_rails=rails))):
        model = TwinModel(board)
        print(f"\n{title} ({' + '.join(board.total_rails)})")
        top = np.array([[model.levels_ghz[k][-1] * 1e3 for k in range(3)]])
        pinned_s, pinned_j = model.grid_cost(load, top, heat)
        time_s, joules = model.grid_cost(load, settings(spec), heat)
        found_s, found_j = time_s[:, -1], joules[:, -1]
        show("W, pinned maximum", pinned_j[:, 0] / pinned_s[:, 0], 1, "W")
        show("W, as found", found_j / found_s, 1, "W")
        show("as found under pinned maximum", 1 - found_j / pinned_j[:, 0], 100, "%")
        for budget in BUDGETS:
            allowed = time_s <= (1 + budget) * found_s[:, None] * (1 + 1e-9)
            best = np.where(allowed, joules, np.inf).min(1)
            limit = f"{100 * budget:g} % slower at most" if budget < 1e6 else "no limit"
            show(f"best static saving, {limit}", 1 - best / found_j, 100, "%")


def settings(spec: TwinSpec) -> np.ndarray:
    """Every GPU and EMC level against every third CPU level, and as found at the end."""
    axes = [
        [*spec.knobs["gpu"].levels_mhz, np.nan],
        [*spec.knobs["cpu"].levels_mhz[::-3], np.nan],
        [*spec.knobs["emc"].levels_mhz[-2:], np.nan],
    ]
    mesh = np.meshgrid(*axes, indexing="ij")
    grid: np.ndarray = np.stack([m.ravel() for m in mesh], -1)
    return grid


def show(what: str, values: np.ndarray, scale: float, unit: str) -> None:
    low, median, high = np.percentile(values, [5, 50, 95]) * scale
    print(
        f"  {what:42s} mean {values.mean() * scale:6.1f} {unit}, 5/50/95 % "
        f"{low:.1f} / {median:.1f} / {high:.1f}, range {values.min() * scale:.1f} to "
        f"{values.max() * scale:.1f}"
    )


if __name__ == "__main__":
    main()
