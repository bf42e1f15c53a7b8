from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from rlgov.policies.bundle import Bundle
from tests.cli.probe import Cli

TINY = ("agent=tiny", "validation.n_jobs=4", "validation.budgets=[0.1]", "out=run")


def test_one_command_leaves_a_bundle_and_its_figures(cli: Cli) -> None:
    result = cli("train", *TINY, "objective=energy", "seed=3")
    assert result.code == 0, result.err
    summary = json.loads(Path("run/summary.json").read_text())
    card = Bundle.load(Path("run/bundle")).card
    assert summary["emulated"] is True
    assert summary["rows"][0]["n_jobs"] == 4
    assert summary["score"] == pytest.approx(
        summary["rows"][0]["saving"]["mean"] - summary["rows"][0]["violations"]["mean"]
    )
    assert card.seed == 3
    assert card.training["objective"] == "energy"
    assert "out" not in card.training
    assert "mulated" in result.out


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("agent.batch_size=7", "does not divide"),
        ("agent.gama=0.9", "gamma"),
        ("objective=speed", "any, energy, edp"),
        ("preferences.drop_knob=2", "drop_knob"),
        ("seed=-1", "seed"),
    ],
)
def test_what_cannot_be_trained_is_said_in_one_line(override: str, message: str, cli: Cli) -> None:
    result = cli("train", *TINY, override)
    assert result.code == 2
    assert re.search(message, result.err)
    assert "Traceback" not in result.err
