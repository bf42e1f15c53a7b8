"""The hook's own rules, in a job with a stand-in for torch."""

import os
import sys
from pathlib import Path

import pytest

from rlgov.jobs import hook
from rlgov.jobs.attach import AttachedJob
from tests.jobs.conftest import follow_to_end, job_env, python

STANDIN = {
    "PYTHONPATH": str(Path(__file__).parents[1] / "fakes" / "torch_standin"),
    "TORCH_STANDIN": "2.8",
}


@pytest.mark.parametrize(
    ("order", "steps"),
    [
        ("AAAA", 4),
        ("ABABAB", 3),  # one batch each
        ("ABCABCABC", 3),
        ("BABABBB" + "B" * 3, 8),  # A drops out
        ("ABBBABBBABBB", 9),  # A every third batch: B takes the lead
        ("AABAABAAB", 6),  # B every second batch
        ("|AB|AB|B|B|AB", 5),  # A every k-th batch, told by the loader
        ("|A|A|A|B|B|B|A", 7),  # phases, told by the loader
        ("||AB||AB", 2),  # two micro-batches a step
        ("A-BBB", 4),  # the leader no longer exists
    ],
)
def test_one_step_a_mini_batch(follow, order, steps):
    seen = follow(python("standin_pairs.py", order), **STANDIN)
    assert seen.err == ""
    assert seen.steps == steps


def test_a_governor_that_does_not_listen_costs_no_step(capfd):
    count = 20_000
    job = AttachedJob(python("standin_fast.py", count), env=job_env(**STANDIN))
    out = ""
    while "done" not in out:  # the job runs to its last line without being read
        out += capfd.readouterr().out
    events, end = follow_to_end(job)
    assert end.steps == sum(event.steps for event in events) == count
    assert len(events) < count
    assert end.exit_code == 0


@pytest.mark.parametrize("path", ["nowhere/s", ".", "x" * 200, "\udcff"])
def test_a_socket_that_is_none_leaves_the_job_alone(alone, tmp_path, path):
    site = tmp_path / "site"
    site.mkdir()
    (site / "sitecustomize.py").write_text(
        f"import sys; sys.path.append({str(Path(hook.__file__).parent)!r})\n"
        "import hook; hook.install()\n"
    )
    env = {**STANDIN, hook.SOCKET_VARIABLE: path}
    env["PYTHONPATH"] = f"{site}{os.pathsep}{STANDIN['PYTHONPATH']}"
    done = alone(python("standin_loop.py"), **env)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("steps=6 ")


BROKEN = """
import sys
hook = sys.modules["_rlgov_hook"]
def fail(*args, **kwargs):
    raise RuntimeError("ours")
setattr(hook, {name!r}, fail)
sys.argv = sys.argv[1:]
import runpy
runpy.run_path(sys.argv[0])
"""


@pytest.mark.parametrize(
    "name",
    ["_connect", "_send", "_ends_mini_batch", "_end_step", "_fetched", "_describe", "_report",
     "_begin_measure", "_end_measure", "_count_sources", "_wrap_step", "_wrap_next", "_wrap_save"],
)  # fmt: skip
def test_any_fault_of_ours_stays_ours(follow, tmp_path, name):
    script = tmp_path / "broken.py"
    script.write_text(BROKEN.format(name=name))
    loop = python("standin_loop.py")[-1]
    seen = follow([sys.executable, str(script), loop], **STANDIN)
    assert seen.err == ""
    assert seen.out.startswith("steps=6 ")
    assert seen.end.exit_code == 0
