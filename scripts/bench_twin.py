"""Prints how many job-windows a second the batched twin steps, pinned and as found."""

from __future__ import annotations

import argparse
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
import yaml

from rlgov.boards.twin import TwinModel, TwinSpec, load_of
from rlgov.boards.twin.noise import job_seeds
from rlgov.cli.instantiate import instantiate_group

CONF = Path(__file__).resolve().parent.parent / "conf"


def rate(board: str, n: int, seconds: float, as_found: bool) -> float:
    """Job-windows a second of one process."""
    spec = TwinSpec.from_dict(yaml.safe_load((CONF / f"board/{board}.yaml").read_text()))
    rng = np.random.default_rng(0)
    jobs = yaml.safe_load((CONF / "population/default.yaml").read_text())
    population = instantiate_group(jobs, "population")
    load = load_of(population.draw(n, rng).work, spec)
    model = TwinModel(spec)
    state = model.start(load, job_seeds(n, rng))
    tables = [spec.knobs[k].levels_mhz for k in ("gpu", "cpu", "emc")]
    targets = [np.stack([rng.choice(t, n) for t in tables], -1) for _ in range(8)]
    if as_found:
        targets = [np.full((n, 3), np.nan)]
    done, began = 0, time.perf_counter()
    while time.perf_counter() - began < seconds:
        _, state = model.window(state, targets[done % len(targets)], load, 5, 5.0)
        done += 1
    return done * n / (time.perf_counter() - began)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--board", default="jetson_agx_orin_64gb")
    parser.add_argument("--jobs", type=int, default=4096)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=3.0)
    args = parser.parse_args()
    for as_found in (False, True):
        with ProcessPoolExecutor(args.processes) as pool:
            runs = [
                pool.submit(rate, args.board, args.jobs, args.seconds, as_found)
                for _ in range(args.processes)
            ]
            rates = [run.result() for run in runs]
        kind = "as found" if as_found else "pinned"
        print(f"{kind:9s} {sum(rates) / 1e6:.2f} M job-windows/s on {args.processes} processes")


if __name__ == "__main__":
    main()
