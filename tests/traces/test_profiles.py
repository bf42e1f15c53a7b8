from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rlgov.errors import ConfigError, TraceError
from rlgov.traces import parquet
from rlgov.traces.profile import Profile, ProfileRow
from rlgov.traces.profiles import parse_profiles, read_profile, read_profiles, write_profile
from rlgov.traces.text import decode, parse_table

HEAD = "device,job,config,gpu_mhz,emc_mhz,step_time_s,power_w,energy_per_step_j\n"


def one(text: str) -> Profile:
    (profile,) = parse_profiles(text)
    return profile


def test_energy_is_time_times_power_where_it_is_blank_and_nothing_else_is_made_up() -> None:
    profile = one(HEAD + "b,j,pinned,300,,2,10,\nb,j,pinned,600,,,10,7\nb,j,pinned,900,,1,,7\n")
    assert [row.energy_per_step_j for row in profile.rows] == [20, 7, 7]
    assert [row.step_time_s for row in profile.rows] == [2, None, 1]
    assert [row.power_w for row in profile.rows] == [10, 10, None]
    assert (profile.has_energy, profile.has_time, profile.has_power) == (True, False, False)


def test_the_reference_is_the_as_found_row_else_the_highest_setting() -> None:
    rows = "b,j,pinned,300,1000,2,10,\nb,j,pinned,600,800,1,15,\nb,j,pinned,600,1000,1,16,\n"
    assert one(HEAD + rows).reference().setting == (600, None, 1000, None)
    found = one(HEAD + rows + "b,j,as_found,,,1.1,12,\nb,j,as_found,,,1.3,12,\n").reference()
    assert (found.config, found.step_time_s) == ("as_found", pytest.approx(1.2))
    automatic = one(HEAD + "b,j,pinned,300,,2,10,\nb,j,pinned,,800,1,15,\n").reference()
    assert automatic.gpu_mhz is None


def test_the_grid_has_nan_for_what_was_automatic_or_not_measured() -> None:
    profile = one(
        HEAD.strip() + ",vdd_in_w\n"
        "b,j,pinned,600,,1,,7,5\nb,j,pinned,300,,2,10,,\nb,j,pinned,300,,4,30,,\nb,j,as_found,,,1,9,,\n"
    )
    grid = profile.grid()
    assert len(grid) == 2
    np.testing.assert_array_equal(grid.knobs["gpu_mhz"], [300, 600])
    np.testing.assert_array_equal(grid.knobs["emc_mhz"], [math.nan, math.nan])
    np.testing.assert_array_equal(grid.step_time_s, [3, 1])
    np.testing.assert_array_equal(grid.power_w, [20, math.nan])
    np.testing.assert_array_equal(grid.rails["vdd_in"], [math.nan, 5])
    assert profile.knobs_varied == ("gpu_mhz",)
    assert profile.levels("gpu_mhz") == (300, 600)


@pytest.mark.parametrize(
    ("written", "gpu", "config"),
    [
        ("pinned", "300", "pinned"),
        ("", "300", "pinned"),
        ("power_limit", "300", "pinned"),
        ("", "", "as_found"),
        ("as_found", "", "as_found"),
        ("MAXN_Mode0_nvhost_podgov", "", "as_found"),
        ("whatever", "", "as_found"),
        ("as_found", "300", "as_found"),
        ("MAXN", "300", "pinned"),
    ],
)
def test_config(written: str, gpu: str, config: str) -> None:
    row = one(f"{HEAD}b,j,{written},{gpu},,1,,\n").rows[0]
    assert row.config == config
    assert row.gpu_mhz == (300 if config == "pinned" else None)


@pytest.mark.parametrize(
    ("header", "cell", "column", "value"),
    [
        ("gpu_hz", "114750000", "gpu_mhz", 114.75),
        ("cpu_khz", "1036800", "cpu_mhz", 1036.8),
        ("emc_mhz_reported", "1866", "emc_mhz", 1866),
        ("latency_ms", "576.5", "step_time_s", 0.5765),
        ("TPOT_ms", "93.25", "step_time_s", 0.09325),
        ("energy_per_token_j", "2.5", "energy_per_step_j", 2.5),
    ],
)
def test_other_people_s_names(header: str, cell: str, column: str, value: float) -> None:
    text = f"model,{header},vdd_soc_w\nm,{cell},2\n"
    assert getattr(one(text).rows[0], column) == pytest.approx(value)
    assert one(text).job == "m"


def test_rails_in_milliwatts_and_the_total_by_board_rule() -> None:
    row = one(
        "gpu_mhz,latency_ms,VDD_IN_mean_mw,VDD_IN_sd_mw,VDD_SOC_mean_mw\n300,100,5000,9,900\n"
    )
    row_ = row.rows[0]
    assert row_.rails == {"vdd_in": 5.0, "vdd_soc": 0.9}
    assert (row_.power_w, row_.energy_scope) == (5.0, "VDD_IN")
    assert row_.energy_per_step_j == pytest.approx(0.5)
    assert row_.extra == {"VDD_IN_sd_mw": "9"}
    summed = one("gpu_mhz,vdd_gpu_soc_w,vin_sys_5v0_w\n300,3,4\n").rows[0]
    assert (summed.power_w, summed.energy_scope) == (7.0, "VDD_GPU_SOC+VIN_SYS_5V0")


