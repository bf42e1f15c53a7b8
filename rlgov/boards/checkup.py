"""What works of a board, as lines that say what each failing one needs. Changes nothing."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from rlgov.boards import process
from rlgov.boards.base import KNOB_NAMES, Board, Knob, Reading
from rlgov.boards.foreign import suspects
from rlgov.boards.leasefile import LeaseFolder, is_stale
from rlgov.errors import BoardError, LeaseError

Status = Literal["ok", "limited", "failing"]

READY, LIMITED, UNUSABLE = 0, 1, 2
"""Exit codes of `Checkup.code`."""


@dataclass(frozen=True)
class Check:
    """One line.

    Attributes:
        topic: What it is about, such as ``knob gpu``.
        status: ``ok``; ``limited``: a run works without it; ``failing``: a run does not.
        text: What was seen.
        needs: What to do about it; empty when it is ok.
        values: The same in numbers, for programs.
    """

    topic: str
    status: Status
    text: str
    needs: str = ""
    values: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Checkup:
    """Every line, in order.

    Attributes:
        board: Name of the board; ``None`` where there is none.
        checks: The lines.
    """

    board: str | None
    checks: tuple[Check, ...]

    @property
    def code(self) -> int:
        """0 ready, 1 usable with limits, 2 not usable."""
        statuses = {check.status for check in self.checks}
        return UNUSABLE if "failing" in statuses else LIMITED if "limited" in statuses else READY

    def as_json(self) -> dict[str, Any]:
        """As plain JSON values."""
        verdict = ("ready", "limited", "not usable")[self.code]
        return {
            "board": self.board,
            "verdict": verdict,
            "exit_code": self.code,
            "checks": [asdict(check) for check in self.checks],
        }


def examine(board: Board, pause_s: float = 0.3) -> Iterator[Check]:
    """The lines about a board.

    Args:
        board: The board.
        pause_s: Between two looks, since loads and energy counters are read as differences.
    """
    facts = getattr(board, "facts", {})
    about = ", ".join(f"{key} {value}" for key, value in facts.items())
    emulated = "emulated: a model, no clock changes, nothing is metered"
    text = emulated if board.emulated else about
    yield Check("board", "ok", f"{board.name} ({text})" if text else board.name, values=dict(facts))
    try:
        board.read()
        time.sleep(0.0 if board.emulated else pause_s)
        reading = board.read()
    except BoardError as error:
        yield Check("sensors", "failing", str(error), "see the lines of each sensor below")
        reading = Reading(board.now_s())
    yield from _knobs(board, reading)
    yield from _power(board, reading)
    yield from _sensors(reading)


def _knobs(board: Board, reading: Reading) -> Iterator[Check]:
    offered = {knob.name: knob for knob in board.knobs}
    refused: Mapping[str, str] = getattr(board, "refused", {})
    for name in KNOB_NAMES:
        if name in offered:
            yield _knob(offered[name], reading)
        elif name in refused:
            yield Check(f"knob {name}", "limited", "cannot be set", refused[name])
        else:
            yield Check(f"knob {name}", "ok", "this kind of board has none")
    if not offered:
        needs = "one knob that can be set; without one a run only watches (policy=as_found)"
        yield Check("knobs", "limited", "none can be set", needs)


def _knob(knob: Knob, reading: Reading) -> Check:
    levels = knob.levels_mhz
    now = reading.clocks_mhz.get(knob.name)
    present = "powered down" if now == 0 else "unknown" if now is None else f"{now:g} MHz"
    text = f"{len(levels)} levels, {levels[0]:g} to {levels[-1]:g} MHz, {knob.mode}; now {present}"
    if knob.ceiling_mhz is not None and knob.ceiling_mhz < levels[-1] * 0.999:
        text += f"; the power mode allows {knob.ceiling_mhz:g} MHz, which is the ceiling"
    values = {
        "levels_mhz": list(levels),
        "mode": knob.mode,
        "ceiling_mhz": knob.ceiling_mhz,
        "now_mhz": now,
    }
    return Check(f"knob {knob.name}", "ok", text, values=values)


def _power(board: Board, reading: Reading) -> Iterator[Check]:
    rails = ", ".join(f"{name} {watts:.2f} W" for name, watts in reading.power_w.items())
    values = {"power_w": dict(reading.power_w), "total_w": reading.total_w}
    if reading.total_w is None:
        why = [f"{k}: {v}" for k, v in reading.missing.items() if k.startswith(("power", "total"))]
        needs = "; ".join(why) or "a power rail that can be read: energy cannot be metered"
        yield Check("power", "failing", rails or "no total", needs, values)
        return
    yield Check("power", "ok", f"{reading.total_w:.2f} W in total; {rails}", values=values)
    yield Check("total rule", "ok", board.total_rule)


def _sensors(reading: Reading) -> Iterator[Check]:
    loads = {name: value for name, value in reading.utilisation.items() if value is not None}
    text = ", ".join(f"{name} {value:.0%}" for name, value in loads.items())
    yield Check(
        "load",
        "ok" if loads else "limited",
        text or "no unit's load can be read",
        "" if loads else "see below",
        {"utilisation": loads},
    )
    zones = {name: value for name, value in reading.temperature_c.items() if value is not None}
    text = ", ".join(f"{name} {value:g} C" for name, value in zones.items())
    needs = "" if zones else "a thermal zone: without one the guard cannot keep the board cool"
    yield Check(
        "temperature", "ok" if zones else "limited", text or "none", needs, {"temperature_c": zones}
    )
    for name, why in reading.missing.items():
        if not name.startswith(("power", "total")):
            # A powered-down zone and the like: said, but no reason to call the board limited.
            yield Check(f"sensor {name}", "ok", f"no value: {why}")
    for name, count in reading.throttle.items():
        yield Check(f"throttle {name}", "ok", f"{count:g}")


def examine_lease(folder: LeaseFolder) -> Iterator[Check]:
    """The lines about what is or was held."""
    path = folder.path
    parent = next(p for p in (path, *path.parents) if p.exists())
    if not os.access(parent, os.W_OK | os.X_OK):
        yield Check(
            "lease folder",
            "limited",
            f"{path} cannot be written",
            "start with sudo, or give another: RLGOV_STATE_DIR=DIR",
        )
    else:
        yield Check("lease folder", "ok", str(path))
    try:
        record = folder.record()
    except LeaseError as error:
        yield Check("lease", "failing", "damaged", str(error))
        return
    if record is None or record["returned"]:
        yield Check("lease", "ok", "the board is as it was found")
    elif is_stale(record):
        yield Check("lease", "ok", "of an earlier boot; the next run puts it aside")
    elif process.alive(record["pid"], record["start"]):
        yield Check(
            "lease",
            "limited",
            f"a governor holds the board: process {record['pid']}",
            "wait for it, or end it: the board is given back, its job goes on",
        )
    else:
        yield Check("lease", "limited", "a run left the board changed", "rlgov restore")


def examine_machine(root: Path = Path("/"), proc: Path = process.PROC) -> Iterator[Check]:
    """The lines about the machine around the board."""
    yield _rights()
    yield from _container(root)
    found = suspects(proc)
    if not found:
        yield Check("conflicts", "ok", "nobody else is seen to write to the clocks")
    for suspect in found:
        text = f"{suspect.name} runs (process {suspect.pid}) and may write to the clocks"
        yield Check("conflicts", "limited", text, suspect.advice)
    yield from _memory(proc)
    yield from _supply(root)
    if os.environ.get("SSH_CONNECTION") and not (os.environ.get("TMUX") or os.environ.get("STY")):
        yield Check(
            "session",
            "ok",
            "over SSH and not in tmux: when the connection drops, the "
            "board is given back but the job may end; start long runs in tmux",
        )


def _rights() -> Check:
    if os.geteuid() == 0:
        text = "root"
        if os.environ.get("SUDO_USER"):
            text += f"; the job runs as {os.environ['SUDO_USER']}"
        return Check("rights", "ok", text)
    return Check(
        "rights",
        "limited",
        f"user {os.geteuid()}, not root",
        'sudo env "PATH=$PATH" rlgov run -- CMD (CMD still runs as you)',
    )


def _container(root: Path) -> Iterator[Check]:
    inside = [n for n in ("/.dockerenv", "/run/.containerenv") if Path(n).exists()]
    if inside:
        yield Check("container", "ok", f"inside one ({inside[0]}); see docs/day-one.md for mounts")
    try:
        read_only = bool(os.statvfs(root / "sys").f_flag & os.ST_RDONLY)
    except OSError:
        yield Check("sys", "limited", f"{root / 'sys'} is not there", "mount it: -v /sys:/sys")
        return
    if read_only:
        yield Check(
            "sys",
            "limited",
            "read-only: the board can be watched, not set",
            "docker run --privileged, or -v /sys:/sys",
        )


_LEAST_KIB = 300_000
"""The governor takes 60 MB; a job that fills the rest is what the OOM killer looks for."""


def _memory(proc: Path) -> Iterator[Check]:
    try:
        lines = (proc / "meminfo").read_text(encoding="ascii").splitlines()
    except OSError:
        return
    free = next((int(x.split()[1]) for x in lines if x.startswith("MemAvailable:")), None)
    if free is None:
        return
    text = f"{free / 1e6:.1f} GB available"
    low = free < _LEAST_KIB
    needs = (
        "close programs (a desktop takes 1 GB: sudo systemctl isolate multi-user)" if low else ""
    )
    yield Check("memory", "limited" if low else "ok", text, needs)


def _supply(root: Path) -> Iterator[Check]:
    for folder in sorted((root / "sys/class/power_supply").glob("*")):
        try:
            kind = (folder / "type").read_text().strip()
            state = (folder / "status").read_text().strip()
        except OSError:
            continue
        if kind == "Battery" and state == "Discharging":
            yield Check(
                "supply",
                "limited",
                f"on battery ({folder.name})",
                "plug it in: on battery the kernel may change clocks by itself",
            )
