"""The shapes that one field of tegrastats takes, over all its releases.

Each reader puts what it finds into the sample and returns whether the field was whole.
"""

from __future__ import annotations

import re

from rlgov.boards.totals import is_unconnected
from rlgov.traces.importers.base import Sample

ENGINE = re.compile(
    r"(?:GR3D2|NVENC\d*|NVDEC\d*|MSENC|NVJPG\d*|VIC|OFA|NVDLA\d*|DLA\d*|PVA\d*|APE|AVP|VDE|SE\d*"
    r"|ISP|TSEC|VI|NVCSI|CVNAS|AXI)(?:_FREQ)?"
)
"""Units whose load is known, but not kept."""

_MEMORY = re.compile(r"([0-9]{1,9})/([0-9]{1,9})([kMG])B(?:\(.*)?")
_LOAD = re.compile(r"(?:([0-9]{1,3})%)?(?:@(?:([0-9]{1,7})|\[([0-9,]{1,80})\]))?")
_PLAIN = re.compile(r"[0-9]{1,9}")
_CORES = re.compile(r"\[([^\]]*)\](?:@([0-9]{1,7}))?")
_CORE = re.compile(r"([0-9]{1,3})%(?:@([0-9]{1,7}))?")
_TEMPERATURE = re.compile(
    r"([A-Za-z][\w.-]*)@(-?[0-9]{1,4}(?:\.[0-9]{1,6})?)C(?:/-?[0-9]{1,4}(?:\.[0-9]{1,6})?C)*",
    re.ASCII,
)
_POWER = re.compile(r"(-?[0-9]{1,8})(mW)?(?:/-?[0-9]{1,8}(?:mW)?){1,2}|(-?[0-9]{1,8})mW")
_POWER_LIKE = re.compile(r"-?[0-9]\S*|[^/\s]*/[^/\s]*|\S*mW\S*")
_RAIL_NAME = re.compile(
    r"(?:POM|VDD|VIN|SYS|CV|VDDQ|VDDRQ)[A-Z0-9_]*|GPU|CPU|SOC|CV|NC(?:_[A-Z0-9]+)?"
)
_NAME = re.compile(r"[A-Za-z][\w.-]*", re.ASCII)

_TO_MB = {"k": 1 / 1024, "M": 1.0, "G": 1024.0}
_MEMORY_COLUMNS = {"RAM": "ram", "SWAP": "swap"}
_OFF_C = -255.0


def is_name(token: str) -> bool:
    """Whether ``token`` could name a field."""
    return _NAME.fullmatch(token) is not None


def read_memory(sample: Sample, name: str, text: str) -> bool:
    """``714/1876MB``; IRAM is known, but not kept."""
    match = _MEMORY.fullmatch(text)
    if match is None:
        return False
    column = _MEMORY_COLUMNS.get(name)
    if column is not None:
        factor = _TO_MB[match[3]]
        sample.values[f"{column}_used_mb"] = int(match[1]) * factor
        sample.values[f"{column}_total_mb"] = int(match[2]) * factor
    return True


def read_load(sample: Sample, name: str, text: str) -> bool:
    """``5%``, ``5%@76``, ``5%@[76]``, ``5%@[76,76]``, ``@76``, ``@[76,76,76]``, ``25`` or ``off``.

    A load that is not printed stays unknown: it is not 0.
    """
    match = _LOAD.fullmatch(text)
    if match is None or not text:
        return text == "off" or _PLAIN.fullmatch(text) is not None
    load, clock, several = match.groups()
    if load is not None and int(load) > 100:
        return False
    clocks = [float(part) for part in (several or clock or "").split(",") if part]
    if name.startswith("GR3D"):
        _put_load(sample, "gpu", load, clocks)
        if len(clocks) > 1:
            sample.values["gpu_clocks_mhz"] = clocks
    elif name.startswith("EMC"):
        _put_load(sample, "emc", load, clocks)
    return True


def _put_load(sample: Sample, unit: str, load: str | None, clocks: list[float]) -> None:
    if load is not None:
        sample.values[f"{unit}_util"] = int(load) / 100
    if clocks:
        sample.values[f"{unit}_mhz"] = max(clocks)


def read_cores(sample: Sample, text: str) -> bool:
    """``[2%@345,off]`` or ``[2%,off]@345``; one bad core costs only itself."""
    match = _CORES.fullmatch(text)
    if match is None:
        return False
    loads: list[str] = []
    clocks: list[str] = []
    whole = True
    for cell in match[1].split(","):
        core = _CORE.fullmatch(cell)
        if core is not None and int(core[1]) <= 100:
            loads.append(core[1])
            clocks.append(core[2] or match[2] or "")
        else:
            whole = whole and cell == "off"
            loads.append("off" if cell == "off" else "")
            clocks.append(loads[-1])
    _put_cores(sample, loads, clocks)
    return whole


def _put_cores(sample: Sample, loads: list[str], clocks: list[str]) -> None:
    busy = [int(load) for load in loads if load not in ("off", "")]
    running = [float(clock) for clock in clocks if clock not in ("off", "")]
    sample.values["cpu_utils"] = loads
    sample.values["cpu_clocks_mhz"] = clocks
    if busy:
        sample.values["cpu_util"] = sum(busy) / len(busy) / 100
    if running:
        sample.values["cpu_mhz"] = max(running)


def read_temperature(sample: Sample, token: str) -> bool:
    """``GPU@36.5C`` or ``gpu@56C/66C``; -256 is a sensor that is switched off.

    PMIC prints a constant (50 or 100): no temperature either.
    """
    match = _TEMPERATURE.fullmatch(token)
    if match is None:
        return False
    zone, degrees = match[1].lower(), float(match[2])
    known = degrees > _OFF_C and not zone.startswith("pmic")
    sample.temperature_c[zone] = degrees if known else None
    return True


def bare_rail(text: str) -> bool:
    """Whether ``text`` is a rail's figure (``CPU 311/311`` beside ``CPU [2%@1190]``)."""
    return _POWER.fullmatch(text) is not None


def read_rail(sample: Sample | None, name: str, text: str) -> bool | None:
    """``VDD_IN 5299mW/5299mW``, ``VDD_IN 2532/2698`` or three figures; the first one is now.

    Args:
        sample: Where to put it; ``None`` to ask only whether this is a rail.
        name: Name of the rail.
        text: Its figures.

    Returns:
        Whether the rail could be read; ``None`` for what is no rail at all. Without a unit only
        the names of known rails count, or a pair of another meaning would join the sum.
    """
    match = _POWER.fullmatch(text)
    by_name = _RAIL_NAME.fullmatch(name) is not None
    if match is None:
        if not by_name or _POWER_LIKE.fullmatch(text) is None:
            return None
        if sample is not None:
            sample.bad_rail = True
        return False
    has_unit = match[2] is not None or match[3] is not None
    if not (by_name or (has_unit and is_name(name))):
        return None
    if sample is not None and not is_unconnected(name.lower()):
        sample.rails[name.lower()] = int(match[1] or match[3]) / 1000.0
    return True
