"""Time a decision of the packaged policy: one observation to one setting, on one core.

usage: python scripts/bench_actor.py [BUNDLE]
"""

from __future__ import annotations

import sys
import time

import numpy as np

from rlgov.boards.base import Knob
from rlgov.envs.observation import observation_names
from rlgov.policies.bundle import Bundle, BundlePolicy, packaged_bundles
from rlgov.policies.registry import bundle_folder

REPEATS = 20_000
WARM_UP = 1_000


def main(words: list[str]) -> int:
    name = words[0] if words else "ppo"
    folder = bundle_folder(name) or next(iter(packaged_bundles().values()))
    bundle = Bundle.load(folder)
    card = bundle.card
    knobs = [Knob(knob, tuple(levels)) for knob, levels in card.knobs.items()]
    policy, actor = BundlePolicy(bundle, knobs), bundle.actor()
    rng = np.random.default_rng(0)
    seen = rng.uniform(-1, 1, (REPEATS, 1, len(observation_names()))).astype(np.float32)
    print(f"{card.board}, hidden {list(card.hidden)}, {REPEATS} decisions, microseconds")
    for label, decide in (("network", actor.act), ("policy ", policy.act)):
        for row in seen[:WARM_UP]:
            decide(row)
        spent = np.empty(REPEATS)
        for i, row in enumerate(seen):
            began = time.perf_counter_ns()
            decide(row)
            spent[i] = time.perf_counter_ns() - began
        low, high = np.percentile(spent / 1e3, [50, 99])
        print(f"{label}  p50 {low:6.1f}  p99 {high:6.1f}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
