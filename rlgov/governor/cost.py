"""What the governor itself costs: CPU seconds, resident memory, milliseconds a decision."""

from __future__ import annotations

import resource
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class AgentCost:
    """Measures this process from construction on.

    Attributes:
        decisions_ms: Time of every decision: the observation and what the policy makes of it.
    """

    def __init__(self) -> None:
        self.decisions_ms: list[float] = []
        self._cpu_s = time.process_time()

    @contextmanager
    def decision(self) -> Iterator[None]:
        """Time one decision."""
        began = time.perf_counter()
        yield
        self.decisions_ms.append((time.perf_counter() - began) * 1e3)

    def summary(self, emulation_s: float = 0.0) -> dict[str, float | None]:
        """``cpu_s`` (without ``emulation_s``), ``rss_mb`` and percentiles of a decision."""
        cpu_s = time.process_time() - self._cpu_s - emulation_s
        return {
            "cpu_s": max(cpu_s, 0.0),
            "rss_mb": peak_rss_mb(),
            "decision_ms_p50": percentile(self.decisions_ms, 0.50),
            "decision_ms_p99": percentile(self.decisions_ms, 0.99),
            "emulation_cpu_s": emulation_s,
        }


def peak_rss_mb(proc: Path = Path("/proc/self/status")) -> float:
    """Largest resident memory of this process so far, in MB of 10^6 bytes.

    ``VmHWM`` of this program alone; ``getrusage`` also counts what a parent held before exec.
    """
    try:
        for line in proc.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024 / 1e6
    except OSError:
        pass
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6


def percentile(values: list[float], share: float) -> float | None:
    """Nearest-rank percentile; ``None`` without values."""
    if not values:
        return None
    ordered = sorted(values)
    return ordered[min(int(share * len(ordered)), len(ordered) - 1)]
