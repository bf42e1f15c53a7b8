from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from rlgov.cli.arguments import Override
from rlgov.cli.command import Command, Key
from rlgov.cli.literals import Literals
from tests.cli.probe import Cli, Probe

WEIRD = [
    "plain",
    "with blank/and more",
    "a=b=c",
    "[brackets]",
    "{braces: 1}",
    'it\'s "quoted"',
    "comma,separated",
    "${interpolation}",
    "back\\slash",
    "ünïcødé 日本",
    "(paren)",
    "~tilde",
    "50%",
    "colon: x",
    "# hash",
    "true",
    "1e3",
    "*star?",
    "\udce9not-utf8",
]


@pytest.mark.parametrize("name", WEIRD)
def test_paths_arrive_as_typed(name: str, ask: Cli, probe: Probe) -> None:
    result = ask(f"profile={name}", f"out=run of {name}", f"policy=x/{name}")
    assert result.err == ""
    assert result.code == 0
    assert probe.config["profile"] == name
    assert probe.config["again"] == name
    assert probe.config["policy"] == f"x/{name}"
    saved = (Path(f"run of {name}") / "config.yaml").read_bytes()
    if "\udce9" not in name:
        assert yaml.safe_load(saved)["profile"] == name


def test_a_path_sweep_is_split_unless_the_file_exists(ask: Cli, probe: Probe) -> None:
    assert ask("-m", "profile=a b,c=d").code == 0
    assert [run.config["profile"] for run in probe.seen] == ["a b", "c=d"]
    probe.seen.clear()
    Path("x,y").touch()
    assert ask("-m", "profile=x,y", "budget=1,2").code == 0
    assert [run.config["profile"] for run in probe.seen] == ["x,y", "x,y"]


def test_lists_of_names_and_paths(ask: Cli, probe: Probe) -> None:
    assert ask("policy=[ppo,runs/a/policy]", "budget=[0.02, 0.05]").code == 0
    assert probe.config["policy"] == ["ppo", "runs/a/policy"]
    assert probe.config["budget"] == [0.02, 0.05]
    assert ask("traces=['a b.csv', c.csv]").code == 0
    assert probe.config["traces"] == ["a b.csv", "c.csv"]


def test_home_is_expanded_where_no_shell_does_it(
    ask: Cli, probe: Probe, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "/home/someone")
    assert ask("profile=~/p.csv").code == 0
    assert probe.config["profile"] == "/home/someone/p.csv"


def test_carriage_returns_end_no_value(ask: Cli, probe: Probe) -> None:
    (probe.conf / "board" / "beta.yaml").write_bytes(
        b'name: beta\r\nnoise: 0.5\r\ntext: "x\\r"\r\n'
    )
    assert ask("budget=0.5\r", "profile=p.csv\r", "board=beta\r").code == 0
    assert probe.config["budget"] == 0.5
    assert probe.config["profile"] == "p.csv"
    assert probe.config["board"] == {"name": "beta", "noise": 0.5, "text": "x"}


def test_a_group_value_may_be_a_file(ask: Cli, probe: Probe) -> None:
    fitted = Path("my fit [1].yaml")
    fitted.write_text("name: fitted\nnoise: 0.7\n")
    assert ask(f"board={fitted}", "board.noise=0.8").code == 0
    assert probe.config["board"] == {"name": "fitted", "noise": 0.8}
    assert probe.seen[-1].overrides == (f"board={fitted}", "board.noise=0.8")


def test_a_group_file_may_build_on_a_named_one(ask: Cli, probe: Probe) -> None:
    Path("mine.yaml").write_text("defaults:\n  - alpha\nnoise: 0.7\n")
    assert ask("board=mine.yaml").code == 0
    assert probe.config["board"] == {"name": "alpha", "noise": 0.7}


def test_names_and_files_of_a_group_can_be_swept(ask: Cli, probe: Probe) -> None:
    Path("mine.yaml").write_text("name: mine\n")
    assert ask("-m", "board=beta,mine.yaml", "out=s").code == 0
    assert [run.config["board"]["name"] for run in probe.seen] == ["beta", "mine"]
    assert "mine.yaml" in (Path("s") / "sweep.csv").read_text()


def test_a_group_may_fill_a_second_key(ask: Cli, probe: Probe) -> None:
    Path("mine.yaml").write_text("name: mine\n")
    assert ask("board@second=beta").code == 0
    assert probe.config["second"]["name"] == "beta"
    assert ask("board@second=mine.yaml", "second.name=x").code == 0
    assert probe.config["second"]["name"] == "x"
    assert "board@second is one of alpha, " in ask("board@second=gamma").err
    assert "did you mean 'board@second'" in ask("board@secnd=alpha").err


def test_experiments_change_the_top_level(ask: Cli, probe: Probe) -> None:
    assert ask("experiment=wide").code == 0
    assert probe.config["budget"] == 0.5
    assert ask("+experiment=wide", "budget=0.6").code == 0
    assert probe.config["budget"] == 0.6


@pytest.mark.parametrize("chdir", ["true", "false"])
def test_the_working_directory_never_changes(chdir: str, ask: Cli, probe: Probe) -> None:
    launch = Path.cwd()
    places: list[Path] = []
    probe.behave = lambda _: places.append(Path.cwd()) or 0
    assert ask(f"hydra.job.chdir={chdir}", "out=here", "profile=../p.csv").code == 0
    assert places == [launch]
    assert probe.seen[-1].folder.path.resolve() == launch / "here"
    assert sorted(p.name for p in launch.iterdir()) == ["here"]
    assert sorted(p.name for p in (launch / "here").iterdir()) == [
        "config.yaml",
        "status.json",
        "summary.json",
    ]


def test_flags_stand_for_keys(ask: Cli, probe: Probe) -> None:
    assert ask("--dry", "--from", "a b.csv").code == 0
    assert probe.config["dry"] is True
    assert probe.config["profile"] == "a b.csv"
    assert ask("--from=c=d").code == 0
    assert probe.config["profile"] == "c=d"


def test_files_and_the_job_are_passed_on_untouched(ask: Cli, probe: Probe) -> None:
    Path("budget=1.csv").touch()
    Path("a [1].csv").touch()
    assert ask("a [1].csv", "budget=1.csv", "budget=2", "--", "python", "--", "x=1").code == 0
    assert probe.seen[-1].files == (Path("a [1].csv"), Path("budget=1.csv"))
    assert probe.seen[-1].job == ("python", "--", "x=1")
    assert probe.config["budget"] == 2


def test_print_config_runs_nothing(ask: Cli, probe: Probe) -> None:
    result = ask("--print-config", "budget=0.3")
    assert result.code == 0
    assert yaml.safe_load(result.out)["budget"] == 0.3
    assert probe.seen == []
    assert list(Path.cwd().iterdir()) == []


def test_nothing_but_plain_values_reaches_a_command(ask: Cli, probe: Probe) -> None:
    assert ask().code == 0
    kinds = {type(value) for value in probe.config.values()}
    assert kinds <= {str, int, float, bool, dict, list, type(None)}


def test_a_literal_is_put_back_wherever_it_went() -> None:
    literals = Literals()
    safe = literals.protect(Override("", "out", "a=b"), Key(kind="path"), sweeping=False)
    assert literals.reveal({"x": [f"pre/{safe.value}/post"]}) == {"x": ["pre/a=b/post"]}


def test_a_command_without_key_rules_has_the_common_ones() -> None:
    command = Command("x", "", "", (), "x", run=lambda _: 0)
    assert command.key("out").kind == "path"
