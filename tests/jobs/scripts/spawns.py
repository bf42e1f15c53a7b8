"""Training happens in a spawned child; the parent only waits."""

import multiprocessing
import runpy
from pathlib import Path

if __name__ == "__main__":
    script = str(Path(__file__).with_name("plain_loop.py"))
    child = multiprocessing.get_context("spawn").Process(target=runpy.run_path, args=(script,))
    child.start()
    child.join()
