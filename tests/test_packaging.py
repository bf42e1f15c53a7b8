"""What a user gets from the wheel, as opposed to this checkout."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def run(*words: str | Path, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    inherited = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    return subprocess.run(
        [str(word) for word in words],
        cwd=cwd,
        env={**inherited, **environment},
        capture_output=True,
        text=True,
        timeout=300,
    )


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("dist")
    done = run(
        sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", out, ROOT, cwd=out
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (built,) = out.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The scripts folder of an environment with the wheel, its dependencies by reference."""
    home = tmp_path_factory.mktemp("env")
    venv.create(home, with_pip=False, symlinks=True)
    python = home / "bin" / "python"
    pip = (sys.executable, "-m", "pip", "--python", python, "install")
    done = run(*pip, "--no-deps", "--no-index", wheel, cwd=home)
    assert done.returncode == 0, done.stdout + done.stderr
    (site,) = home.glob("lib/python*/site-packages")
    # A nested .pth is not followed, so this brings the dependencies but not the editable checkout.
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return home / "bin"


def test_the_wheel_holds_what_it_should(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    for conf in (ROOT / "conf").rglob("*.yaml"):
        assert f"rlgov/conf/{conf.relative_to(ROOT / 'conf')}" in names
    assert "rlgov/py.typed" in names
    assert any(name.endswith("licenses/LICENSE") for name in names)
    strangers = [n for n in names if not n.startswith(("rlgov/", "rlgov-"))]
    assert strangers == []


def test_the_command_works_from_a_folder_with_its_own_conf(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "conf" / "board").mkdir(parents=True)
    (tmp_path / "conf" / "base.yaml").write_text("wrong: true\n")
    (tmp_path / "conf" / "boards.yaml").write_text("wrong: true\n")
    (tmp_path / "conf" / "board" / "wrong.yaml").write_text("# Wrong.\n")
    done = run(installed / "rlgov", "boards", "out=here", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "jetson_agx_orin_64gb" in done.stdout
    assert "wrong" not in done.stdout
    assert "wrong" not in (tmp_path / "here" / "config.yaml").read_text()
    where = run(installed / "python", "-c", "import rlgov; print(rlgov.__file__)", cwd=tmp_path)
    assert where.stdout.startswith(str(installed.parent))


def test_the_command_works_from_the_root_folder_in_the_plainest_locale(
    installed: Path, tmp_path: Path
) -> None:
    done = run(
        installed / "rlgov", "boards", f"out={tmp_path}/ü", cwd=Path("/"), LC_ALL="C", LANG="C"
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "ü" / "summary.json").is_file()
    assert run(installed / "rlgov", "--help", cwd=Path("/")).returncode == 0


def test_an_overlay_reaches_an_installed_command(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "mine" / "board").mkdir(parents=True)
    (tmp_path / "mine" / "board" / "my_board.yaml").write_text("# My board.\n")
    done = run(installed / "rlgov", "boards", "--config-dir", "mine", "out=here", cwd=tmp_path)
    assert "My board." in done.stdout
