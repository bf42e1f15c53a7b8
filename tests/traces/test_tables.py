from __future__ import annotations

import logging
import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rlgov.errors import TraceError
from rlgov.traces import dialects, parquet, tables
from rlgov.traces.row import TraceRow
from rlgov.traces.store import TraceWriter
from rlgov.traces.tables import finalise, read_trace, write_trace

finite = st.floats(-1e6, 1e6)
rows = st.builds(
    TraceRow,
    kind=st.sampled_from(["window", "sample"]),
    t_s=st.floats(0, 1e9),
    t_utc=st.just("2026-01-01T00:00:00Z") | st.none(),
    values=st.fixed_dictionaries(
        {"window": st.integers(0, 10**6)},
        optional={
            "total_w": finite,
            "note": st.sampled_from(["a, b", "1,5", "x;y", '"', "two\nlines"]),
            "gpu_clocks_mhz": st.lists(finite, min_size=2, max_size=3),
            "cpu_utils": st.lists(st.sampled_from(["off", "7"]), min_size=2, max_size=3),
        },
    ),
    rails=st.dictionaries(st.sampled_from(["vdd_in", "gpu"]), finite),
    temperature_c=st.dictionaries(st.sampled_from(["tj", "cpu"]), finite),
    quality=st.sampled_from([(), ("gap",), ("gap", "bad_field")]),
    guard=st.sampled_from([(), ("budget: 12 % over",)]),
    extra=st.dictionaries(st.sampled_from(["reward", "mode"]), finite | st.just("MAXN")),
)


@settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(rows, min_size=1, max_size=4),
    st.sampled_from(["t.csv", "t.parquet", "eu.csv", "t.jsonl"]),
)
def test_every_form_reads_back_the_same(tmp_path: Path, written: list[TraceRow], name: str) -> None:
    path = tmp_path / name
    path.unlink(missing_ok=True)
    if name.endswith(".jsonl"):
        with TraceWriter(path, fsync_every=0) as writer:
            for row in written:
                writer.append(row)
    else:
        write_trace(written, path, "excel_eu" if name == "eu.csv" else "default")
    assert list(read_trace(path).rows) == written


def some(count: int) -> list[TraceRow]:
    return [TraceRow("sample", float(i), values={"total_w": 5.0}) for i in range(count)]


def test_finalising_a_torn_store_keeps_all_that_was_acknowledged(tmp_path: Path) -> None:
    store = tmp_path / "trace.jsonl"
    with TraceWriter(store) as writer:
        for row in some(3):
            writer.append(row)
    with store.open("ab") as handle:
        handle.write(b'{"crc":"0000')
    written = finalise(store)
    assert [path.name for path in written] == ["trace.csv", "trace.parquet"]
    assert all(list(read_trace(path).rows) == some(3) for path in written)
    assert store.exists()
    assert {path.name for path in tmp_path.iterdir()} == {
        "trace.jsonl",
        "trace.csv",
        "trace.parquet",
    }


def test_without_pyarrow_only_csv_is_made_unless_parquet_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "has_parquet", lambda: False)
    monkeypatch.setattr(parquet, "has_parquet", lambda: False)
    with TraceWriter(tmp_path / "trace.jsonl") as writer:
        writer.append(some(1)[0])
    assert [path.name for path in finalise(tmp_path / "trace.jsonl")] == ["trace.csv"]
    with pytest.raises(TraceError, match="pip install"):
        finalise(tmp_path / "trace.jsonl", parquet=True)


def test_a_failure_while_writing_leaves_the_old_file_and_no_litter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "trace.csv"
    write_trace(some(2), path)

    def refuse(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(TraceError, match="No space left"):
        write_trace(some(5), path)
    assert len(read_trace(path).rows) == 2
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("damaged", [b"", b"PAR1 and no footer", b"PAR1"])
def test_a_damaged_file_gives_way_to_the_next_with_a_warning(
    tmp_path: Path, damaged: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    write_trace(some(2), tmp_path / "trace.csv")
    (tmp_path / "trace.parquet").write_bytes(damaged)
    (tmp_path / "trace.jsonl").write_bytes(b"nothing of ours")
    with caplog.at_level(logging.WARNING):
        trace = read_trace(tmp_path)
    assert (trace.path.name, len(trace.rows)) == ("trace.csv", 2)
    assert any("parquet" in problem for problem in trace.problems)
    assert "trying the next file" in caplog.text


def test_a_folder_without_a_trace_says_what_was_expected(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=r"trace\.jsonl"):
        read_trace(tmp_path)


def test_a_bad_row_of_a_csv_is_skipped_and_named(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("kind,t_s,total_w\nsample,0,5\nsample,1,five\nfoo,2,5\nsample,3,6\n")
    trace = read_trace(path)
    assert [row.t_s for row in trace.rows] == [0, 3]
    assert [problem[:6] for problem in trace.problems] == ["line 3", "line 4"]


def test_bom_and_crlf_of_a_spreadsheet(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    write_trace(some(2), path)
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n"))
    assert list(read_trace(path).rows) == some(2)


def test_numbers_are_written_without_the_locale() -> None:
    text = dialects.to_csv(
        [{"a": 22.5, "b": 3.0, "c": None, "d": [1.5, 2.0]}], ["a", "b", "c", "d"]
    )
    assert text == "a,b,c,d\n22.5,3,,1.5|2\n"
