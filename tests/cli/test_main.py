from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

import rlgov
from rlgov.cli.arguments import Override
from rlgov.cli.command import Command, later
from rlgov.cli.compose import Composer
from rlgov.cli.confdir import packaged_conf
from rlgov.cli.registry import COMMANDS, load
from rlgov.errors import ConfigError
from tests.cli.probe import Cli, Probe, refuse_board


def test_help_names_every_command_and_exit_code(cli: Cli) -> None:
    for words in ((), ("--help",), ("-h",)):
        result = cli(*words)
        assert result.code == 0
        for name in COMMANDS:
            assert name in result.out
        for code in ("0", "2", "3", "4", "5", "6", "125", "130"):
            assert re.search(rf"^  {code} ", result.out, re.MULTILINE)


def test_version(cli: Cli) -> None:
    assert cli("--version").out.strip() == f"rlgov {rlgov.__version__}"


@pytest.mark.parametrize("name", COMMANDS)
def test_help_of_every_command_teaches(name: str, cli: Cli) -> None:
    result = cli(*name.split(), "--help")
    assert result.code == 0
    assert f"usage: rlgov {name}" in result.out
    assert "examples:" in result.out
    assert f"  rlgov {name}" in result.out
    assert "exit codes:" in result.out


@pytest.mark.parametrize("name", COMMANDS)
def test_every_key_of_every_command_has_a_meaning(name: str, cli: Cli) -> None:
    keys = cli(*name.split(), "--help").out.split("keys:\n")[1].split("\noptions:")[0]
    bare = [line for line in keys.splitlines() if re.fullmatch(r"  \w+[=:]\S*", line)]
    assert bare == []
    assert "out=" in keys


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_says_who_it_is(name: str) -> None:
    command = load(name)
    assert command.name == name
    assert command.summary
    assert command.examples
    assert all(line.startswith(f"rlgov {name}") for line, _ in command.examples)


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys; from rlgov.cli.main import main; main(['--help'])\n"
        "heavy = {'torch', 'gymnasium', 'hydra', 'omegaconf', 'numpy', 'stable_baselines3'}\n"
        "sys.exit(', '.join(sorted(heavy & set(sys.modules))) or None)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_the_work_of_a_command_is_imported_when_it_is_called() -> None:
    with pytest.raises(ModuleNotFoundError, match="nowhere"):
        later("rlgov.nowhere:run")(None)  # type: ignore[arg-type]


def test_python_m_rlgov() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "rlgov", "--version"], capture_output=True, text=True
    )
    assert done.stdout == f"rlgov {rlgov.__version__}\n"


def test_a_closed_pipe_is_no_traceback() -> None:
    done = subprocess.run(
        ["bash", "-c", f"{sys.executable} -m rlgov --help | true; echo ${{PIPESTATUS[0]}}"],
        capture_output=True,
        text=True,
    )
    assert done.stdout.strip() in {"0", "141"}
    assert done.stderr == ""


CONF = packaged_conf()
PRIMARIES = sorted(p.stem for p in CONF.glob("*.yaml") if p.stem != "base")
OPTIONS = sorted(p for p in CONF.rglob("*.yaml") if p.parent != CONF)


def _compose(name: str, *overrides: Override) -> dict[str, object] | str:
    """The configuration, or why there is none."""
    try:
        return Composer(load(name)).compose(overrides)[0].config
    except ConfigError as error:
        return str(error)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_composes_without_overrides(name: str) -> None:
    config = _compose(name)
    if isinstance(config, str):
        assert "has no default: give" in config  # a key that only the user can know
    else:
        assert {"out", "overwrite", "resume"} <= set(config)


@pytest.mark.parametrize("name", PRIMARIES)
def test_every_primary_config_composes(name: str) -> None:
    command = Command(name, "", "", (), config=name, run=lambda _: 0)
    assert {"out", "overwrite", "resume"} <= set(Composer(command).compose([])[0].config)


@pytest.mark.parametrize("path", OPTIONS, ids=lambda p: str(p.relative_to(CONF)))
def test_every_option_composes_in_each_command_that_has_its_group(path: Path) -> None:
    group = str(path.parent.relative_to(CONF))
    assert isinstance(yaml.safe_load(path.read_text(encoding="utf-8")), dict)
    for name in COMMANDS:
        config = _compose(name, Override("", group, path.stem))
        if isinstance(config, str):
            assert f"no key {group!r}" in config or "has no default: give" in config


def test_boards_lists_what_there_is(cli: Cli) -> None:
    result = cli("boards", "out=b")
    assert result.code == 0
    summary = json.loads((Path("b") / "summary.json").read_text())
    assert "jetson_agx_orin_64gb" in [board["name"] for board in summary["boards"]]
    assert all(board["description"] for board in summary["boards"])
    assert "jetson_agx_orin_64gb" in result.out


def test_an_overlay_is_searched_first(cli: Cli, tmp_path: Path) -> None:
    overlay = tmp_path / "mine"
    (overlay / "board").mkdir(parents=True)
    (overlay / "board" / "my_board.yaml").write_text("# A board of my own.\nname: my_board\n")
    assert "A board of my own." in cli("boards", "--config-dir", str(overlay)).out


def test_a_commands_error_gives_its_class_code_and_is_recorded(ask: Cli, probe: Probe) -> None:
    probe.behave = refuse_board
    result = ask("out=r")
    assert result.code == 3
    assert result.err == "rlgov: error: the board says no\n"
    assert json.loads((Path("r") / "summary.json").read_text())["status"] == "failed"
    assert json.loads((Path("r") / "status.json").read_text())["exit_code"] == 3


def test_an_interrupt_is_130_and_recorded(ask: Cli, probe: Probe) -> None:
    def interrupt(_: object) -> int:
        raise KeyboardInterrupt

    probe.behave = interrupt
    result = ask("out=r")
    assert result.code == 130
    assert json.loads((Path("r") / "status.json").read_text())["status"] == "interrupted"


def test_the_exit_code_of_a_command_is_passed_on(ask: Cli, probe: Probe) -> None:
    probe.behave = lambda _: 42
    assert ask("out=r").code == 42
    assert json.loads((Path("r") / "status.json").read_text())["status"] == "failed"
