"""Throw damaged lines at every importer: nothing but a TraceError may come out.

    python scripts/fuzz_importers.py --count 1000000 --seed 0

Lines have the shape of real ones and are damaged at random. What does parse must be sane: finite
numbers, shares between 0 and 1, no total below 0, time that never goes back.
"""

from __future__ import annotations

import argparse
import math
import random
import sys
import time
from collections import Counter
from itertools import pairwise

from rlgov.errors import TraceError
from rlgov.traces.importers import Clock, importer
from rlgov.traces.importers.base import Sample
from rlgov.traces.importers.jtop_csv import read_row, split_row
from rlgov.traces.importers.tegrastats import parse_line, split_glued
from rlgov.traces.profiles import parse_profiles

JTOP_HEADER = [
    "time",
    "uptime",
    "CPU1",
    "CPU2",
    "CPU3",
    "RAM",
    "SWAP",
    "EMC",
    "GPU",
    "APE",
    "NVENC",
    "Fan pwmfan0",
    "Temp cpu",
    "Temp gpu",
    "Power VDD_CPU_GPU_CV",
    "Power VDD_SOC",
    "Power TOT",
    "jetson_clocks",
    "nvp model",
]
PROFILE_HEADER = (
    "device,job,config,gpu_mhz,cpu_mhz,emc_mhz,power_limit_w,step_time_s,power_w,"
    "energy_per_step_j,energy_scope,steps,vdd_in_w,note"
)
RAILS = (
    ("POM_5V_IN", "POM_5V_GPU", "POM_5V_CPU"),
    ("VDD_IN", "VDD_CPU_GPU_CV", "VDD_SOC"),
    ("GPU", "CPU", "SOC", "CV", "VDDRQ", "SYS5V"),
    ("VDD_GPU_SOC", "VDD_CPU_CV", "VIN_SYS_5V0", "NC", "VDDQ_VDD2_1V8AO", "NC"),
    ("VDD_GPU", "VDD_CPU_SOC_MSS", "VIN_SYS_5V0", "VIN"),
    (),
)
JUNK = (
    *"0123456789.,:;/@%[](){}<>|-+_ \t\r\n\f\x00\x1c\x85\u2028\ufeff\ufffd\"'\\",
    *(
        "٣",
        "²",
        "é",
        "🙂",
        "-256C",
        "@",
        "NaN",
        "inf",
        "1e999",
        "9" * 40,
        "mW/",
        "RAM 1/2MB",
        "off",
    ),
    *("GR3D_FREQ", "CPU", "CPU [", "12-31-2026 23:59:59 ", "VDD_IN", "0/0", "MTS fg", "EDP limit"),
)


def tegrastats_line(rng: random.Random) -> str:
    """One undamaged line of some generation."""
    parts = [f"{rng.randint(1, 12):02}-{rng.randint(1, 28):02}-2026 {rng.randint(0, 23):02}:00:07"]
    if rng.random() < 0.4:
        parts = []
    parts.append(f"RAM {rng.randint(0, 9999)}/9999MB (lfb {rng.randint(1, 99)}x4MB)")
    parts += [f"SWAP 0/{rng.choice((0, 2048))}MB (cached 0MB)"] if rng.random() < 0.8 else []
    parts += ["IRAM 0/252kB(lfb 252kB)"] if rng.random() < 0.3 else []
    parts.append(_cores(rng))
    parts.append(rng.choice(("EMC_FREQ 3%@2133", "EMC_FREQ 0%", "EMC 1%@408", "EMC_FREQ @4266")))
    parts.append(rng.choice(("GR3D_FREQ 9%@76", "GR3D_FREQ 62%@[305,0]", "GR3D_FREQ @[1,2,3]", "")))
    parts.append(rng.choice(("NVENC off", "VIC 36%@115", "APE 150 MTS fg 0% bg 1%", "EDP limit 0")))
    parts += [f"{zone}@{rng.choice((-256, 36.5, 41))}C" for zone in ("cpu", "GPU", "PMIC", "tj")]
    unit = rng.choice(("", "mW"))
    for rail in rng.choice(RAILS):
        watts = rng.choice((-392, 0, rng.randint(0, 60000)))
        parts.append(
            f"{rail} {watts}{unit}/{watts}{unit}" + f"/{watts}{unit}" * (rng.random() < 0.2)
        )
    return " ".join(parts)


def _cores(rng: random.Random) -> str:
    cells = [
        rng.choice(("off", f"{rng.randint(0, 100)}%@{rng.randint(100, 2600)}")) for _ in "1234"
    ]
    if rng.random() < 0.2:
        return "cpu [" + ",".join(cell.partition("@")[0] for cell in cells) + "]@1912"
    return "CPU [" + ",".join(cells) + "]"


