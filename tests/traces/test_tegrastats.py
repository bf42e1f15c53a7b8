from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlgov.errors import ConfigError
from rlgov.traces.importers import Clock, Imported, importer
from rlgov.traces.importers.tegrastats import parse_line, split_glued

RAM = "RAM 100/1000MB (lfb 5x4MB)"
NX = f"{RAM} CPU [2%@100,off] VDD_IN 5000mW/5100mW VDD_CPU_GPU_CV 700mW/700mW VDD_SOC 900mW/900mW"


def read(text: str, tz: str | None = None, interval_s: float | None = None) -> Imported:
    return importer("tegrastats").read(text, Clock(tz, interval_s))


def field(text: str, column: str) -> object:
    sample = parse_line(f"{RAM} {text}")
    assert sample is not None
    assert sample.bad == []
    return sample.values.get(column)


@pytest.mark.parametrize(
    ("text", "share", "clock"),
    [
        ("GR3D_FREQ 62%@306", 0.62, 306),
        ("GR3D_FREQ 62%", 0.62, None),
        ("GR3D_FREQ 62%@[114]", 0.62, 114),
        ("GR3D_FREQ 62%@[305,611]", 0.62, 611),
        ("GR3D_FREQ 0%@[0,0]", 0.0, 0),
        ("GR3D_FREQ @[1574,1574,1574]", None, 1574),
        ("GR3D_FREQ @306", None, 306),
        ("GR3D 7%@252", 0.07, 252),
        ("GR3D_FREQ off", None, None),
        ("GR3D2_FREQ 3%@0", None, None),
        ("", None, None),
    ],
)
def test_every_shape_of_the_gpu_load(text: str, share: float | None, clock: float | None) -> None:
    assert field(text, "gpu_util") == share
    assert field(text, "gpu_mhz") == clock


def test_every_gpu_clock_is_kept() -> None:
    assert field("GR3D_FREQ @[3,2,1]", "gpu_clocks_mhz") == [3, 2, 1]


@pytest.mark.parametrize(
    ("text", "share", "clock"),
    [
        ("EMC_FREQ 34%@4266", 0.34, 4266),
        ("EMC_FREQ @4266", None, 4266),
        ("EMC_FREQ 0%", 0.0, None),
        ("EMC 3%@924", 0.03, 924),
    ],
)
def test_every_shape_of_the_memory_load(text: str, share: float | None, clock: float) -> None:
    assert field(text, "emc_util") == share
    assert field(text, "emc_mhz") == clock


@pytest.mark.parametrize(
    ("text", "loads", "clocks"),
    [
        ("CPU [1%@345,off,3%@500]", ["1", "off", "3"], ["345", "off", "500"]),
        ("cpu [25%,7%]@2218", ["25", "7"], ["2218", "2218"]),
        ("CPU [0%,5%,off]@2601", ["0", "5", "off"], ["2601", "2601", "off"]),
    ],
)
def test_every_shape_of_the_cores(text: str, loads: list[str], clocks: list[str]) -> None:
    assert field(text, "cpu_utils") == loads
    assert field(text, "cpu_clocks_mhz") == clocks


@pytest.mark.parametrize(
    ("text", "rail", "watts"),
    [
        ("VDD_IN 2532/2698", "vdd_in", 2.532),
        ("VDD_IN 2763mW/2846mW", "vdd_in", 2.763),
        ("VIN 124486mW/36487mW/124486mW", "vin", 124.486),
        ("VDD_GPU -392mW/-100mW", "vdd_gpu", -0.392),
        ("GPU 18401/18525", "gpu", 18.401),
        ("CPU 311/311", "cpu", 0.311),
        ("SYS5V 1482/1482", "sys5v", 1.482),
        ("A_RAIL_OF_TOMORROW 5mW/6mW", "a_rail_of_tomorrow", 0.005),
    ],
)
def test_every_shape_of_a_rail(text: str, rail: str, watts: float) -> None:
    sample = parse_line(f"{RAM} {text}")
    assert sample is not None
    assert (sample.rails, sample.bad, sample.unknown) == ({rail: watts}, [], [])


