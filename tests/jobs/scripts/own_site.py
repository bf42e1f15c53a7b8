"""A job that relies on a sitecustomize of its own."""

import runpy
import sys
from pathlib import Path

import sitecustomize

print("site", Path(sitecustomize.__file__).parent.name, sitecustomize.VALUE)
print("path", [entry for entry in sys.path if "rlgov-" in entry])
runpy.run_path(str(Path(__file__).with_name("plain_loop.py")))
