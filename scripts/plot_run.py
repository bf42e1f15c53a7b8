"""Draws a governed run: scripts/plot_run.py runs/<run> picture.png"""

from __future__ import annotations

import sys
from pathlib import Path

from rlgov.reports.run_plot import plot_run

if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    plot_run(Path(sys.argv[1]), Path(sys.argv[2]))
