"""Follows the job given on its command line and prints how it ended."""

import sys

from rlgov.jobs.attach import AttachedJob
from rlgov.jobs.base import JobEnd

job = AttachedJob(sys.argv[1:])
event = None
while not isinstance(event, JobEnd):
    event = job.next_event()
print("end", event.exit_code, event.reason, event.steps, flush=True)
sys.exit(event.exit_code)
