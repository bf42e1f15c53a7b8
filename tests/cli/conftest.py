from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from rlgov.cli.command import Command, Key
from rlgov.cli.main import main
from rlgov.cli.registry import COMMANDS
from tests.cli.probe import PROBE_YAML, Cli, Probe, Result


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cli:
    """Runs a command line in an empty directory, in this process."""
    launch = tmp_path / "launch"
    launch.mkdir()
    monkeypatch.chdir(launch)
    monkeypatch.delenv("RLGOV_DEBUG", raising=False)

    def run(*words: str) -> Result:
        code = main(words)
        captured = capsys.readouterr()
        return Result(code, captured.out, captured.err)

    return run


@pytest.fixture
def probe(tmp_path: Path) -> Iterator[Probe]:
    conf = tmp_path / "overlay"
    for name, text in {
        "probe.yaml": PROBE_YAML,
        "board/alpha.yaml": "name: alpha\nnoise: 0.01\n",
        "board/beta.yaml": "name: beta\nnoise: 0.02\n",
        "experiment/wide.yaml": "# @package _global_\nbudget: 0.5\n",
    }.items():
        (conf / name).parent.mkdir(parents=True, exist_ok=True)
        (conf / name).write_text(text)
    made = Probe(conf)
    module = ModuleType("rlgov_test_probe")
    module.COMMAND = Command(  # type: ignore[attr-defined]
        name="probe",
        summary="a probe",
        help="A probe.",
        examples=(("rlgov probe budget=0.1 -- python train.py", "an example"),),
        config="probe",
        run=made.run,
        keys={
            "budget": Key(minimum=0, many=True),
            "objective": Key(choices=("energy", "edp", "ed2p")),
            "profile": Key(kind="path"),
            "traces": Key(kind="paths"),
            "policy": Key(kind="name_or_path", many=True),
            "steps": Key(above=0),
        },
        files="FILE...",
        files_rule="optional",
        job_rule="optional",
        flags={"--dry": "dry=true", "--from": "profile="},
    )
    sys.modules["rlgov_test_probe"] = module
    COMMANDS["probe"] = "rlgov_test_probe:COMMAND"
    yield made
    del COMMANDS["probe"], sys.modules["rlgov_test_probe"]


@pytest.fixture
def ask(cli: Cli, probe: Probe) -> Cli:
    """``rlgov probe`` with the probe's own configs."""

    def run(*words: str) -> Result:
        return cli("probe", "--config-dir", str(probe.conf), *words)

    return run