@pytest.mark.parametrize(
    ("text", "zone", "degrees"),
    [
        ("GPU@36.5C", "gpu", 36.5),
        ("cpu@58.25C/61.75C", "cpu", 58.25),
        ("GPU@-256C", "gpu", None),
        ("tj@-5C", "tj", -5.0),
        ("PMIC@100C", "pmic", None),
    ],
)
def test_every_shape_of_a_temperature(text: str, zone: str, degrees: float | None) -> None:
    sample = parse_line(f"{RAM} CPU@40C {text}")
    assert sample is not None
    assert sample.bad == []
    assert sample.temperature_c[zone] == degrees
    assert "cpu" in sample.temperature_c


@pytest.mark.parametrize(
    "text",
    [
        "NVENC off NVDEC 79%@166 NVJPG1 off VIC 36%@115 OFA off NVDLA0 off PVA0_FREQ off",
        "NVENC0_FREQ @0 OFA_FREQ @0 VIC_FREQ 729 VIC_FREQ 0%@115 MSENC 115 APE 25 AVP 5%@115",
        "VDE 0 EDP limit 1912",
        "MTS fg 1% bg 10% SWAP 0/0MB (cached 0MB) IRAM 0/252kB(lfb 252kB)",
    ],
)
def test_known_fields_that_are_not_kept_are_not_unknown(text: str) -> None:
    sample = parse_line(f"{RAM} {text} GPU@40C")
    assert sample is not None
    assert (sample.unknown, sample.bad) == ([], [])
    assert sample.temperature_c == {"gpu": 40.0}


@pytest.mark.parametrize(
    ("text", "unknown"),
    [
        ("FUTURE_TOKEN value", ["FUTURE_TOKEN"]),
        ("NPU_FREQ 5%@100", ["NPU_FREQ"]),
        ("ALPHA BETA 7mW/7mW", ["ALPHA"]),
        ("ALPHA GPU@40C", ["ALPHA"]),
        ("QUOTA 3/4", ["QUOTA"]),
        ("LAST", ["LAST"]),
    ],
)
def test_unknown_fields_are_counted_by_name(text: str, unknown: list[str]) -> None:
    sample = parse_line(f"{RAM} {text}")
    assert sample is not None
    assert sample.unknown == unknown
    assert parse_line(f"{RAM} {text} VDD_IN 1mW/1mW").rails["vdd_in"] == 0.001  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "bad",
    [
        "GR3D_FREQ x%@[1",
        "EMC_FREQ 300%@1",
        "CPU [2%@",
        "GPU@hotC",
        "SWAP 1/",
        "VDD_SOC 5mW/x",
        "GR3D_FREQ",
        "12%@",
    ],
)
def test_a_bad_field_never_drops_the_line(bad: str) -> None:
    report = read(f"{RAM} {bad} VDD_IN 5000mW/5000mW GPU@40C\n").report
    assert (report.rows, report.rejected, report.n_partial) == (1, 0, 1)
    row = read(f"{RAM} {bad} VDD_IN 5000mW/5000mW GPU@40C\n").rows[0]
    assert row.number("total_w") == 5.0
    assert row.temperature_c["gpu"] == 40.0
    assert "bad_field" in row.quality


def test_one_bad_core_costs_only_itself() -> None:
    row = read(f"{RAM} CPU [2%@100,x%@y,4%@300]").rows[0]
    assert row.values["cpu_utils"] == ["2", "", "4"]
    assert row.number("cpu_util") == pytest.approx(0.03)


def test_the_total_is_the_input_rail_and_never_a_sum_with_its_parts() -> None:
    imported = read(NX)
    assert imported.report.total_rule == "VDD_IN"
    assert imported.rows[0].number("total_w") == 5.0


def test_vin_sys_5v0_is_not_the_total_and_nc_is_nothing() -> None:
    imported = read(f"{RAM} VDD_GPU_SOC 3000mW/3mW VIN_SYS_5V0 4000mW/4mW NC 9mW/9mW NC 9mW/9mW")
    assert imported.report.total_rule == "sum_of_rails"
    assert imported.rows[0].number("total_w") == 7.0
    assert "nc" not in imported.rows[0].rails


