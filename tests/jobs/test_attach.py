"""How a job ends, and who hears which signal."""

import fcntl
import os
import pty
import signal
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from rlgov.errors import ConfigError, JobError
from rlgov.jobs import hook
from rlgov.jobs.attach import AttachedJob
from rlgov.jobs.base import JobEnd
from tests.conformance.job_contract import JobContract
from tests.jobs.conftest import SCRIPTS, follow_to_end, job_env, python

STANDIN = Path(__file__).parents[1] / "fakes" / "torch_standin"


def standin_env() -> dict[str, str]:
    return job_env(PYTHONPATH=str(STANDIN), TORCH_STANDIN="2.8")


class TestAttachedJob(JobContract):
    @pytest.fixture
    def job(self):
        job = AttachedJob(python("standin_loop.py"), env=standin_env())
        yield job
        job.close()
        job.wait()


@pytest.mark.parametrize(
    ("how", "code", "reason", "steps"),
    [
        ("complete", 0, "completed", 7),
        ("no_steps", 0, "no_steps", 0),
        ("raise", 1, "failed", 7),
        ("exit", 42, "failed", 7),
        ("kill", 137, "failed", 7),
        ("interrupt", 130, "interrupted", 7),
    ],
)
@pytest.mark.slow
def test_ends_as_the_job_does(follow, how, code, reason, steps):
    seen = follow(python("endings.py", how))
    assert seen.end == JobEnd(code, reason, steps)
    assert seen.steps == steps
    if how == "raise":
        assert seen.err.rstrip().endswith("ValueError: out of luck")


@pytest.mark.parametrize(("program", "code"), [("no-such-program", 127), ("./plain.txt", 126)])
def test_a_command_that_cannot_start(tmp_path, monkeypatch, program, code):
    monkeypatch.chdir(tmp_path)
    Path("plain.txt").write_text("no program")
    with pytest.raises(JobError, match=program) as caught:
        AttachedJob([program])
    assert caught.value.exit_code == code


def test_a_folder_that_does_not_exist(tmp_path):
    with pytest.raises(JobError, match="working folder"):
        AttachedJob([sys.executable], cwd=tmp_path / "nowhere")


def test_an_empty_command():
    with pytest.raises(ConfigError, match="no command"):
        AttachedJob([])


def test_nothing_is_left_behind(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    before = {n: signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    job = AttachedJob([sys.executable, "-c", "pass"])
    assert [p.stat().st_mode & 0o777 for p in tmp_path.iterdir()] == [0o700]
    _, end = follow_to_end(job)
    assert end == JobEnd(0, "no_steps", 0)
    assert list(tmp_path.iterdir()) == []
    assert {n: signal.getsignal(n) for n in before} == before


def test_a_long_temporary_folder_still_fits_a_socket(tmp_path, monkeypatch):
    deep = tmp_path / ("x" * 120)
    deep.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(deep))
    _, end = follow_to_end(AttachedJob(python("standin_loop.py"), env=standin_env()))
    assert end.steps == 6


def test_close_lets_the_job_go_on(tmp_path):
    marker = tmp_path / "marker"
    program = f"import sys; sys.stdin.read(); open({str(marker)!r}, 'w').close()"
    read, write = os.pipe()
    saved = os.dup(0)
    os.dup2(read, 0)
    try:
        job = AttachedJob([sys.executable, "-c", program])
    finally:
        os.dup2(saved, 0)
        os.close(saved)
        os.close(read)
    assert job.next_event(0.0) is None
    assert job.returncode is None
    job.close()
    assert not marker.exists()
    os.close(write)
    assert job.wait() == 0
    assert marker.exists()


def test_a_job_that_loses_its_governor_goes_on(tmp_path):
    program = (SCRIPTS / "standin_loop.py").read_text()
    waiting = program.replace("child = os.fork()", "sys.stdin.read()\nchild = os.fork()")
    script = tmp_path / "waits.py"
    script.write_text(waiting)
    read, write = os.pipe()
    saved = os.dup(0)
    os.dup2(read, 0)
    try:
        job = AttachedJob([sys.executable, str(script)], env=standin_env())
    finally:
        os.dup2(saved, 0)
        os.close(saved)
        os.close(read)
    assert job.next_event(60.0).index == 0
    job.close()
    os.close(write)
    assert job.wait() == 0


def launcher(how: str) -> list[str]:
    return [sys.executable, str(SCRIPTS / "launcher.py"), *python("endings.py", how)]


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_to_the_governor_reaches_the_job(number):
    process = subprocess.Popen(
        launcher("wait"), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        env=job_env(), start_new_session=True,
    )  # fmt: skip
    with process:
        assert process.stdout.readline() == "ready\n"
        process.send_signal(number)
        assert process.stdout.read() == f"end {128 + number} interrupted 7\n"
    assert process.returncode == 128 + number


@pytest.mark.slow
def test_ctrl_c_interrupts_the_job_and_the_governor_sees_it_end():
    ours, theirs = pty.openpty()

    def take_terminal() -> None:
        os.setsid()
        fcntl.ioctl(theirs, termios.TIOCSCTTY, 0)

    process = subprocess.Popen(
        launcher("wait"), stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env=job_env(), preexec_fn=take_terminal,  # noqa: PLW1509 - one thread here
    )  # fmt: skip
    os.close(theirs)
    with process:
        assert process.stdout.readline() == "ready\n"
        os.write(ours, b"\x03")
        assert process.stdout.read() == "end 130 interrupted 7\n"
        assert process.stderr.read().count("KeyboardInterrupt") == 1
    os.close(ours)
    assert process.returncode == 130


def test_the_job_gets_only_what_the_hook_needs(follow):
    program = (
        "import os, sys; "
        "print([e for e in sys.path if 'rlgov-' in e], 'rlgov' in sys.modules, "
        "'sitecustomize' in sys.modules)"
    )
    seen = follow([sys.executable, "-S", "-c", "pass"])
    assert seen.end.reason == "no_steps"
    seen = follow([sys.executable, "-c", program])
    assert seen.out == "[] False False\n"
    assert hook._state is None
