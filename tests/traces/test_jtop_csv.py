from __future__ import annotations

from pathlib import Path

import pytest

from rlgov.errors import TraceError
from rlgov.traces.importers import Clock, Imported, importer
from rlgov.traces.importers.jtop_csv import JtopCsv
from rlgov.traces.text import decode

HEAD = "time,uptime,CPU1,CPU2,RAM,SWAP,EMC,GPU,NVENC,Fan pwmfan0,Temp cpu,Temp gpu,"
TAIL = ",Power TOT,jetson_clocks,nvp model"


def log(rails: dict[str, int], total: int, uptimes: tuple[str, ...] = ("0:00:01.5",)) -> str:
    lines = [HEAD + ",".join(f"Power {rail}" for rail in rails) + TAIL]
    for i, uptime in enumerate(uptimes):
        figures = ",".join(map(str, rails.values()))
        lines.append(
            f"2026-03-04 05:06:{7 + i:02}.25,{uptime},50,OFF,0.25,0,3,97,OFF,40.0,46.5,-256,"
            f"{figures},{total},OFF,MAXN"
        )
    return "\r\n".join(lines) + "\r\n"


def read(text: str, tz: str | None = None) -> Imported:
    return importer("jtop_csv").read(text, Clock(tz))


ORIN = {"VDD_GPU_SOC": 3000, "VDD_CPU_CV": 1000, "VIN_SYS_5V0": 4000}


def test_every_column() -> None:
    imported = read(log(ORIN, 8000), "Europe/Berlin")
    row = imported.rows[0]
    assert row.t_utc == "2026-03-04T04:06:07.250000Z"
    assert row.values["cpu_utils"] == ["50", "off"]
    assert row.number("cpu_util") == 0.5
    assert (row.number("gpu_util"), row.number("emc_util")) == (0.97, 0.03)
    assert row.temperature_c == {"cpu": 46.5, "gpu": None}
    assert row.rails == {"vdd_gpu_soc": 3.0, "vdd_cpu_cv": 1.0, "vin_sys_5v0": 4.0}
    assert row.extra == {
        "ram_share": 0.25,
        "swap_share": 0.0,
        "jetson_clocks": "OFF",
        "nvp_model": "MAXN",
    }
    assert row.quality == ()
    assert dict(imported.report.unknown_fields) == {}


@pytest.mark.parametrize(
    ("rails", "stated", "rule", "total"),
    [
        (ORIN, 8000, "sum_of_rails", 8.0),
        # jtop 4.0 took this rail for the total, and a sum of a total with its parts is as wrong.
        ({"VDD_GPU_SOC": 3000, "VDD_CPU_CV": 1000}, 4500, "sum_of_rails", 8.5),
        (ORIN, 4000, "sum_of_rails", 8.0),
        ({"VDD_CPU_GPU_CV": 700, "VDD_SOC": 900}, 5000, "VDD_IN", 5.0),
        ({"POM_5V_GPU": 100, "POM_5V_CPU": 200}, 1500, "POM_5V_IN", 1.5),
        ({"VDD_IN": 5000, "VDD_SOC": 900}, 5900, "VDD_IN", 5.0),
        ({"GPU": 1000, "CPU": 1000, "SYS5V": 500}, 2500, "sum_of_rails", 2.5),
        ({"VDD_GPU": 1, "VDD_CPU_SOC_MSS": 2, "VIN_SYS_5V0": 3}, 6, "sum_of_rails", 0.006),
        ({"VDD_GPU": 1000, "VDD_CPU_SOC_MSS": 2000, "VIN_SYS_5V0": 3000}, 19000, "VIN", 19.0),
        ({"NC": 7}, 2500, "JTOP_TOT", 2.5),
    ],
)
def test_the_total_by_board(rails: dict[str, int], stated: int, rule: str, total: float) -> None:
    imported = read(log(rails, stated))
    assert imported.report.total_rule == rule
    assert imported.rows[0].number("total_w") == pytest.approx(total)


