"""Kill the governor, its watcher and its job at random moments; is every file as it was found?

``python scripts/kill_test.py [COUNT] [SEED] [MOUNT]`` prints a line a trial that failed and a
summary. With MOUNT, a folder where ``rlgov emulate`` serves a board, it is that board.
Governor and watcher down together are counted apart: a later repair gives the board back.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.fakes.kills import Fate, carry_out, draw


def main(count: str = "200", seed: str = "1", mount: str | None = None) -> int:
    fates = []
    for number, kill in enumerate(draw(int(count), int(seed))):
        with tempfile.TemporaryDirectory() as folder:
            fate = carry_out(kill, Path(folder), Path(mount) if mount else None)
        fates.append(fate)
        if not good(fate):
            print(f"{number}: {fate}", flush=True)
    alone = [f for f in fates if not f.kill.apart]
    apart = [f for f in fates if f.kill.apart]
    back = [f.back_s for f in alone if f.back_s is not None]
    print(f"{len(back)} of {len(alone)} as found within 2 s (slowest {max(back, default=0):.2f} s)")
    print(f"{sum(f.repaired for f in apart)} of {len(apart)} with the watcher down too repaired")
    return 0 if all(map(good, fates)) else 1


def good(fate: Fate) -> bool:
    return fate.repaired and (fate.kill.apart or fate.back_s is not None)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
