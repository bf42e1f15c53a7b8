"""Kills a governor, its watcher, its job, alone and in pairs: is the board back in time?"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from rlgov.boards import process
from rlgov.boards.leasefile import LeaseFolder
from rlgov.boards.repair import repair
from tests.fakes.tree_board import contents, make_tree

REPO = Path(__file__).parents[2]
LIMIT_S = 2.0
SIGNALS = ("KILL", "TERM", "INT", "HUP", "STOP")
VICTIMS = (
    ("governor",),
    ("watcher",),
    ("job",),
    ("governor", "job"),
    ("watcher", "job"),
    ("governor", "watcher"),
)


@dataclass(frozen=True)
class Kill:
    """One trial.

    Attributes:
        victims: Who is killed, in this order, at once.
        signals: By which signals.
        delay_s: So long after the governor was started.
        seed: Of the governor's settings.
    """

    victims: tuple[str, ...]
    signals: tuple[str, ...]
    delay_s: float
    seed: int

    @property
    def apart(self) -> bool:
        """Governor and watcher down together: left to the next start or ``rlgov restore``."""
        both = {"governor", "watcher"} <= set(self.victims)
        return both and self.signals[self.victims.index("watcher")] in ("KILL", "STOP")


@dataclass(frozen=True)
class Fate:
    """What came of it.

    Attributes:
        kill: The trial.
        back_s: Seconds until every byte and mode was as found; ``None``: not within the limit.
        repaired: Whether a later repair gave the board back.
    """

    kill: Kill
    back_s: float | None
    repaired: bool


def draw(count: int, seed: int) -> list[Kill]:
    """``count`` trials; every set of victims in turn, everything else at random."""
    rng = random.Random(seed)
    return [
        Kill(
            victims := VICTIMS[i % len(VICTIMS)],
            tuple(rng.choice(SIGNALS) for _ in victims),
            # Some land while the lease is being taken.
            rng.uniform(0.1, 1.2),
            rng.randrange(10**6),
        )
        for i in range(count)
    ]


def carry_out(kill: Kill, base: Path, mount: Path | None = None) -> Fate:
    """One trial in an empty folder: on a plain tree, or on a mount of ``rlgov emulate``."""
    root, state, run = mount or make_tree(base / "root"), base / "state", base / "run"
    run.mkdir()
    before = settable(root)
    words = [str(root), str(state), str(run), str(kill.seed), "jetson" if mount else "tree"]
    command = [sys.executable, "-m", "tests.fakes.governed", *words]
    with (base / "log").open("wb") as log:
        governor = subprocess.Popen(command, cwd=REPO, stderr=log, start_new_session=True)
    try:
        time.sleep(kill.delay_s)
        family = _family(governor.pid)
        for victim, name in zip(kill.victims, kill.signals, strict=True):
            _send(family.get(victim), name)
        if not _will_end(kill, family):
            _wait_for_new_watcher(governor.pid, family.get("watcher"))
            _send(governor.pid, "KILL")
        back_s = _time_until(root, before)
        _send(governor.pid, "KILL")
        governor.wait()
        if back_s is not None and not kill.apart:
            again_s = _time_until(root, before)  # a hang's restore must hold after the death too
            back_s = None if again_s is None else max(back_s, again_s)
        _end(family)
        repair(LeaseFolder(state), None)
        return Fate(kill, back_s, settable(root) == before)
    finally:
        _end(family)
        _send(governor.pid, "KILL")
        governor.wait()


def settable(root: Path) -> dict[str, tuple[bytes, int]]:
    """Bytes and mode of every file below ``root`` that can be set; a mount's others move."""
    if not (root / "rlgov").is_dir():
        return contents(root)
    found = {}
    for folder, _, names in os.walk(root):
        for path in (Path(folder) / name for name in names):
            mode = path.stat().st_mode
            # The memory's rate takes a value and moves by itself all the same.
            if mode & 0o222 and path.name != "rate":
                found[str(path)] = (path.read_bytes(), mode)
    return found


def _family(governor: int) -> dict[str, int]:
    family = {"governor": governor}
    for pid in _children(governor):
        try:
            words = Path(f"/proc/{pid}/cmdline").read_bytes()
        except OSError:
            continue
        if b"rlgov.boards.watcher" in words:
            family["watcher"] = pid
        elif b"signal.pause" in words:
            family["job"] = pid
    return family


def _children(pid: int) -> list[int]:
    """Children of every thread: a watcher's successor is started by the heartbeat's."""
    found: list[int] = []
    for file in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            found += [int(word) for word in file.read_text().split()]
    return found


def _will_end(kill: Kill, family: dict[str, int]) -> bool:
    """Whether the signals sent so far must end in a board given back."""
    for victim, name in zip(kill.victims, kill.signals, strict=True):
        if victim == "governor" or (victim == "job" and name != "STOP" and "job" in family):
            return True
    return False


def _wait_for_new_watcher(governor: int, old: int | None) -> None:
    """Until a watcher that is neither dying nor stopped stands beside the governor."""
    deadline = time.monotonic() + 10
    sound = 0
    while time.monotonic() < deadline:
        pid = _family(governor).get("watcher")
        seen = process.look(pid) if pid else None
        sound = sound + 1 if seen is not None and seen[0] in "SR" else 0
        if sound == 10:
            return
        time.sleep(0.02)
    raise AssertionError(f"no watcher took the place of {old}")


def _send(pid: int | None, name: str) -> None:
    if pid is None:
        return
    try:
        os.kill(pid, signal.Signals[f"SIG{name}"])
    except ProcessLookupError:
        return


def _time_until(root: Path, before: dict[str, tuple[bytes, int]]) -> float | None:
    start_s = time.monotonic()
    while time.monotonic() - start_s < LIMIT_S:
        if settable(root) == before and _stays(root, before):
            return time.monotonic() - start_s
        time.sleep(0.01)
    return None


def _stays(root: Path, before: dict[str, tuple[bytes, int]]) -> bool:
    """A governor that still turns knobs passes through the as-found values too."""
    time.sleep(0.05)
    return settable(root) == before


def _end(family: dict[str, int]) -> None:
    for pid in family.values():
        _send(pid, "KILL")
