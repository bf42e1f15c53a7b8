#!/usr/bin/env python
"""What the hook costs a training job, in microseconds a step.

A job with almost nothing to compute runs under the hook and takes every other step without it, so
that both are timed in the same process at the same moment:

    python scripts/bench_hook.py [steps]
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
from pathlib import Path

from rlgov.jobs.attach import AttachedJob
from rlgov.jobs.base import JobEnd

LIMIT_US = 50.0


def job(steps: int, result: Path) -> None:
    """The job: one weight, batches of 4 x 128 tokens, plain SGD."""
    import torch
    from torch.utils.data import DataLoader, TensorDataset
    from torch.utils.data.dataloader import _BaseDataLoaderIter

    torch.set_num_threads(1)
    weight = torch.nn.Parameter(torch.ones(1))
    optimizer = torch.optim.SGD([weight], lr=1e-3)
    weight.grad = torch.ones(1)
    loader = DataLoader(TensorDataset(torch.zeros(4096, 128, dtype=torch.long)), batch_size=4)
    with_hook = (_BaseDataLoaderIter.__next__, torch.optim.SGD.step)
    without = tuple(function.__wrapped__ for function in with_hook)
    times_us: tuple[list[float], list[float]] = ([], [])
    cpu_us: tuple[list[float], list[float]] = ([], [])
    batches = iter(loader)
    for step in range(2 * steps):
        hooked = step % 2
        _BaseDataLoaderIter.__next__, torch.optim.SGD.step = with_hook if hooked else without
        start, start_cpu = time.perf_counter(), time.thread_time()
        batch = next(batches, None)
        optimizer.step()
        cpu_us[hooked].append((time.thread_time() - start_cpu) * 1e6)
        times_us[hooked].append((time.perf_counter() - start) * 1e6)
        if batch is None:
            batches = iter(loader)
    result.write_text(json.dumps({"wall": times_us, "processor": cpu_us}))


def p99(values: list[float]) -> float:
    return statistics.quantiles(values, n=100)[98]


def report(clock: str, without: list[float], with_hook: list[float]) -> float:
    """Print one clock's figures in us; the hook's median cost."""
    median = statistics.median(with_hook) - statistics.median(without)
    print(f"{clock} time, us a step     median      p99")
    print(f"  without the hook  {statistics.median(without):13.1f} {p99(without):8.1f}")
    print(f"  with the hook     {statistics.median(with_hook):13.1f} {p99(with_hook):8.1f}")
    print(f"  the hook          {median:13.1f} {p99(with_hook) - p99(without):8.1f}")
    return median


def main(steps: int) -> int:
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder) / "times.json"
        run = AttachedJob([sys.executable, __file__, "--job", str(steps), str(result)])
        event, seen = run.next_event(), 0
        while not isinstance(event, JobEnd):
            seen += event.steps if event is not None else 0
            event = run.next_event()
        run.close()
        if event.exit_code != 0:
            print(f"the job ended with {event.exit_code}", file=sys.stderr)
            return 1
        times = json.loads(result.read_text())
    print(f"steps seen {seen} of {steps}; the hook may cost {LIMIT_US:.0f} us a step")
    # The first steps import, connect and count the work; a real job amortises them.
    skip = steps // 10
    medians = [report(clock, *(part[skip:] for part in pair)) for clock, pair in times.items()]
    return int(max(medians) > LIMIT_US)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--job"]:
        job(int(sys.argv[2]), Path(sys.argv[3]))
    else:
        sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 5000))