def test_vin_beats_the_rails_inside_it() -> None:
    imported = read(f"{RAM} VDD_GPU 3000mW/3mW VIN_SYS_5V0 4000mW/4mW VIN 20000mW/1mW")
    assert (imported.report.total_rule, imported.rows[0].number("total_w")) == ("VIN", 20.0)


def test_no_rails_is_no_power_and_not_zero() -> None:
    imported = read(f"{RAM} CPU [1%@1]")
    assert imported.report.total_rule == "none"
    assert imported.rows[0].number("total_w") is None
    assert imported.report.energy_j is None
    assert any("root" in warning for warning in imported.report.warnings)


def test_a_row_without_the_input_rail_does_not_fall_back_to_a_sum() -> None:
    rows = read(f"{NX}\n{RAM} VDD_SOC 900mW/900mW").rows
    assert [row.number("total_w") for row in rows] == [5.0, None]
    assert rows[1].quality == ("total_missing",)


def test_a_sum_that_lacks_a_part_is_unknown() -> None:
    whole = f"{RAM} GPU 100/100 CPU 200/200 SOC 300/300"
    rows = read(
        f"{whole}\n{whole}\n{RAM} GPU 100/100 CPU 200/200\n{RAM} GPU 1/1 CPU x/2 SOC 1/1"
    ).rows
    assert [row.number("total_w") for row in rows] == [0.6, 0.6, None, None]


def test_negative_power_is_kept_signed_but_counts_as_nothing() -> None:
    imported = read(f"{RAM} VDD_GPU -392mW/0mW VIN_SYS_5V0 4000mW/4mW")
    row = imported.rows[0]
    assert row.rails["vdd_gpu"] == -0.392
    assert row.number("total_w") == 4.0
    assert row.quality == ("negative_power",)
    assert imported.report.negative_power == 1
    below = read(f"{RAM} VDD_IN -5mW/0mW\n{RAM} VDD_IN -5mW/0mW")
    assert [r.number("total_w") for r in below.rows] == [0.0, 0.0]
    assert below.report.energy_j == 0.0


def test_banner_blank_truncated_and_crlf_lines() -> None:
    text = f"tegrastats started\r\n\r\n{NX}\r\n{NX[: NX.index('VDD_IN') + 9]}\r\n{NX[:35]}"
    imported = read(text)
    report = imported.report
    assert (report.lines, report.rows, report.rejected, report.blank) == (5, 3, 1, 1)
    assert (report.n_ok, report.n_partial, report.n_bad) == (1, 2, 1)
    assert [row.number("total_w") for row in imported.rows] == [5.0, None, None]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_every_kind_of_line_end(end: str) -> None:
    report = read(NX + end + NX + end).report
    assert (report.lines, report.rows, report.n_partial) == (2, 2, 0)


def test_a_stray_carriage_return_does_not_split_a_line() -> None:
    report = read(NX.replace(" VDD_IN", "\r VDD_IN") + "\n" + NX + "\n").report
    assert (report.lines, report.rows, report.n_partial) == (2, 2, 0)


@pytest.mark.parametrize("seam", ["", " ", "07-09-2024 13:31:31 "])
def test_two_lines_glued_together(seam: str) -> None:
    unit_free = f"{RAM} VDD_IN 5000/5000"
    parts = split_glued(unit_free + seam + NX)
    assert len(parts) == 2
    assert [row.number("total_w") for row in read(unit_free + seam + NX).rows] == [5.0, 5.0]


def test_a_prefix_of_another_program_is_stepped_over() -> None:
    imported = read(f"Jul  9 13:31:31 box tegrastats[7]: 07-09-2024 13:31:31 {NX}")
    assert imported.rows[0].t_utc == "2024-07-09T13:31:31Z"
    assert imported.report.unknown_fields == {"(prefix)": 1}


def test_stamps_are_month_first() -> None:
    assert read(f"12-08-2026 00:00:00 {NX}").rows[0].t_utc == "2026-12-08T00:00:00Z"


@pytest.mark.parametrize(
    ("tz", "utc"),
    [
        (None, "2024-07-09T13:31:31Z"),
        ("UTC", "2024-07-09T13:31:31Z"),
        ("Asia/Tokyo", "2024-07-09T04:31:31Z"),
        ("Europe/Berlin", "2024-07-09T11:31:31Z"),
        ("+02:00", "2024-07-09T11:31:31Z"),
    ],
)
def test_the_zone_is_stated(tz: str | None, utc: str) -> None:
    imported = read(f"07-09-2024 13:31:31 {NX}", tz)
    assert imported.rows[0].t_utc == utc
    assert imported.report.tz == (tz or "UTC (assumed)")


