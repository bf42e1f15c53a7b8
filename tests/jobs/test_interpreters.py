"""The hook in the Pythons that jobs run in, with a stand-in for torch."""

import shutil
import subprocess
from pathlib import Path

import pytest

from rlgov.jobs import hook
from tests.jobs.conftest import SCRIPTS

STANDIN = Path(__file__).parents[1] / "fakes" / "torch_standin"
VERSIONS = ["3.8", "3.10", "3.11", "3.12", "3.13"]


def interpreter(version: str) -> str:
    """A Python of this version on PATH, or among pyenv's."""
    found = [shutil.which(f"python{version}")]
    found += sorted(map(str, Path.home().glob(f".pyenv/versions/{version}.*/bin/python")))
    for path in filter(None, found):
        answer = subprocess.run(
            [path, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"],
            capture_output=True,
            text=True,
        )
        if answer.stdout.strip() == version:
            return path
    pytest.skip(f"no Python {version} on this machine")


@pytest.mark.parametrize("style", ["1.13", "2.8"])
@pytest.mark.parametrize("version", VERSIONS)
def test_counts_steps(follow, version, style):
    command = [interpreter(version), "-W", "error", str(SCRIPTS / "standin_loop.py")]
    seen = follow(command, PYTHONPATH=str(STANDIN), TORCH_STANDIN=style)
    assert seen.err == ""
    assert seen.out == f"steps=6 {style}.0 {version}\n"
    assert (seen.end.exit_code, seen.end.reason) == (0, "completed")
    assert seen.steps == 6
    assert all(event.steps == 1 for event in seen.events)


@pytest.mark.parametrize("version", VERSIONS)
def test_compiles_without_a_warning(version, tmp_path):
    target = str(tmp_path / "hook.pyc")
    program = f"import py_compile; py_compile.compile({hook.__file__!r}, {target!r}, doraise=True)"
    done = subprocess.run(
        [interpreter(version), "-W", "error", "-c", program], capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("version", VERSIONS)
def test_inert_without_its_variable(version):
    program = (
        f"import sys; sys.path.insert(0, {str(Path(hook.__file__).parent)!r}); "
        "before = list(sys.meta_path); import hook; hook.install(); "
        "print(sys.meta_path == before, hook._state)"
    )
    done = subprocess.run(
        [interpreter(version), "-W", "error", "-c", program],
        capture_output=True,
        text=True,
        env={},
    )
    assert (done.stdout, done.stderr) == ("True None\n", "")
