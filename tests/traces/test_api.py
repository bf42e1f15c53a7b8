from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from rlgov.errors import ConfigError, TraceError
from rlgov.traces.api import check, import_log, show
from rlgov.traces.importers import detect, importer, names
from rlgov.traces.tables import read_trace, write_trace

LINE = "RAM 100/1000MB (lfb 5x4MB) CPU [2%@100] GR3D_FREQ 9%@300 NPU 5%@7 VDD_IN {}mW/1mW\n"
LOG = "hello\n" + "".join(LINE.format(5000 + 1000 * i) for i in range(3))
JTOP = "time,uptime,CPU1,Power TOT\n2026-01-01 00:00:00,0:00:01,5,5000\n"
PROFILE = "device,job,config,gpu_mhz,step_time_s,power_w\nb,j,pinned,300,2,10\nb,j,,600,1,16\n"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "a.log"
    path.write_text(LOG)
    return path


def test_import_writes_the_trace_and_a_summary(log: Path, tmp_path: Path) -> None:
    report = import_log(log, out=tmp_path / "out")
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert summary == report.as_dict()
    assert {
        k: summary[k] for k in ("lines", "rows", "rejected", "unknown_fields", "total_rule")
    } == {
        "lines": 4,
        "rows": 3,
        "rejected": 1,
        "unknown_fields": {"NPU": 3},
        "total_rule": "VDD_IN",
    }
    assert summary["energy_j"] == 12.0
    files = {path.name for path in (tmp_path / "out").iterdir()}
    assert files == {"trace.csv", "trace.parquet", "summary.json"}
    for name in ("trace.csv", "trace.parquet"):
        rows = read_trace(tmp_path / "out" / name).rows
        assert [row.number("total_w") for row in rows] == [5, 6, 7]
        assert [row.number("energy_j") for row in rows] == [None, 5.5, 6.5]


def test_importing_again_replaces_the_old_files(log: Path, tmp_path: Path) -> None:
    import_log(log, out=tmp_path / "out")
    log.write_text(LINE.format(1))
    assert import_log(log, out=tmp_path / "out").rows == 1
    assert len(read_trace(tmp_path / "out").rows) == 1


@pytest.mark.parametrize("text", ["", "hello\nworld\n", "\x00" * 100, "a,b\n1,2\n"])
def test_a_file_that_nobody_knows_is_an_error(tmp_path: Path, text: str) -> None:
    path = tmp_path / "x"
    path.write_text(text)
    with pytest.raises(TraceError, match="no importer knows"):
        import_log(path, out=tmp_path / "out")
    with pytest.raises(TraceError, match="none of"):
        import_log(path, importer="tegrastats", out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_file_that_is_not_there_and_an_importer_that_is_not_known(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="No such file"):
        import_log(tmp_path / "x", out=tmp_path)
    with pytest.raises(TraceError, match="no end"):
        import_log("/dev/zero", out=tmp_path)
    with pytest.raises(ConfigError, match="tegrastats"):
        importer("nobody")


@pytest.mark.parametrize(
    ("text", "name"), [(LOG, "tegrastats"), (JTOP, "jtop_csv"), (PROFILE, "profile_csv")]
)
@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_the_importer_is_found_by_the_content(
    tmp_path: Path, text: str, name: str, encoding: str
) -> None:
    path = tmp_path / "anything"
    path.write_bytes(text.encode(encoding))
    assert detect(path).name == name
    assert name in names()
    assert import_log(path, out=tmp_path / "out").importer == name
    assert check(tmp_path / "out").ok


def test_every_sample_imports_by_itself(shared: Path, tmp_path: Path) -> None:
    for path in sorted((shared / "tegrastats").glob("*.log")):
        report = import_log(path, out=tmp_path / path.stem)
        assert (report.rows > 0, report.rejected) == (True, 0)
        assert check(tmp_path / path.stem).problems == ()


def test_check_finds_what_is_wrong(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("kind,t_s\nsample,5\nsample,3\nbad,7\n")
    found = check(path)
    assert (found.kind, found.rows, found.ok) == ("trace", 2, True)
    assert [problem.text for problem in found.problems] == [
        "line 4: kind is 'bad'; it must be one of window, sample",
        "row 2: t_s goes back",
    ]
    path.write_text("kind,t_s\n")
    assert not check(path).ok
    assert not check(tmp_path / "nothing").ok
    path.write_text("")
    assert check(path).kind == "unreadable"


def test_check_of_a_profile(tmp_path: Path) -> None:
    path = tmp_path / "p.csv"
    path.write_text(PROFILE)
    assert (check(path).kind, check(path).rows, check(path).ok) == ("profile", 2, True)
    path.write_text(PROFILE + "b,j,as_found,900,1,1\n")
    assert [problem.fatal for problem in check(path).problems] == [False]
    path.write_text(PROFILE + "b,j,pinned,x,1,1\n")
    assert "line 4" in check(path).problems[0].text
    assert not check(path).ok


def test_show_sums_up_a_trace(log: Path, tmp_path: Path) -> None:
    import_log(log, out=tmp_path / "out")
    summary = show(tmp_path / "out")
    total = next(column for column in summary.columns if column.name == "total_w")
    assert (total.count, total.minimum, total.mean, total.maximum) == (3, 5, 6, 7)
    assert (summary.kind, summary.rows, summary.span_s) == ("trace", 3, 2)
    assert summary.rails == ("vdd_in",)
    assert summary.kinds == {"sample": 3}


def test_show_sums_up_a_profile(tmp_path: Path) -> None:
    path = tmp_path / "p.csv"
    path.write_text(PROFILE)
    summary = show(path)
    energy = next(column for column in summary.columns if column.name == "energy_per_step_j")
    assert (energy.minimum, energy.maximum) == (16, 20)
    assert summary.kinds == {"j on b": 2}


def test_a_finished_trace_can_be_saved_again_for_a_spreadsheet(log: Path, tmp_path: Path) -> None:
    import_log(log, out=tmp_path / "out")
    rows = read_trace(tmp_path / "out").rows
    write_trace(rows, tmp_path / "eu.csv", "excel_eu")
    assert read_trace(tmp_path / "eu.csv").rows == rows


def test_the_fuzzer_finds_nothing_in_a_few_inputs() -> None:
    script = Path(__file__).resolve().parents[2] / "scripts" / "fuzz_importers.py"
    done = subprocess.run(
        [sys.executable, script, "--count", "3000", "--seed", "7"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "no crash: 3000 inputs, seed 7" in done.stdout
