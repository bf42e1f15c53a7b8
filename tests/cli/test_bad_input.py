"""A user's mistake ends in one message that says what to do, before a file is touched."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.probe import Cli, Probe

BAD = [
    (["bugdet=0.1"], "did you mean 'budget'"),
    (["reward.lamda=1"], "did you mean 'reward.lambda'"),
    (["+reward.lamda=1"], "did you mean 'reward.lambda'"),
    (["++nonsense_zzz=1"], "there is no key 'nonsense_zzz'"),
    (["+unknown=1"], "there is no key 'unknown'"),
    (["hydra.ouput_subdir=x"], "did you mean 'hydra.output_subdir'"),
    (["+hydra.job.chdirr=true"], "did you mean 'hydra.job.chdir'"),
    (["hydra.run.dir=x"], "out=DIR"),
    (["hydra/launcher=joblib"], "sequential"),
    (["bord=alpha"], "did you mean 'board'"),
    (["board=gamma"], "board is one of alpha, "),
    (["board=alpah"], "did you mean alpha?"),
    (["board=[alpha,beta]"], "takes one name"),
    (["board=null"], "cannot be null"),
    (["board=missing.yaml"], "there is no such file"),
    (["objective=fast"], "objective is one of energy, edp, ed2p"),
    (["objective=edpp"], "did you mean edp?"),
    (["budget=-0.1"], "budget must be at least 0"),
    (["budget=nan"], "finite"),
    (["budget=five"], "budget takes a number, not 'five'"),
    (["budget=[0.1,-1]"], "at least 0"),
    (["budget=[]"], "at least one value"),
    (["budget=null"], "cannot be null"),
    (["budget=${out}x"], "budget takes a number, not "),
    (["budget=${oc.env:PATH}"], "budget takes a number, not "),
    (["steps=0"], "must be above 0"),
    (["steps=2.5"], "takes a whole number"),
    (["steps=true"], "takes a whole number"),
    (["steps=[1,2]"], "takes one value"),
    (["seeds=[1,x]"], "takes a whole number"),
    (["overwrite=perhaps"], "takes true or false"),
    (["budget=0.02,0.05"], "write budget=[0.02,0.05] (quote it in the shell: 'budget=[0.02,0.05]'"),
    (["policy=ppo,as_found"], "write policy=[ppo,as_found]"),
    (["steps=1,2"], "add -m"),
    (["my-key=1"], "there is no key 'my-key'"),
    (["over-write=true"], "did you mean 'overwrite'"),
    (["budget=[0.1"], "cannot be read"),
    (["profile="], "needs a path"),
    (["out="], "needs a path"),
    (["absent.csv"], "there is no file absent.csv"),
    (["~budget"], "cannot be removed"),
    (["--budget=0.1"], "budget=0.1"),
    (["--multirn"], "did you mean --multirun"),
    (["--config-dir", "nowhere"], "needs a folder"),
    (["--config-dir"], "needs a folder of YAML files: --config-dir DIR"),
    (["--from"], "needs a value"),
    (["--dry=1"], "takes no value"),
    (["--"], "no command after --"),
    (["overwrite=true", "resume=true"], "exclude each other"),
    (["-m", "budget=0.1,-1"], "at least 0"),
]


@pytest.mark.parametrize(("words", "message"), BAD, ids=[" ".join(words) for words, _ in BAD])
def test_a_mistake_gets_a_message_and_touches_nothing(
    words: list[str], message: str, ask: Cli, probe: Probe
) -> None:
    result = ask(*words)
    assert result.code == 2
    assert message in result.err
    assert result.err.startswith("rlgov: error: ")
    assert "Traceback" not in result.err
    assert probe.seen == []
    assert list(Path.cwd().iterdir()) == []


def test_unknown_commands_name_the_closest(cli: Cli) -> None:
    result = cli("bords")
    assert result.code == 2
    assert "did you mean 'boards'" in result.err


def test_a_group_of_another_command_is_no_key(cli: Cli) -> None:
    result = cli("boards", "board=jetson_agx_orin_64gb")
    assert result.code == 2
    assert "no key 'board'" in result.err


def test_a_damaged_yaml_file_is_the_users_to_mend(ask: Cli, probe: Probe) -> None:
    (probe.conf / "board" / "beta.yaml").write_text("name: [unclosed\n")
    result = ask("board=beta")
    assert result.code == 2
    assert "cannot be composed" in result.err
    assert probe.seen == []


def test_a_value_that_must_be_given_is_asked_for(ask: Cli, probe: Probe) -> None:
    (probe.conf / "board" / "beta.yaml").write_text("name: ???\n")
    result = ask("board=beta")
    assert "give board.name=VALUE" in result.err
    assert ask("board=beta", "board.name=mine").code == 0


def test_debug_shows_the_traceback(ask: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RLGOV_DEBUG", "1")
    with pytest.raises(Exception, match="no key"):
        ask("bugdet=1")


@pytest.mark.parametrize("command", ["run", "train", "evaluate", "fit", "emulate"])
def test_a_seed_that_no_generator_takes_is_refused(cli: Cli, command: str) -> None:
    rest = {"run": ["--", "true"], "emulate": ["agx-orin-jp6"]}.get(command, [])

    result = cli(command, f"seed={2**32}", *rest)

    assert result.code == 2
    assert f"seed must be at most {2**32 - 1}, not {2**32}" in result.err