def test_durations_come_from_the_uptime_not_from_the_clock() -> None:
    text = log(ORIN, 8000, ("23:59:59.5", '"1 day, 0:00:00.5"', '"1 day, 0:00:01.5"'))
    text = text.replace("05:06:08.25", "08:06:08")  # NTP set the clock three hours on
    imported = read(text)
    assert [row.t_s for row in imported.rows] == [0, 1, 2]
    assert imported.report.energy_j == pytest.approx(16)
    assert imported.report.gaps == 0


def test_a_reboot_in_the_middle_never_turns_time_back() -> None:
    imported = read(log(ORIN, 8000, ("0:10:00", "0:10:01", "0:00:30", "0:00:31")))
    times = [row.t_s for row in imported.rows]
    assert times == sorted(times)  # type: ignore[type-var]
    assert any("reboot" in warning for warning in imported.report.warnings)


def test_negative_power_is_kept_signed() -> None:
    imported = read(log({"VDD_GPU": -392, "VDD_CPU_SOC_MSS": 2000}, 1608))
    assert imported.rows[0].rails["vdd_gpu"] == -0.392
    assert imported.rows[0].number("total_w") == 2.0
    assert imported.report.negative_power == 1


def test_no_power_columns_is_no_power() -> None:
    imported = read("time,uptime,CPU1,GPU\n2026-03-04 05:06:07,0:00:01,5,7\n")
    assert imported.report.total_rule == "none"
    assert imported.rows[0].number("total_w") is None


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
def test_what_spreadsheets_save(encoding: str) -> None:
    text = log(ORIN, 8000)
    if encoding == "utf-16":  # Excel's "Unicode text" also splits by tabs
        text = text.replace(",", "\t")
    decoded = decode(text.encode(encoding))
    assert JtopCsv().accepts(decoded)
    assert read(decoded).rows[0].number("total_w") == 8.0


def test_a_file_with_semicolons_and_decimal_commas() -> None:
    text = log(ORIN, 8000).replace(",", ";").replace("46.5", "46,5")
    assert JtopCsv().accepts(text)
    assert read(text).rows[0].temperature_c["cpu"] == 46.5


def test_bad_cells_torn_rows_and_a_second_header() -> None:
    text = log(ORIN, 8000)
    header, row = text.split("\r\n")[:2]
    torn = row[: row.index("46.5") + 2]
    odd = row.replace("97", "ninety").replace("OFF,40.0", "OFF,NaN")
    report = read("\n".join((header, row, odd, torn, header, row, "", "nonsense"))).report
    assert (report.lines, report.rows, report.rejected, report.blank) == (8, 4, 1, 3)
    assert (report.n_ok, report.n_partial, report.n_bad) == (2, 2, 1)


def test_unknown_columns_are_counted_by_name() -> None:
    text = log(ORIN, 8000, ("0:00:01", "0:00:02")).replace("Fan pwmfan0", "NPU")
    assert dict(read(text).report.unknown_fields) == {"NPU": 2}


def test_a_file_without_a_header_is_refused() -> None:
    with pytest.raises(TraceError, match="header"):
        read("1,2,3\n4,5,6\n")


DUMP = """<key>, <value>
time, 2020-01-02 03:04:05.006
uptime, 1:02:03.5
nvp model, MAXN
CPU1, 5
CPU2, OFF
GPU, 7
EMC, 1745160
RAM, 2097152
Temp CPU, 46.0
power cur, 4859
power avg, 4899
"""


def test_the_dump_of_jtop_3() -> None:
    assert JtopCsv().accepts(DUMP)
    imported = read(DUMP + DUMP.partition("\n")[2].replace("2:03.5", "2:04.5"))
    assert (imported.report.lines, imported.report.rows) == (23, 2)
    row = imported.rows[0]
    assert (row.number("total_w"), row.number("ram_used_mb")) == (4.859, 2048.0)
    assert row.number("emc_util") is None
    assert imported.rows[1].t_s == 1.0


def test_the_sample_of_jtop_3(shared: Path) -> None:
    imported = read((shared / "tegrastats" / "50_jtop_v3_stats_issue81.log").read_text())
    assert (imported.report.rows, imported.report.rejected) == (1, 0)
    assert imported.rows[0].number("total_w") == 4.859
    assert imported.rows[0].number("emc_util") is None