def test_numbers_in_a_note() -> None:
    row = ProfileRow("b", "j", gpu_mhz=1.0, note="time_per_epoch_s=3007.61; energy = product")
    assert row.note_number("time_per_epoch_s") == 3007.61
    assert row.note_number("energy") is None


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "header"),
        (HEAD, "no row"),
        ("a,b\n1,2\n", "no column holds a time"),
        (HEAD + "b,j,pinned,300,,fast,10,\n", r"line 2, column 'step_time_s'.*not a number"),
        (HEAD + "\nb,j,pinned,300,,22 May,10,\n", r"line 3, column 'step_time_s'.*date"),
        (HEAD + 'b,j,pinned,300,,"22,5",10,\n', "decimal comma"),
        (HEAD + "b,j,pinned,300,,0,10,\n", "above 0"),
        (HEAD + "b,j,pinned,1300500,,1,10,\n", "meant in kHz"),
        (HEAD + "b,j,pinned,1300500000,,1,10,\n", "meant in Hz"),
        (HEAD + "b,j,pinned,-300,,1,10,\n", "above 0"),
        (HEAD + "b,j,pinned,300,,1e999,10,\n", "not a number"),
        (HEAD + "b,j,pinned,,,1,10,\n", "no knob"),
        (HEAD + "b,j,pinned,300,,,,\n", "no time, power or energy"),
        (HEAD + "b,j,pinned,300,,1,10,,,4\n", "cells"),
        ("gpu_mhz,gpu_hz,step_time_s\n1,1,1\n", "both mean"),
        ("gpu_mhz,gpu_mhz,step_time_s\n1,1,1\n", "twice"),
    ],
)
def test_bad_input_says_where_and_what(text: str, words: str) -> None:
    with pytest.raises(TraceError, match=words):
        parse_profiles(text)


def test_an_error_names_the_file(tmp_path: Path) -> None:
    path = tmp_path / "p.csv"
    with pytest.raises(TraceError, match=r"p\.csv"):
        read_profile(path)
    path.write_text(HEAD + "b,j,pinned,300,,x,,\n")
    with pytest.raises(TraceError, match=r"p\.csv: line 2"):
        read_profile(path)


def test_several_jobs_are_listed_and_one_is_chosen(tmp_path: Path) -> None:
    path = tmp_path / "p.csv"
    rows = "b,small,pinned,300,,1,,\nb,small one,pinned,300,,2,,\nc,small,pinned,300,,3,,\n"
    path.write_text(HEAD + rows)
    with pytest.raises(TraceError, match=r"choose one.*'small' on 'b'.*'small one' on 'b'"):
        read_profile(path)
    with pytest.raises(TraceError, match="nothing fits"):
        read_profile(path, job="large")
    assert read_profile(path, job="one").rows[0].step_time_s == 2
    assert read_profile(path, job="small", device="c").rows[0].step_time_s == 3
    assert len(read_profiles(path)) == 3


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_encodings_and_line_ends(encoding: str, end: str) -> None:
    text = (HEAD + "bö,j,pinned,300,,22.5,10,\n").replace("\n", end)
    row = one(decode(text.encode(encoding))).rows[0]
    assert (row.device, row.step_time_s) == ("bö", 22.5)


@pytest.mark.parametrize("delimiter", [";", "\t"])
@pytest.mark.parametrize("head", ["", "sep={}\n"])
def test_decimal_commas_are_found_out(delimiter: str, head: str) -> None:
    body = (HEAD + "b,j,pinned,300,,22#5,10,\n").replace(",", delimiter).replace("#", ",")
    if head and delimiter == "\t":
        body = body.lstrip()
    assert one(head.format(delimiter) + body).rows[0].step_time_s == 22.5


def test_a_point_among_decimal_commas_is_refused() -> None:
    text = "gpu_mhz;step_time_s\n1300,5;1.234\n"
    with pytest.raises(TraceError, match="line 2, column 'step_time_s'"):
        parse_profiles(text)
    assert one(text.replace("1300,5", "1300.5")).rows[0].step_time_s == 1.234


@given(st.integers(0, 99_999), st.integers(0, 999))
def test_a_decimal_comma_is_never_read_as_thousands(whole: int, part: int) -> None:
    table = parse_table(f"a;b\n{whole},{part:03};1\n")
    assert table.number(f"{whole},{part:03}", 2, "a") == float(f"{whole}.{part:03}")
    commas = parse_table("a,b\n1,1\n")
    with pytest.raises(TraceError, match="decimal comma"):
        commas.number(f"{whole},{part:03}", 2, "a")