def jtop_line(rng: random.Random) -> str:
    """One undamaged row of jtop's logger."""
    seconds = rng.randint(0, 59)
    milliwatts = rng.randint(-400, 9000)
    uptime = rng.choice(("0:01:02.5", '"1 day, 2:03:04.5"'))
    return (
        f"2026-03-04 05:06:{seconds:02}.{rng.randint(0, 999999):06},"
        f"{uptime},{rng.randint(0, 100)},"
        f"OFF,7,0.25,0,{rng.randint(0, 100)},{rng.randint(0, 100)},150,OFF,0.0,46.5,"
        f"{rng.choice((-256, 44.5))},{milliwatts},800,{milliwatts + 2000},OFF,MAXN"
    )


def profile_line(rng: random.Random) -> str:
    """One undamaged row of a profile."""
    time_s = rng.choice(("", f"{rng.uniform(0.01, 2):.4f}"))
    config = rng.choice(("pinned", "as_found", ""))
    return (
        f"board,job,{config},{rng.choice(('', 306, 1300.5))},,2133,,"
        f'{time_s},{rng.uniform(1, 60):.3f},,VDD_IN,{rng.choice(("", 40))},12.5,"a, b=3"'
    )


def damage(rng: random.Random, line: str) -> str:
    """``line`` after a few random edits (or none)."""
    for _ in range(rng.choice((0, 1, 1, 2, 3, 8))):
        a, b = sorted((rng.randint(0, len(line)), rng.randint(0, len(line))))
        edit = rng.randint(0, 6)
        if edit == 0:
            line = line[:a]
        elif edit == 1:
            line = line[:a] + rng.choice(JUNK) + line[a:]
        elif edit == 2:
            line = line[:a] + rng.choice(JUNK) + line[a + 1 :]
        elif edit == 3:
            line = line[:a] + line[min(a + rng.randint(1, 12), len(line)) :]
        elif edit == 4:
            line = line[:b] + line[a:b][:60] + line[b:]
        elif edit == 5:
            words = line.split(" ")
            rng.shuffle(words)
            line = " ".join(words)
        else:
            line = line[:a] + line[b:] + line[a:b]
    return line


def check_sample(sample: Sample | None) -> None:
    """Raise ValueError where a sample is not sane."""
    if sample is None:
        return
    numbers = [v for v in sample.values.values() if isinstance(v, float)]
    numbers += [
        *sample.rails.values(),
        *(c for c in sample.temperature_c.values() if c is not None),
    ]
    shares = [float(str(v)) for k, v in sample.values.items() if k.endswith("_util")]
    if not all(map(math.isfinite, numbers)) or not all(0 <= share <= 1 for share in shares):
        raise ValueError(f"no sane figure: {sample}")


def try_file(rng: random.Random, lines: list[str]) -> None:
    """Import a whole small file."""
    name = rng.choice(("tegrastats", "jtop_csv", "profile_csv"))
    tz = rng.choice((None, "Europe/Berlin", "+09:00"))
    imported = importer(name).read("\n".join(lines), Clock(tz, rng.choice((None, 0.5))))
    times = [row.t_s for row in imported.rows if row.t_s is not None]
    totals = [row.number("total_w") or 0.0 for row in imported.rows]
    if any(b < a for a, b in pairwise(times)) or any(total < 0 for total in totals):
        raise ValueError(f"time goes back or a total is below 0: {lines}")


def try_one(rng: random.Random) -> tuple[str, str]:
    """One damaged input through one importer; ``(importer, the input)``."""
    kind = rng.random()
    if kind < 0.6:
        line = damage(rng, tegrastats_line(rng))
        for part in split_glued(line):
            check_sample(parse_line(part))
        return "tegrastats", line
    if kind < 0.9:
        line = damage(rng, jtop_line(rng))
        header = (
            JTOP_HEADER if rng.random() < 0.9 else split_row(damage(rng, ",".join(JTOP_HEADER)))
        )
        check_sample(read_row(header, split_row(line), rng.random() < 0.2))
        return "jtop_csv", line
    if kind < 0.98:
        header = PROFILE_HEADER if rng.random() < 0.8 else damage(rng, PROFILE_HEADER)
        line = damage(rng, "\n".join((header, profile_line(rng), profile_line(rng))))
        parse_profiles(line)
        return "profile_csv", line
    make = rng.choice((tegrastats_line, jtop_line, profile_line))
    head = {jtop_line: ",".join(JTOP_HEADER), profile_line: PROFILE_HEADER}.get(make, "")
    lines = [head, *(damage(rng, make(rng)) for _ in range(4))]
    try_file(rng, lines)
    return "whole file", "\n".join(lines)


def main(argv: list[str] | None = None) -> int:
    """Run the fuzzer; 0 where nothing broke."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(argv)
    seen: Counter[str] = Counter()
    begun = time.monotonic()
    for number in range(options.count):
        # A seed an input, so that a crash can be repeated alone.
        rng = random.Random(f"{options.seed}/{number}")
        try:
            seen[try_one(rng)[0]] += 1
        except TraceError:
            seen["refused with a TraceError"] += 1
        except Exception:
            print(f"CRASH at input {number} of seed {options.seed}", file=sys.stderr)
            raise
    spent = time.monotonic() - begun
    print(f"no crash: {options.count} inputs, seed {options.seed}, {options.count / spent:,.0f}/s")
    print(", ".join(f"{name}: {count}" for name, count in seen.most_common()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
