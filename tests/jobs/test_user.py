"""``sudo rlgov run -- CMD``: CMD belongs to who typed it."""

from __future__ import annotations

import os
import pwd
import shutil
import tempfile
from pathlib import Path

import pytest

from rlgov.errors import JobError
from rlgov.jobs.attach import AttachedJob
from rlgov.jobs.user import JobUser, invoking_user
from tests.jobs.conftest import SCRIPTS, follow_to_end

STANDIN = SCRIPTS.parents[1] / "fakes" / "torch_standin"
PYTHON = "/usr/bin/python3"

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
with_python = pytest.mark.skipif(
    not os.access(PYTHON, os.X_OK), reason=f"needs {PYTHON}, which every user may run"
)


@pytest.fixture
def nobody(monkeypatch) -> pwd.struct_passwd:
    entry = pwd.getpwnam("nobody")
    monkeypatch.setenv("SUDO_UID", str(entry.pw_uid))
    monkeypatch.setenv("SUDO_GID", str(entry.pw_gid))
    monkeypatch.setenv("SUDO_USER", "nobody")
    monkeypatch.setenv("HOME", "/root")
    monkeypatch.setenv("LOGNAME", "root")
    monkeypatch.setenv("KEPT", "as it was")
    return entry


@pytest.fixture
def public():
    """A folder that everybody may enter, which pytest's own are not."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o777)
    yield folder
    shutil.rmtree(folder)


@as_root
def test_the_job_is_the_invoking_users(nobody, public, capfd):
    words = 'id -u; id -g; id -G; echo $HOME $USER $LOGNAME "$KEPT" "[$SUDO_UID]"; pwd; touch mine'
    job = AttachedJob(["sh", "-c", words], cwd=public)
    _, end = follow_to_end(job)
    uid, gid = nobody.pw_uid, nobody.pw_gid
    groups = " ".join(map(str, os.getgrouplist("nobody", gid)))
    assert end.exit_code == 0
    assert capfd.readouterr().out.splitlines() == [
        str(uid),
        str(gid),
        groups,
        f"{nobody.pw_dir} nobody nobody as it was []",
        str(public),
    ]
    assert (public / "mine").stat().st_uid == uid


@as_root
@with_python
def test_its_steps_are_still_heard(nobody, public, monkeypatch):
    shutil.copytree(STANDIN, public / "standin")
    shutil.copy(SCRIPTS / "standin_loop.py", public)
    for path in (public, *public.rglob("*")):
        path.chmod(0o755)
    monkeypatch.setenv("PYTHONPATH", str(public / "standin"))
    monkeypatch.setenv("TORCH_STANDIN", "2.8")
    job = AttachedJob([PYTHON, "-B", str(public / "standin_loop.py")], cwd=public)
    folder = job._folder
    assert folder.stat().st_mode & 0o777 == 0o700
    events, end = follow_to_end(job)
    assert end.exit_code == 0
    assert sum(event.steps for event in events) == 6
    assert not folder.exists()


@as_root
def test_it_cannot_undo_the_dropping(nobody, public):
    job = AttachedJob(["sh", "-c", "cat /etc/shadow"], cwd=public)
    assert follow_to_end(job)[1].exit_code == 1


@as_root
@pytest.mark.parametrize("uid", ["4294960000", "me", "-3"])
def test_a_user_who_does_not_exist_is_refused(monkeypatch, uid):
    monkeypatch.setenv("SUDO_UID", uid)
    with pytest.raises(JobError, match="would have to run as root"):
        AttachedJob(["true"])


@as_root
@pytest.mark.parametrize("environ", [{}, {"SUDO_UID": ""}, {"SUDO_UID": "0"}])
def test_root_in_its_own_right_stays_root(environ):
    assert invoking_user(environ) is None


def test_who_is_not_root_stays_who_they_are(monkeypatch):
    monkeypatch.setattr("rlgov.jobs.user.os.geteuid", lambda: 1000)
    assert invoking_user({"SUDO_UID": "1001"}) is None


def test_the_environment_keeps_what_is_not_sudos():
    user = JobUser("ann", 4321, 4321, (4321, 27), "/home/ann", "/bin/zsh")
    before = {
        "HOME": "/root",
        "USER": "root",
        "SHELL": "/bin/bash",
        "SUDO_UID": "4321",
        "SUDO_COMMAND": "rlgov",
        "VIRTUAL_ENV": "/home/ann/v",
    }
    assert user.environment(before) == {
        "HOME": "/home/ann",
        "USER": "ann",
        "LOGNAME": "ann",
        "SHELL": "/bin/zsh",
        "VIRTUAL_ENV": "/home/ann/v",
    }
