"""Whose the job is: under sudo the invoking user's, never root's."""

from __future__ import annotations

import os
import pwd
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from rlgov.errors import JobError

_SUDO = ("SUDO_UID", "SUDO_GID", "SUDO_USER", "SUDO_COMMAND")

_OWN_VARIABLES = ("HOME", "USER", "LOGNAME", "SHELL", "MAIL")
"""What sudo sets to root's, and the job gets back as its own."""


@dataclass(frozen=True)
class JobUser:
    """A user to run the job as.

    Attributes:
        name: Login name.
        uid: User id.
        gid: Primary group.
        groups: Every group, the primary one too.
        home: Home folder.
        shell: Login shell.
    """

    name: str
    uid: int
    gid: int
    groups: tuple[int, ...]
    home: str
    shell: str

    def environment(self, variables: Mapping[str, str]) -> dict[str, str]:
        """The job's environment: as if sudo had not been there, as far as that can be known."""
        kept = {k: v for k, v in variables.items() if k not in _SUDO}
        own = (self.home, self.name, self.name, self.shell, f"/var/mail/{self.name}")
        kept.update({k: v for k, v in zip(_OWN_VARIABLES, own, strict=True) if k in variables})
        kept.update(HOME=self.home, USER=self.name, LOGNAME=self.name)
        runtime = Path(f"/run/user/{self.uid}")
        if runtime.is_dir():
            kept["XDG_RUNTIME_DIR"] = str(runtime)
        return kept

    def own(self, folder: Path) -> None:
        """Give a private folder and what is in it to the user, for good.

        Raises:
            OSError: It cannot be given.
        """
        # The folder last: once it is theirs, what is in it may be swapped for something of root's.
        for path in (*folder.rglob("*"), folder):
            os.chown(path, self.uid, self.gid, follow_symlinks=False)


def invoking_user(environ: Mapping[str, str] = os.environ) -> JobUser | None:
    """Who called ``sudo rlgov``; ``None`` when we are not root, or root in our own right.

    Raises:
        JobError: ``SUDO_UID`` names nobody: starting the job as root instead would be worse.
    """
    text = environ.get("SUDO_UID", "")
    if os.geteuid() != 0 or not text:
        return None
    try:
        entry = pwd.getpwuid(int(text))
    except (ValueError, KeyError) as error:
        raise JobError(
            f"SUDO_UID={text} is no user of this machine, so the job would have to run as root; "
            "unset SUDO_UID to allow that"
        ) from error
    if entry.pw_uid == 0:
        return None
    groups = tuple(os.getgrouplist(entry.pw_name, entry.pw_gid))
    return JobUser(entry.pw_name, entry.pw_uid, entry.pw_gid, groups, entry.pw_dir, entry.pw_shell)
