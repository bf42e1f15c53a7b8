"""What no linter checks about the shape of the house."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "rlgov"
MODULES = sorted(
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    for path in PACKAGE.rglob("*.py")
)


def _import(modules: list[str], cwd: Path) -> subprocess.CompletedProcess[str]:
    code = (
        "import importlib, sys, threading\n"
        "for name in sys.argv[1:]: importlib.import_module(name)\n"
        "assert threading.active_count() == 1, threading.enumerate()\n"
        "print(*sorted(name.partition('.')[0] for name in sys.modules))"
    )
    return subprocess.run(
        [sys.executable, "-c", code, *modules], capture_output=True, text=True, cwd=cwd
    )


def test_import_does_nothing_and_loads_nothing_optional(tmp_path: Path) -> None:
    """Everything but the learner imports with the base install, and leaves no trace."""
    modules = [name for name in MODULES if not name.startswith(("rlgov.training", "rlgov.cli"))]
    done = _import(modules, tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    optional = {"torch", "stable_baselines3", "transformers", "pandas", "scipy", "pyarrow", "jtop"}
    assert optional & set(done.stdout.split()) == set()
    assert {"hydra", "omegaconf"} & set(done.stdout.split()) == set()
    assert list(tmp_path.iterdir()) == []


def test_the_command_line_imports_without_the_learner(tmp_path: Path) -> None:
    modules = [name for name in MODULES if name.startswith("rlgov.cli")]
    done = _import(modules, tmp_path)
    assert done.returncode == 0, done.stderr
    assert {"torch", "gymnasium"} & set(done.stdout.split()) == set()


@pytest.mark.parametrize("path", sorted((ROOT / "scripts").iterdir()), ids=lambda path: path.name)
def test_scripts_parse(path: Path) -> None:
    if path.suffix == ".py":
        compile(path.read_bytes(), path, "exec")
    elif path.is_file():
        done = subprocess.run(["bash", "-n", path], capture_output=True, text=True)
        assert done.stderr == ""


def test_the_example_jobs_know_nothing_of_us() -> None:
    for path in (ROOT / "scripts").glob("finetune_*.py"):
        assert "rlgov" not in path.read_text()


def test_ci_ends_with_the_readmes_test_command() -> None:
    assert (ROOT / ".ci" / "run").read_text().rstrip().endswith('exec scripts/test "$@"')


def test_the_changelog_knows_this_version() -> None:
    import rlgov

    versions = re.findall(r"^## \[(\d+\.\d+\.\d+)]", (ROOT / "CHANGELOG.md").read_text(), re.M)
    assert versions[0] == rlgov.__version__
    assert f'version = "{rlgov.__version__}"' in (ROOT / "pyproject.toml").read_text()
