from __future__ import annotations

import builtins
from pathlib import Path
from typing import Any

import pytest

from rlgov.reports.evaluation_plots import PICTURES, plot_evaluation


def figure(mean: float | None) -> dict[str, Any]:
    ci95 = None if mean is None else [mean - 0.01, mean + 0.01]
    return {"mean": mean, "median": mean, "p5": mean, "p95": mean, "ci95": ci95}


def summary(slowdown: float | None = 0.03) -> dict[str, Any]:
    rows = [
        {
            "policy": policy,
            "budget": budget,
            "n_jobs": 20,
            "windows": 3,
            "saving": figure(0.05),
            "oracle_saving": figure(0.06),
            "slowdown": figure(slowdown),
        }
        for policy in ("ppo", "max")
        for budget in (0.02, 0.1)
    ]
    curves = [
        {"policy": row["policy"], "budget": row["budget"], "regret": [0.1, 0.05, 0.01]}
        for row in rows
    ]
    return {"board": "twin", "source": "heldout", "rows": rows, "curves": curves}


@pytest.mark.parametrize("slowdown", [0.03, None])
def test_three_pictures_are_drawn(tmp_path: Path, slowdown: float | None) -> None:
    pytest.importorskip("matplotlib")
    said = plot_evaluation(summary(slowdown), tmp_path)
    for name in PICTURES:
        assert (tmp_path / name).read_bytes().startswith(b"\x89PNG")
        assert name in said


def test_without_matplotlib_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def missing(name: str, *args: Any, **kwargs: Any) -> Any:
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", missing)
    assert "rlgov[report]" in plot_evaluation(summary(), tmp_path)
    assert list(tmp_path.iterdir()) == []
