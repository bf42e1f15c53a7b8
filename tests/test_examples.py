"""The example jobs: ordinary training scripts, the same numbers for the same seed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parents[1] / "scripts"
SMALL = ["--steps", "3", "--batch-size", "4", "--seq-len", "32", "--layers", "1"]


def _run(script: str, cwd: Path, *words: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, SCRIPTS / script, *SMALL, *words],
        cwd=cwd,
        env={**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("script", "metric"),
    [("finetune_encoder.py", "accuracy"), ("finetune_decoder.py", "perplexity")],
)
def test_an_example_trains_and_repeats_itself(script: str, metric: str, tmp_path: Path) -> None:
    first, again = _run(script, tmp_path), _run(script, tmp_path)
    assert re.fullmatch(rf"{metric} [\d.]+ before, [\d.]+ after 3 steps", first[-1])
    assert re.fullmatch(r"weights sha256 [0-9a-f]{64}", first[-2])
    assert first[-2:] == again[-2:]
    assert _run(script, tmp_path, "--seed", "2")[-2] != first[-2]
    assert list(tmp_path.iterdir()) == []