numbers = st.floats(1e-6, 1e6) | st.none()


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.builds(
            ProfileRow,
            device=st.just("a board"),
            job=st.just('a, "job"; x'),
            gpu_mhz=st.floats(1, 3000),
            emc_mhz=st.floats(1, 5000) | st.none(),
            step_time_s=st.floats(1e-6, 1e3),
            power_w=numbers,
            steps=st.integers(1, 9) | st.none(),
            rails=st.dictionaries(st.sampled_from(["vdd_in", "gpu"]), st.floats(0.1, 99)),
            note=st.sampled_from(["", "1,5 = x;y", "ünï"]),
        ),
        min_size=1,
        max_size=4,
    ),
    st.sampled_from([("csv", "default"), ("csv", "excel_eu"), ("parquet", "default")]),
)
def test_what_is_written_is_read_back(
    tmp_path: Path, rows: list[ProfileRow], how: tuple[str, str]
) -> None:
    suffix, dialect = how
    # Power that is not stated is read off the rails, so state it where there are rails.
    rows = [
        r if r.power_w is not None or not r.rails else ProfileRow(**{**vars(r), "power_w": 1.0})
        for r in rows
    ]
    path = tmp_path / f"p.{suffix}"
    write_profile(Profile(rows), path, dialect)  # type: ignore[arg-type]
    assert read_profile(path).rows == Profile(rows).rows


def test_the_default_dialect_does_not_follow_the_locale(tmp_path: Path) -> None:
    profile = Profile([ProfileRow("b", "j", gpu_mhz=1300.5, step_time_s=22.5)])
    write_profile(profile, tmp_path / "p.csv")
    write_profile(profile, tmp_path / "eu.csv", "excel_eu")
    data, european = (tmp_path / "p.csv").read_bytes(), (tmp_path / "eu.csv").read_bytes()
    assert b"b,j,pinned,1300.5,,,,22.5" in data
    assert b"\r" not in data
    assert data.isascii()
    assert european.startswith(b"\xef\xbb\xbf")
    assert b"b;j;pinned;1300,5;;;;22,5" in european
    assert european.count(b"\r\n") == 2
    with pytest.raises(ConfigError, match="excel_eu"):
        write_profile(profile, tmp_path / "x.csv", "excel")  # type: ignore[arg-type]
    assert not (tmp_path / "x.csv").exists()


def test_without_pyarrow_the_message_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet, "has_parquet", lambda: False)
    profile = Profile([ProfileRow("b", "j", gpu_mhz=1.0, step_time_s=1.0)])
    for act in (
        lambda: write_profile(profile, tmp_path / "p.parquet"),
        lambda: read_profile(tmp_path / "p.parquet"),
    ):
        with pytest.raises(TraceError, match=r"pip install 'rlgov\[parquet\]'"):
            act()


def test_a_damaged_parquet_file_is_an_error_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "p.parquet").write_bytes(b"PAR1 and no footer")
    with pytest.raises(TraceError, match=r"p\.parquet"):
        read_profile(tmp_path / "p.parquet")


MEASURED = {
    "orin_finetune_energy.csv": (1, 12, (False, True), ("gpu_mhz",), "as_found"),
    "orin_decode.csv": (1, 11, (True, True), ("gpu_mhz",), "pinned"),
    "orin_decode_rails.csv": (1, 18, (True, True), ("gpu_mhz",), "pinned"),
    "tx2_latency.csv": (2, 104, (True, False), ("gpu_mhz", "emc_mhz"), "pinned"),
    "tx2_vgg19_rails.csv": (1, 13, (True, True), ("gpu_mhz",), "pinned"),
    "dgpu_bert_powerlimit.csv": (21, 138, (False, False), ("power_limit_w",), "pinned"),
}


@pytest.mark.parametrize("name", MEASURED)
def test_other_people_s_files_are_read_as_they_are(name: str, shared: Path) -> None:
    jobs, rows, (has_time, has_energy), knobs, config = MEASURED[name]
    profiles = read_profiles(shared / "measured" / name)
    assert len(profiles) == jobs
    assert sum(map(len, profiles)) == rows
    for profile in profiles:
        assert (profile.has_time, profile.has_energy) == (has_time, has_energy)
        assert profile.knobs_varied == knobs
        assert profile.reference().config == config
    if jobs > 1:
        with pytest.raises(TraceError, match="choose one"):
            read_profile(shared / "measured" / name)


def test_figures_of_other_people_s_files(shared: Path) -> None:
    rails = read_profile(shared / "measured" / "tx2_vgg19_rails.csv").settings()[-1]
    assert (rails.gpu_mhz, rails.emc_mhz) == (pytest.approx(1300.5), 1866)
    assert rails.step_time_s == pytest.approx(0.0671409)
    assert (rails.power_w, rails.rails["vdd_sys_gpu"]) == (
        pytest.approx(16.6711),
        pytest.approx(8.3557),
    )
    assert len(read_profile(shared / "measured" / "orin_decode_rails.csv").grid()) == 6
    card = read_profile(shared / "measured" / "dgpu_bert_powerlimit.csv", "squad/b12", "v100")
    assert card.rows[0].note_number("time_per_epoch_s") == 3007.61
