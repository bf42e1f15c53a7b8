"""The cells of jtop's logger, by column name."""

from __future__ import annotations

import re
from datetime import datetime

from rlgov.boards.totals import is_unconnected
from rlgov.traces.importers.base import Sample, plausible

_NUMBER = re.compile(r"[+-]?[0-9]{1,12}(?:\.[0-9]{1,9})?")
_UPTIME = re.compile(
    r"(?:([0-9]{1,6}) days?, )?([0-9]{1,4}):([0-9]{2}):([0-9]{2}(?:\.[0-9]{1,9})?)"
)
_CPU = re.compile(r"CPU[0-9]+")
_TEXTS = {"nvp model": "nvp_model", "jetson_clocks": "jetson_clocks"}
_KNOWN = re.compile(
    r"(?:APE|NVENC|NVDEC|NVJPG|MSENC|VIC|OFA|SE|PVA|NVDLA|DLA|GPU)[0-9A-Z_]*|MTS (?:FG|BG)|IRAM"
    r"|fan|Fan .*|power avg|GR3D2?"
)
_OFF_C = -255.0


def read_cell(sample: Sample, name: str, cell: str, decimal_comma: bool) -> None:
    """Put one cell into ``sample``; an empty cell stays unknown, an odd one is counted."""
    if not cell:
        return
    if decimal_comma and name != "time" and name not in _TEXTS:
        cell = cell.replace(",", ".") if " day" not in cell else cell
    if not (_read_time(sample, name, cell) and _read_value(sample, name, cell)):
        sample.bad.append(name)


def _read_time(sample: Sample, name: str, cell: str) -> bool:
    if name == "time":
        try:
            stamp = datetime.fromisoformat(cell.ljust(26, "0") if "." in cell else cell)
        except ValueError:
            return False
        if not plausible(stamp):
            return False
        sample.stamp = stamp
    elif name == "uptime":
        match = _UPTIME.fullmatch(cell)
        if match is None:
            return False
        hours = int(match[1] or 0) * 24 + int(match[2])
        sample.uptime_s = hours * 3600.0 + int(match[3]) * 60 + float(match[4])
    return True


def _read_value(sample: Sample, name: str, cell: str) -> bool:
    number = float(cell) if _NUMBER.fullmatch(cell) else None
    if name in ("time", "uptime"):
        return True
    if name in _TEXTS:
        sample.extra[_TEXTS[name]] = cell
        return True
    if _CPU.fullmatch(name):
        return _read_core(sample, number, cell)
    if name in ("GPU", "EMC", "RAM", "SWAP"):
        return number is not None and _read_unit(sample, name.lower(), number)
    kind, _, rest = name.partition(" ")
    if kind == "Temp" and rest:
        return _read_zone(sample, rest.lower(), number)
    if (kind == "Power" and rest) or name == "power cur":
        return _read_power(sample, (rest if kind == "Power" else "TOT").lower(), number)
    if _KNOWN.fullmatch(name) is None:
        sample.unknown.append(name or "(no name)")
    return True


def _read_core(sample: Sample, number: float | None, cell: str) -> bool:
    good = cell == "OFF" or (number is not None and 0 <= number <= 100)
    loads = sample.values.setdefault("cpu_utils", [])
    texts = [str(load) for load in loads] if isinstance(loads, list) else []
    texts.append("off" if cell == "OFF" else cell if good else "")
    sample.values["cpu_utils"] = texts
    busy = [float(text) for text in texts if text not in ("off", "")]
    if busy:
        sample.values["cpu_util"] = sum(busy) / len(busy) / 100
    return good


def _read_unit(sample: Sample, unit: str, number: float) -> bool:
    if unit in ("gpu", "emc"):
        if not 0 <= number <= 100:  # jtop 3 wrote the memory in use as EMC
            return False
        sample.values[f"{unit}_util"] = number / 100
        return True
    if number < 0:
        return False
    if number <= 1:
        sample.extra[f"{unit}_share"] = number
    else:
        sample.values[f"{unit}_used_mb"] = number / 1024
    return True


def _read_zone(sample: Sample, zone: str, number: float | None) -> bool:
    known = number is not None and number > _OFF_C and not zone.startswith("pmic")
    sample.temperature_c[zone.replace(" ", "_")] = number if known else None
    return number is not None


def _read_power(sample: Sample, rail: str, number: float | None) -> bool:
    if number is None:
        sample.bad_rail = True
        return False
    if rail == "tot":
        sample.stated_total_w = number / 1000
    elif not is_unconnected(rail):
        sample.rails[rail.replace(" ", "_")] = number / 1000
    return True
