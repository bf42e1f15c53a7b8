"""What the governor costs: CPU and time a decision, memory, over thousands of windows.

A synthetic job on the emulated board, as fast as both go; emulating is not the governor's own work
and is left out. Usage: python scripts/bench_governor.py [--windows 2000] [--policy random]
"""

from __future__ import annotations

import argparse
import tempfile
from functools import partial
from pathlib import Path

import numpy as np
import yaml

from rlgov.boards.twin import TwinSpec
from rlgov.boards.twin.board import TwinBoard
from rlgov.envs.simulated import WindowSpec
from rlgov.governor.cost import peak_rss_mb
from rlgov.governor.emulated import EmulatedJob
from rlgov.governor.session import Session, SessionSpec
from rlgov.jobs.base import Job, JobEnd, StepEvent
from rlgov.policies.registry import load_policy
from rlgov.work import make_work

CONF = Path(__file__).resolve().parents[1] / "conf"
LIMIT_MB = 100.0


class Loop(Job):
    """The same step for ever, until ``enough`` says so."""

    name = "loop"

    def __init__(self, tflop: float) -> None:
        self.enough = lambda: False
        self.taken = 0
        flop = np.array([0.33, 0.66, 0.01]) * tflop * 1e12
        byte = np.array([0.3, 0.5, 0.2]) * 1e9
        self._work = make_work(flop=flop, byte=byte, launch=[150, 250, 60], tokens=1500)

    def next_event(self, timeout_s: float | None = None) -> StepEvent | JobEnd | None:
        if self.enough():
            return JobEnd(0, "completed", self.taken)
        self.taken += 1
        index, wall_s = self.taken - 1, 0.01 if self.taken > 1 else None
        return StepEvent(index, self.taken * 0.01, wall_s, self._work, "counted", 16, 1500)

    def close(self) -> None:
        return


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--windows", type=int, default=2000, help="decided windows")
    parser.add_argument("--policy", default="random")
    parser.add_argument("--board", default="jetson_agx_orin_64gb")
    parser.add_argument("--tflop", type=float, default=0.8, help="work of a step, in TFLOP")
    return parser.parse_args()


def main() -> None:
    args = parse_arguments()
    board_file = CONF / "board" / f"{args.board}.yaml"
    spec = TwinSpec.from_dict(yaml.safe_load(board_file.read_text(encoding="utf-8")))
    board, loop = TwinBoard(spec), Loop(args.tflop)
    job = EmulatedJob(loop, board)
    best = partial(job.best_targets, 0.1)
    policy = load_policy(args.policy, board.knobs, board=board.name, best=best)
    settings = SessionSpec(budget=0.1, window=WindowSpec())
    before_mb = peak_rss_mb()
    with tempfile.TemporaryDirectory() as folder:
        session = Session(settings, board, job, policy, spec.rail_roles, board.drain, Path(folder))
        decided = session.ledger.windows["decided"]
        loop.enough = lambda: len(decided) >= args.windows
        result = session.run()
        trace_mb = sum(f.stat().st_size for f in Path(folder).iterdir()) / 1e6
    if result.failure:
        raise SystemExit(f"the governor failed: {result.failure}")
    cost = result.cost.summary(job.emulation_s)
    windows = sum(map(len, result.ledger.windows.values()))
    emulated_s = board.now_s()
    print(f"{policy.name} on {board.name} (emulated): {windows} windows, {loop.taken} steps")
    print(f"CPU a window       {cost['cpu_s'] / windows * 1e3:8.2f} ms (all but the emulation)")
    print(f"CPU a step         {cost['cpu_s'] / loop.taken * 1e6:8.1f} us")
    print(f"share of one core  {cost['cpu_s'] / emulated_s:8.3%} of the job's time")
    print(f"decision           {cost['decision_ms_p50']:8.2f} ms p50")
    print(f"                   {cost['decision_ms_p99']:8.2f} ms p99")
    print(f"resident           {cost['rss_mb']:8.1f} MB (at the start {before_mb:.1f} MB)")
    print(f"trace              {trace_mb:8.1f} MB")
    if cost["rss_mb"] > LIMIT_MB:
        raise SystemExit(f"more than {LIMIT_MB:g} MB resident")


if __name__ == "__main__":
    main()
