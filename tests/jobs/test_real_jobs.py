"""Training scripts that know nothing of us: every step is counted, no bit of theirs changes."""

import re
import shutil

import pytest

from tests.jobs.conftest import SCRIPTS, python

pytestmark = pytest.mark.slow


def same_but_seen(follow, alone, command, **env):
    """Run with and without the hook; the followed run, after the checks that all jobs share."""
    plain = alone(command, **env)
    assert plain.returncode == 0, plain.stderr
    seen = follow(command, **env)
    assert seen.out == plain.stdout
    assert seen.end.exit_code == 0
    assert seen.end.reason == "completed"
    return seen


def until_gloo_ends_well(run, said):
    """Run again where gloo aborted at its own end, as it does now and then without us too."""
    for _ in range(5):
        done = run()
        if "terminate called without an active exception" not in said(done):
            break
    return done


def said_steps(seen) -> int:
    return sum(int(count) for count in re.findall(r"steps=(\d+)", seen.out))


@pytest.mark.parametrize(
    "script", ["plain_loop.py", "two_optimizers.py", "gan_pair.py", "lightning_style.py"]
)
def test_plain_loops(follow, alone, script):
    seen = same_but_seen(follow, alone, python(script))
    assert seen.steps == seen.end.steps == said_steps(seen)
    assert seen.err == ""
    assert seen.events[-1].work_source == "counted"


def test_plain_loop_says_tokens_and_work(follow):
    seen = follow(python("plain_loop.py"))
    assert {event.tokens for event in seen.events} == {32}
    assert {event.samples for event in seen.events} == {4}
    work = seen.events[-1].work
    # Forward: one product of 4 x 128 by 128 x 2; backward: twice that, once for each operand.
    assert 2 * 4 * 128 * 2 <= work.flop[0] <= 1.5 * 2 * 4 * 128 * 2
    assert work.flop[1] >= 2 * 2 * 4 * 128 * 2
    assert work.flop_half.sum() == 0
    assert (work.launch > 0).all()
    assert (work.byte > 0).all()


def test_accelerate_with_accumulation(follow, alone):
    seen = same_but_seen(follow, alone, python("accumulation.py"))
    assert seen.steps == said_steps(seen) == 9
    # Ten batches of two an epoch, four to a step: the last step of an epoch has two batches only.
    assert [event.samples for event in seen.events] == [8, 8, 4] * 3


def test_trainer(follow, alone, tmp_path):
    command = python("hf_trainer.py", tmp_path / "out")
    plain = alone(command)
    assert plain.returncode == 0, plain.stderr
    shutil.rmtree(tmp_path / "out")
    seen = follow(command)
    steps = [line for line in plain.stdout.splitlines() if line.startswith(("steps=", "losses"))]
    assert [x for x in seen.out.splitlines() if x.startswith(("steps=", "losses"))] == steps
    assert seen.steps == said_steps(seen) == 10
    assert {event.tokens for event in seen.events} == {8 * 12}
    paused = [event.index for event in seen.events if event.pause_s > 0]
    assert paused == [3, 4, 6, 8, 9]  # after evaluation at 3, 6, 9 and checkpoints at 4, 8


@pytest.mark.parametrize("what", ["model", "step"])
def test_compiled(follow, alone, what):
    backend = "inductor" if what == "model" and shutil.which("gcc") else "aot_eager"
    seen = same_but_seen(follow, alone, python("compiled.py", backend, what))
    assert seen.steps == said_steps(seen)
    assert {event.work_source for event in seen.events[4:]} == {"estimated"}


def test_child_of_a_shell_script(follow, alone):
    command = ["sh", "-c", 'echo before; "$@"; echo after', "sh", *python("spawns.py")]
    seen = same_but_seen(follow, alone, command)
    assert seen.steps == said_steps(seen)


def test_job_with_its_own_sitecustomize(follow, alone):
    env = {"PYTHONPATH": str(SCRIPTS.parent / "site")}
    seen = same_but_seen(follow, alone, python("own_site.py"), **env)
    assert seen.steps == said_steps(seen)
    assert "of the job" in seen.out


def test_loader_stalls_and_evaluation_are_told_apart(follow, alone):
    seen = same_but_seen(follow, alone, python("workers.py"))
    assert seen.steps == said_steps(seen)
    stalled = max(seen.events, key=lambda event: event.data_wait_s if event.index else 0.0)
    assert stalled.index == 5
    assert stalled.pause_s == 0
    paused = [event for event in seen.events if event.pause_s > 0]
    assert [event.index for event in paused] == [7]
    assert paused[0].pause_s >= 0.4
    assert {event.tokens for event in seen.events} == {24}


def test_only_one_rank_is_followed(follow, alone):
    command = python("torchrun.py")
    command[1:1] = ["-m", "torch.distributed.run", "--nproc-per-node=2", "--standalone"]
    command = [part for part in command if part not in ("-W", "ignore")]
    plain = until_gloo_ends_well(lambda: alone(command), lambda done: done.stderr)
    seen = until_gloo_ends_well(lambda: follow(command), lambda done: done.err)
    assert plain.returncode == 0, plain.stderr
    assert seen.out == plain.stdout
    assert seen.end.exit_code == 0, seen.err
    # Not 12. All of so short a job may be read from the other rank first; that the lowest rank
    # takes the lead from then on is held by the listener's own tests.
    assert seen.steps == 6
    assert seen.events[-1].index == 5
    assert {event.rank for event in seen.events} <= {0, 1}


def test_the_lead_passes_on(follow, alone):
    script = python("restarts.sh")[-1]
    command = ["bash", script, *[p for p in python("plain_loop.py") if p not in ("-W", "ignore")]]
    seen = same_but_seen(follow, alone, command)
    assert seen.steps == said_steps(seen) == 36
    assert [event.index for event in seen.events] == list(range(36))


def test_a_loop_that_starts_again_with_a_smaller_batch(follow, alone):
    seen = same_but_seen(follow, alone, python("retries.py"))
    assert seen.steps == said_steps(seen) == 2 + 7
    # The batch that failed was fetched and partly worked on: it is in the step that came of it.
    assert [event.samples for event in seen.events] == [8, 8, 8 + 7, 7, 7, 7, 7, 7, 6]


def test_bits_stay_the_same_where_a_mode_changes_them(follow, alone):
    seen = same_but_seen(follow, alone, python("product.py"))
    assert seen.steps == said_steps(seen)
    assert seen.events[-1].work_source == "estimated"
