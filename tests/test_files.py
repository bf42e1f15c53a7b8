from __future__ import annotations

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlgov.errors import ConfigError
from rlgov.files import RunFolder, json_text, read_json, write_json_atomic, write_text_atomic


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_every_json_text_is_valid_json(data: object) -> None:
    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    json.loads(json_text(data), parse_constant=refuse)


def test_numpy_values_are_unwrapped_and_nan_is_null() -> None:
    data = {"a": np.float32(0.5), "b": np.array([1.0, np.nan]), "c": np.int64(3), "d": Path("x")}
    assert json.loads(json_text(data)) == {"a": 0.5, "b": [1.0, None], "c": 3, "d": "x"}
    with pytest.raises(TypeError, match="no JSON form"):
        json_text({"x": object()})


def test_a_write_that_fails_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "summary.json"
    write_json_atomic(path, {"a": 1})
    with pytest.raises(TypeError):
        write_json_atomic(path, {"a": object()})
    path.unlink()
    path.mkdir()
    with pytest.raises(OSError):  # noqa: PT011 - any failure of the rename will do
        write_text_atomic(path, "x")
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_is_readable_as_the_umask_says(tmp_path: Path) -> None:
    write_text_atomic(tmp_path / "a", "x")
    (tmp_path / "b").write_text("x")
    assert (tmp_path / "a").stat().st_mode == (tmp_path / "b").stat().st_mode


def test_read_json_says_what_is_wrong(tmp_path: Path) -> None:
    (tmp_path / "torn").write_text('{"a": ')
    with pytest.raises(ConfigError, match="not valid JSON"):
        read_json(tmp_path / "torn")
    with pytest.raises(ConfigError, match="cannot read"):
        read_json(tmp_path / "absent")


def test_runs_started_in_one_second_never_share_a_folder(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        made = list(
            pool.map(lambda _: RunFolder.create(None, "run", runs=tmp_path).path, range(64))
        )
    assert len(set(made)) == 64
    assert all(path.name.split("-")[2] == "run" for path in made)


def test_an_ending_name_clash_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = iter(["aaa", "aaa", "bbb"])
    monkeypatch.setattr("rlgov.files.secrets.token_hex", lambda _: next(ids))
    first = RunFolder.create(None, "x", runs=tmp_path)
    second = RunFolder.create(None, "x", runs=tmp_path)
    assert first.path != second.path


def test_one_of_several_processes_gets_an_empty_folder(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from rlgov.files import RunFolder\n"
        "sys.stdin.readline()\n"
        "RunFolder.create(Path(sys.argv[1]), 'x')"
    )
    out = tmp_path / "same"
    started = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(out)],
            stdin=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        for _ in range(4)
    ]
    for process in started:
        process.communicate("go\n")
    assert sorted(process.returncode for process in started) == [0, 1, 1, 1]


def test_a_folder_that_holds_a_run_is_not_touched(tmp_path: Path) -> None:
    out = tmp_path / "out"
    RunFolder.create(out, "x").write_summary({"a": 1})
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    with pytest.raises(ConfigError, match=r"resume=true.*overwrite=true") as refused:
        RunFolder.create(out, "x")
    assert refused.value.exit_code == 2
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before


def test_overwrite_clears_a_run_and_resume_keeps_it(tmp_path: Path) -> None:
    out = tmp_path / "out"
    first = RunFolder.create(out, "x")
    first.write_summary({"a": 1})
    first.close()
    (out / "deep" / "er").mkdir(parents=True)
    resumed = RunFolder.create(out, "x", resume=True)
    assert resumed.resumed
    assert (out / "summary.json").exists()
    resumed.close()
    fresh = RunFolder.create(out, "x", overwrite=True)
    assert not fresh.resumed
    assert [path.name for path in out.iterdir()] == ["status.json"]


@pytest.mark.parametrize("how", ["overwrite", "resume"])
def test_a_folder_in_use_is_neither_overwritten_nor_resumed(how: str, tmp_path: Path) -> None:
    running = RunFolder.create(tmp_path / "out", "x")
    running.write_summary({"a": 1})
    with pytest.raises(ConfigError, match="still going on"):
        RunFolder.create(tmp_path / "out", "x", **{how: True})
    assert (tmp_path / "out" / "summary.json").exists()
    running.close()
    assert RunFolder.create(tmp_path / "out", "x", **{how: True}).path == tmp_path / "out"


def test_overwrite_removes_nothing_that_no_run_wrote(tmp_path: Path) -> None:
    precious = tmp_path / "thesis.tex"
    precious.touch()
    with pytest.raises(ConfigError, match="no run of rlgov wrote"):
        RunFolder.create(tmp_path, "x", overwrite=True)
    assert precious.exists()


def test_overwrite_follows_no_link(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "kept").touch()
    out = tmp_path / "out"
    RunFolder.create(out, "x").close()
    (out / "link").symlink_to(elsewhere)
    RunFolder.create(out, "x", overwrite=True)
    assert (elsewhere / "kept").exists()


def test_a_file_or_an_impossible_place_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match="is a file"):
        RunFolder.create(tmp_path / "file", "x")
    with pytest.raises(ConfigError, match="out=DIR"):
        RunFolder.create(tmp_path / "file" / "below", "x")


def test_the_summary_says_what_wrote_it(tmp_path: Path) -> None:
    path = RunFolder.create(tmp_path / "o", "traces import").write_summary({"a": float("nan")})
    summary = json.loads(path.read_text())
    assert summary["command"] == "traces import"
    assert summary["a"] is None


def test_a_run_that_was_refused_before_it_began_gives_its_folder_up(tmp_path: Path) -> None:
    first = RunFolder.create(tmp_path / "out", "run")
    first.write_config("budget: 1\n")
    first.write_summary({"status": "failed"})
    first.write_status("failed", 2)
    first.close()
    again = RunFolder.create(tmp_path / "out", "run")
    assert not (again.path / "summary.json").exists()
    again.write_status("failed", 2)
    (again.path / "trace.jsonl").write_text("something of worth")
    again.close()
    with pytest.raises(ConfigError, match="already holds files"):
        RunFolder.create(tmp_path / "out", "run")