def test_the_machine_s_own_zone_does_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "America/Chicago")
    assert read(f"07-09-2024 13:31:31 {NX}").rows[0].t_utc == "2024-07-09T13:31:31Z"


def test_an_unknown_zone_is_refused() -> None:
    with pytest.raises(ConfigError, match="Mars/Olympus"):
        read(f"07-09-2024 13:31:31 {NX}", "Mars/Olympus")


def test_stamps_with_their_own_zone_need_no_other() -> None:
    imported = read(f"2024-07-09T13:31:31.5+0200 {NX}", "Asia/Tokyo")
    assert imported.rows[0].t_utc == "2024-07-09T11:31:31.500000Z"
    assert imported.report.tz == "as stamped"


def test_the_hour_that_happens_twice_is_resolved_by_order() -> None:
    times = ["01:59:59", "02:10:00", "02:50:00", "02:10:00", "02:50:00", "03:00:00"]
    text = "\n".join(f"10-25-2026 {t} {NX}" for t in times)
    imported = read(text, "Europe/Berlin", interval_s=1000)
    assert [str(row.t_utc)[11:16] for row in imported.rows] == [
        "23:59",
        "00:10",
        "00:50",
        "01:10",
        "01:50",
        "02:00",
    ]
    assert imported.report.out_of_order == 0


def test_the_hour_that_is_skipped_in_spring() -> None:
    text = "\n".join(f"03-29-2026 {t} {NX}" for t in ["01:59:59", "03:00:00", "03:00:01"])
    assert [row.t_s for row in read(text, "Europe/Berlin").rows] == [0, 1, 2]


def test_lines_out_of_order_are_sorted_and_counted() -> None:
    text = "\n".join(f"03-29-2026 10:00:0{s} {NX}" for s in (0, 2, 1, 3))
    imported = read(text)
    assert [row.t_s for row in imported.rows] == [0, 1, 2, 3]
    assert imported.report.out_of_order == 1
    assert imported.rows[1].quality == ("out_of_order",)
    assert imported.report.energy_j == pytest.approx(15)


def test_several_lines_a_second_are_spread() -> None:
    text = "\n".join(f"03-29-2026 10:00:0{s} {NX}" for s in (0, 0, 1, 1))
    imported = read(text)
    assert [row.t_s for row in imported.rows] == [0, 0.5, 1, 1.5]


def test_without_stamps_the_interval_counts_and_is_stated() -> None:
    one, half = read(f"{NX}\n{NX}"), read(f"{NX}\n{NX}", interval_s=0.5)
    assert (one.report.interval_s, one.report.energy_j) == (1.0, 5.0)
    assert (half.report.interval_s, half.report.energy_j) == (0.5, 2.5)
    assert any("1 s apart" in warning for warning in one.report.warnings)
    assert one.rows[0].t_utc is None


@pytest.mark.parametrize("interval_s", [0.0, -1.0, float("nan"), 1e300])
def test_an_impossible_interval_is_refused(interval_s: float) -> None:
    with pytest.raises(ConfigError, match="interval_s"):
        Clock(interval_s=interval_s)


def test_a_suspend_is_a_gap_and_not_integrated() -> None:
    stamps = ["10:00:00", "10:00:01", "10:02:46", "10:02:47"]
    imported = read("\n".join(f"03-29-2026 {t} {NX}" for t in stamps))
    assert imported.report.gaps == 1
    assert imported.rows[2].quality == ("gap",)
    assert imported.report.energy_j == pytest.approx(10)


def test_a_clock_that_was_never_set_and_then_jumps() -> None:
    text = f"01-01-1970 00:00:05 {NX}\n01-01-1970 00:00:06 {NX}\n12-01-2026 10:00:00 {NX}"
    imported = read(text)
    assert imported.report.energy_j == pytest.approx(5)
    assert imported.report.gaps == 1


