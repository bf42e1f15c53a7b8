"""A governor as small as can be: holds the lease, changes clocks at random, ends with its job.

``python -m tests.fakes.governed ROOT STATE RUN SEED KIND`` with ``tree`` or ``jetson`` as KIND.
"""

from __future__ import annotations

import random
import signal
import subprocess
import sys
from pathlib import Path

from rlgov.boards.base import Board, Setting
from rlgov.boards.lease import Lease
from rlgov.cli.main import terminate
from tests.fakes.tree_board import TreeBoard

JOB = "import signal; signal.pause()"


def open_board(kind: str, root: Path) -> Board:
    if kind == "tree":
        return TreeBoard(root)
    from rlgov.boards.jetson import JetsonBoard

    return JetsonBoard(root, settle_s=0.0)


def main(root: str, state: str, run: str, seed: str, kind: str) -> None:
    signal.signal(signal.SIGTERM, terminate)
    rng = random.Random(int(seed))
    board = open_board(kind, Path(root))
    job = subprocess.Popen([sys.executable, "-I", "-S", "-c", JOB])
    try:
        with Lease(board, Path(run), state_dir=Path(state)):
            while job.poll() is None:
                board.apply(Setting(**{k.name: rng.choice(k.allowed_mhz) for k in board.knobs}))
                try:
                    job.wait(0.003)
                except subprocess.TimeoutExpired:
                    continue
    finally:
        job.kill()
        job.wait()


if __name__ == "__main__":
    main(*sys.argv[1:])
