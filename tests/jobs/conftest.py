import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from rlgov.jobs.attach import AttachedJob
from rlgov.jobs.base import JobEnd, StepEvent

SCRIPTS = Path(__file__).parent / "scripts"
PATIENCE_S = 240.0


@dataclass
class Followed:
    """A job as the governor saw it, and what it printed."""

    events: list[StepEvent]
    end: JobEnd
    out: str
    err: str

    @property
    def steps(self) -> int:
        return sum(event.steps for event in self.events)


def python(script: str, *args: object) -> list[str]:
    return [sys.executable, "-W", "ignore", str(SCRIPTS / script), *map(str, args)]


def job_env(**extra: str) -> dict[str, str]:
    """One thread, so that two runs add up in the same order."""
    return {**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", **extra}


def follow_to_end(job: AttachedJob) -> tuple[list[StepEvent], JobEnd]:
    events = []
    while True:
        event = job.next_event(PATIENCE_S)
        if isinstance(event, JobEnd):
            job.close()
            return events, event
        assert event is not None, "the job said nothing"
        events.append(event)


@pytest.fixture
def follow(capfd):
    """Run a command under the hook: ``follow(command, **environment)``."""

    def run(command: list[str], **extra: str) -> Followed:
        capfd.readouterr()
        job = AttachedJob(command, env=job_env(**extra))
        events, end = follow_to_end(job)
        assert job.wait() == end.exit_code
        out, err = capfd.readouterr()
        return Followed(events, end, out, err)

    return run


@pytest.fixture
def alone():
    """Run a command without us: ``alone(command, **environment)``."""

    def run(command: list[str], **extra: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command, env=job_env(**extra), capture_output=True, text=True, timeout=PATIENCE_S
        )

    return run
