from __future__ import annotations

import json
import logging
import math
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rlgov.errors import TraceError
from rlgov.traces.row import TraceRow
from rlgov.traces.store import TraceWriter, pack, read_store, unpack

# Prints the number of a row only once `append` has returned, that is once it is acknowledged.
WRITER = """
import sys
from rlgov.traces.row import TraceRow
from rlgov.traces.store import TraceWriter
writer = TraceWriter(sys.argv[1], fsync_every=int(sys.argv[2]))
for i in range(10**9):
    writer.append(TraceRow("sample", float(i), values={"window": i, "note": "x" * (i * 37 % 500)}))
    sys.stdout.write(f"{writer.acknowledged}\\n")
    sys.stdout.flush()
"""


def row(i: int) -> TraceRow:
    return TraceRow(
        "sample", float(i), values={"window": i, "note": "é" * i}, rails={"vdd_in": 2.5}
    )


def write(path: Path, count: int) -> None:
    with TraceWriter(path) as writer:
        for i in range(count):
            writer.append(row(i))
        assert writer.acknowledged == count


def test_what_is_appended_is_read_back(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "trace.jsonl"
    write(path, 3)
    stored = read_store(path)
    assert list(stored.rows) == [row(i) for i in range(3)]
    assert (stored.torn_bytes, stored.corrupt) == (0, ())
    assert stored.meta["version"] == 1


def test_every_line_is_plain_json(tmp_path: Path) -> None:
    write(tmp_path / "t.jsonl", 2)
    for line in (tmp_path / "t.jsonl").read_text().splitlines():
        assert set(json.loads(line)) == {"crc", "row"}


def test_cut_at_every_byte(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    write(path, 4)
    data = path.read_bytes()
    ends = [i + 1 for i, byte in enumerate(data) if byte == ord("\n")]
    for cut in range(len(data) + 1):
        path.write_bytes(data[:cut])
        stored = read_store(path)
        whole = [end for end in ends if end <= cut]
        assert len(stored.rows) == max(0, len(whole) - 1)  # the first line is about the run
        assert stored.torn_bytes == cut - (whole[-1] if whole else 0)
        assert stored.corrupt == ()


def test_reopening_cuts_the_tail_at_every_byte_and_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    write(path, 2)
    data = path.read_bytes()
    last = data[:-1].rfind(b"\n") + 1
    for cut in range(last, len(data)):
        path.write_bytes(data[:cut])
        with TraceWriter(path) as writer:
            assert writer.cut_bytes == cut - last
            writer.append(row(9))
        stored = read_store(path)
        assert [r.values["window"] for r in stored.rows] == [0, 9]
        assert (stored.torn_bytes, stored.corrupt) == (0, ())


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(at=st.integers(0, 10_000), byte=st.integers(0, 255))
def test_one_changed_byte_costs_at_most_its_lines(tmp_path: Path, at: int, byte: int) -> None:
    path = tmp_path / "t.jsonl"
    data = b"".join(pack(row(i).record()) for i in range(5))
    at %= len(data)
    path.write_bytes(data[:at] + bytes([byte]) + data[at + 1 :])
    stored = read_store(path)
    kept = [r.values["window"] for r in stored.rows]
    assert kept == sorted(kept)
    assert len(kept) >= 3
    assert all(r == row(int(str(r.values["window"]))) for r in stored.rows)
    assert data[at] == byte or len(kept) < 5


@pytest.mark.parametrize(
    "line",
    [
        b'{"power": "abc"}',
        b'{"crc":"00000000","row":{}}',
        b"[1, 2]",
        b"null",
        b"\xff\xfe",
        pack({"kind": "sample", "gpu_mhz": "abc"})[:-1],
        pack({"kind": "nonsense"})[:-1],
        pack({"t_s": 1.0})[:-1],
    ],
)
def test_a_damaged_middle_is_skipped_and_reported_with_its_line(
    tmp_path: Path, line: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "t.jsonl"
    good = pack(row(1).record())
    path.write_bytes(good + line + b"\n\n" + good)
    with caplog.at_level(logging.WARNING, "rlgov.traces.store"):
        stored = read_store(path)
    assert len(stored.rows) == 2
    assert [number for number, _ in stored.corrupt] == [2]
    assert "line 2" in caplog.text


def test_a_tail_of_zero_bytes_is_cut(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    write(path, 1)
    with path.open("ab") as handle:
        handle.write(bytes(4096))
    assert read_store(path).torn_bytes == 4096


def test_what_is_not_finite_becomes_null() -> None:
    record = unpack(pack({"kind": "sample", "a": math.nan, "b": [math.inf, 1.0]})[:-1])
    assert record == {"kind": "sample", "a": None, "b": [None, 1.0]}


def test_batched_rows_are_acknowledged_by_flush(tmp_path: Path) -> None:
    writer = TraceWriter(tmp_path / "t.jsonl", fsync_every=0)
    writer.append(row(0))
    assert writer.acknowledged == 0
    writer.flush()
    assert writer.acknowledged == 1
    writer.append(row(1))
    writer.close()
    assert writer.acknowledged == 2


def test_a_second_writer_is_refused(tmp_path: Path) -> None:
    with TraceWriter(tmp_path / "t.jsonl"), pytest.raises(TraceError, match="another process"):
        TraceWriter(tmp_path / "t.jsonl")


def test_a_device_is_refused() -> None:
    with pytest.raises(TraceError, match="no regular file"):
        TraceWriter("/dev/null")


def test_a_long_tail_is_cut(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    write(path, 1)
    with path.open("ab") as handle:
        handle.write(b"x" * 200_000)
    with TraceWriter(path) as writer:
        assert writer.cut_bytes == 200_000
    assert read_store(path).rows == (row(0),)


def test_half_a_written_row_is_taken_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "t.jsonl"
    with TraceWriter(path) as writer:
        writer.append(row(0))
        # The disk has room for ten bytes of the next row.
        handle = _Full(writer._file)
        monkeypatch.setattr(writer, "_file", handle)
        with pytest.raises(TraceError, match="full"):
            writer.append(row(1))
        handle.room = 10**6
        writer.append(row(2))
    stored = read_store(path)
    assert [r.values["window"] for r in stored.rows] == [0, 2]
    assert stored.corrupt == ()


class _Full:
    """A file on a disk with little room."""

    def __init__(self, file: object) -> None:
        self.file, self.room = file, 10

    def write(self, data: bytes) -> int:
        return self.file.write(data[: self.room])  # type: ignore[attr-defined,no-any-return]

    def __getattr__(self, name: str) -> object:
        return getattr(self.file, name)


def kill_a_writer(path: Path, fsync_every: int, delay_s: float) -> None:
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path), str(fsync_every)], stdout=subprocess.PIPE
    )
    assert writer.stdout is not None
    first = writer.stdout.readline()
    time.sleep(delay_s)  # a random moment is what is tested
    os.kill(writer.pid, signal.SIGKILL)
    lines = (first + writer.stdout.read()).split(b"\n")
    writer.wait()
    writer.stdout.close()
    acknowledged = int(lines[-2])
    stored = read_store(path)
    windows = [r.values["window"] for r in stored.rows]
    assert windows == list(range(len(windows)))
    assert len(windows) >= acknowledged
    assert stored.corrupt == ()


@pytest.mark.parametrize("fsync_every", [1, 7])
@pytest.mark.parametrize("seed", [0, 1])
def test_kill_9_loses_nothing_acknowledged(tmp_path: Path, fsync_every: int, seed: int) -> None:
    kill_a_writer(tmp_path / "t.jsonl", fsync_every, random.Random(seed).uniform(0, 0.05))


@pytest.mark.slow
def test_kill_9_fifty_times(tmp_path: Path) -> None:
    rng = random.Random(0)
    for i in range(50):
        kill_a_writer(tmp_path / f"{i}.jsonl", rng.choice((1, 1, 5)), rng.uniform(0, 0.1))
