from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of other people's measurements beside the checkout; it is not part of it."""
    folder = Path(__file__).resolve().parents[3] / "shared"
    if not (folder / "tegrastats").is_dir():
        pytest.skip("the samples of ../shared are not on this machine")
    return folder
