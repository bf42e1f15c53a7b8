"""Which process, of which boot: what a process id alone does not say."""

from __future__ import annotations

from pathlib import Path

PROC = Path("/proc")

_DEAD = "ZX"
"""States in ``/proc/<pid>/stat`` of a process that runs no more."""

STOPPED = "T"
"""State of a process that SIGSTOP holds."""


def boot_id(proc: Path = PROC) -> str:
    """The kernel's name for this boot; empty where it has none."""
    try:
        return (proc / "sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return ""


def look(pid: int, proc: Path = PROC) -> tuple[str, str] | None:
    """State letter and start time of a process; ``None`` when there is none."""
    try:
        text = (proc / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    # The name, in parentheses, may itself hold spaces and parentheses.
    fields = text.rpartition(")")[2].split()
    return (fields[0], fields[19]) if len(fields) > 19 else None


def start_time(pid: int, proc: Path = PROC) -> str:
    """When a process began, in the kernel's ticks; empty when there is no such process."""
    seen = look(pid, proc)
    return seen[1] if seen else ""


def alive(pid: int, start: str, proc: Path = PROC) -> bool:
    """Whether the process that began at ``start`` still runs: a reused id is another process."""
    seen = look(pid, proc)
    return seen is not None and seen[0] not in _DEAD and seen[1] == start


def name(pid: int, proc: Path = PROC) -> str:
    """The short name of a process; empty when there is none."""
    try:
        return (proc / str(pid) / "comm").read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""