@given(st.lists(st.integers(0, 59), min_size=1, max_size=8), st.text(max_size=30))
def test_time_never_goes_back_and_energy_is_never_negative(seconds: list[int], junk: str) -> None:
    text = "\n".join(f"10-25-2026 02:00:{s:02} {NX} {junk}" for s in seconds)
    imported = read(text, "Europe/Berlin")
    times = [row.t_s or 0.0 for row in imported.rows]
    assert times == sorted(times)
    assert all((row.number("energy_j") or 0.0) >= 0 for row in imported.rows)


@given(st.text(max_size=200))
def test_any_text_is_a_sample_or_nothing(text: str) -> None:
    sample = parse_line(text)
    assert sample is None or not sample.empty


SAMPLES = {
    "00_legacy_tk1_r21": ("none", [None], 0.0),
    "01_legacy_tx1_r23": ("none", [None, None], 0.0),
    "10_jp4_nano": ("POM_5V_IN", [1.022, 0.9, 1.75], 0.0),
    "11_jp4_tx1": ("VDD_IN", [2.532], 0.0),
    "12_jp4_tx2": ("VDD_IN", [3.056, 2.003, 5.297, 2.455, 2.915, 2.93], 0.0),
    "14_jp4_agx_xavier": ("sum_of_rails", [3.346, 32.85, 3.113], 0.0),
    "15_jp4_xavier_nx": ("VDD_IN", [4.067], 0.62),
    "20_jp5_xavier_nx": ("VDD_IN", [2.763], 0.0),
    "22_jp5_agx_orin_array": ("sum_of_rails", [7.05, 7.056], 0.0),
    "23_jp5_orin_nx": ("VDD_IN", [5.299, None], 0.0),
    "32_jp6_agx_orin": ("sum_of_rails", [12.377, 10.37, 8.726, 8.626, 8.726], 0.0),
    "40_jp7_thor_r384": ("sum_of_rails", [8.291, 9.25, 8.972], None),
    "42_jp7_thor_r39_EDITED_fixture": ("VIN", [28.906, 124.486], None),
}
"""Total rule, totals in time order, and the first row's GPU load."""


@pytest.mark.parametrize("name", SAMPLES)
def test_every_line_of_every_sample_has_the_right_total(name: str, shared: Path) -> None:
    path = shared / "tegrastats" / f"{name}.log"
    meta = json.loads(path.with_suffix(".meta.json").read_text())
    imported = read(path.read_text())
    rule, totals, load = SAMPLES[name]
    report = imported.report
    assert (report.lines, report.rows, report.rejected) == (meta["n_lines"], len(totals), 0)
    assert report.total_rule == rule
    assert [row.number("total_w") for row in imported.rows] == totals
    assert imported.rows[0].number("gpu_util") == load
    assert all("bad_field" not in row.quality for row in imported.rows)
    expected = {"FUTURE_TOKEN": 1} if "EDITED" in name else {}
    assert report.unknown_fields == expected
    assert all((row.number("energy_j") or 0.0) >= 0 for row in imported.rows)


def test_what_the_samples_meta_say(shared: Path) -> None:
    hints = {
        p.name[:2]: json.loads(p.read_text()).get("expect_hints", {})
        for p in (shared / "tegrastats").glob("*.meta.json")
    }

    def rows(number: str) -> Imported:
        return read(next((shared / "tegrastats").glob(f"{number}_*.log")).read_text())

    assert rows("20").rows[0].t_utc == hints["20"]["timestamp"] + "Z"
    assert rows("10").rows[0].t_utc is hints["10"]["timestamp"]
    assert rows("40").rows[0].number("gpu_util") is hints["40"]["gpu_util"]
    assert rows("40").rows[0].values["gpu_clocks_mhz"] == hints["40"]["gpu_freq_mhz"]
    assert rows("14").rows[1].number("total_w") == hints["14"]["sum_of_rails_w_line2"]
    assert rows("22").rows[0].temperature_c["gpu"] is None
    assert rows("22").rows[0].temperature_c["cpu"] == 44.5
    assert rows("23").rows[1].rails == {}
    assert rows("01").rows[0].number("swap_total_mb") == 0.0
    assert rows("42").rows[0].values["cpu_utils"] == ["0", "5", "off"]
