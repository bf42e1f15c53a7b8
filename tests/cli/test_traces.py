from __future__ import annotations

import json
from pathlib import Path

import pytest

from rlgov.cli.traces import IMPORTERS
from rlgov.traces.importers.registry import names
from tests.cli.probe import Cli

LOG = """\
11-23-2025 10:00:00 RAM 2448/62841MB (lfb 4x4MB) CPU [1%@729,0%@729] GR3D_FREQ 0% VDD_GPU_SOC 3179mW/3179mW VDD_CPU_CV 794mW/794mW VIN_SYS_5V0 2926mW/2926mW
11-23-2025 10:00:01 RAM 2448/62841MB (lfb 4x4MB) CPU [1%@729,0%@729] GR3D_FREQ 50% VDD_GPU_SOC 9179mW/6179mW VDD_CPU_CV 794mW/794mW VIN_SYS_5V0 2926mW/2926mW
"""  # noqa: E501 - one line of the log is one line here


def test_the_importers_of_the_help_are_those_there_are() -> None:
    assert set(IMPORTERS) == {"auto", *names()}


def test_import_check_show_in_a_row(cli: Cli) -> None:
    log = Path("my logs") / "a=1, [x].log"
    log.parent.mkdir()
    log.write_text(LOG)
    imported = cli("traces", "import", str(log), "tz=Asia/Tokyo", "out=t 1")
    assert imported.err == ""
    assert "2 rows from 2 lines" in imported.out
    summary = json.loads((Path("t 1") / "summary.json").read_text())
    assert summary["command"] == "traces import"
    assert summary["rows"] == 2
    assert "Asia/Tokyo" in summary["tz"]
    assert (Path("t 1") / "trace.csv").is_file()

    checked = cli("traces", "check", "t 1/trace.csv", "out=c")
    assert checked.code == 0
    assert "can be used" in checked.out
    assert json.loads((Path("c") / "summary.json").read_text())["ok"] is True

    shown = cli("traces", "show", "t 1/trace.csv", "out=s")
    assert shown.code == 0
    assert "vdd_gpu_soc" in shown.out
    assert json.loads((Path("s") / "summary.json").read_text())["files"][0]["rows"] == 2


def test_of_several_files_the_bad_one_is_named_and_the_rest_imported(cli: Cli) -> None:
    Path("good.log").write_text(LOG)
    Path("bad.log").write_text("nothing of use\n")
    result = cli("traces", "import", "bad.log", "good.log", "out=t")
    assert result.code == 6
    assert "bad.log" in result.err
    assert (Path("t") / "001-good" / "trace.csv").is_file()
    files = json.loads((Path("t") / "summary.json").read_text())["files"]
    assert "error" in files[0]
    assert files[1]["rows"] == 2


@pytest.mark.parametrize("subcommand", ["import", "check", "show"])
def test_what_cannot_be_read_is_a_trace_error(subcommand: str, cli: Cli) -> None:
    Path("bad.log").write_text("nothing of use\n")
    result = cli("traces", subcommand, "bad.log", "out=t")
    assert result.code == 6
    assert "bad.log" in result.err + result.out


def test_a_family_without_subcommand_lists_them(cli: Cli) -> None:
    result = cli("traces")
    assert result.code == 0
    assert "traces import" in result.out
    assert "did you mean 'traces import'" in cli("traces", "improt").err


def test_bad_settings_are_refused(cli: Cli) -> None:
    Path("a.log").write_text(LOG)
    assert "above 0" in cli("traces", "import", "a.log", "interval_s=0").err
    assert "did you mean tegrastats" in cli("traces", "import", "a.log", "importer=tegrastat").err
    assert "did you mean 'interval_s'" in cli("traces", "import", "a.log", "intervl_s=1").err
    assert cli("traces", "import", "a.log", "tz=Mars/Olympus", "out=t").code == 2
