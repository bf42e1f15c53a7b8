"""``python -m rlgov`` is ``rlgov``."""

from __future__ import annotations

from rlgov.cli.main import entry

if __name__ == "__main__":
    entry()
