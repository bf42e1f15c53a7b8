"""A job that runs as a process of its own, followed through the hook in its Python."""

from __future__ import annotations

import os
import selectors
import shutil
import signal
import socket
import time
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path

from rlgov.errors import ConfigError, JobError
from rlgov.jobs import launch
from rlgov.jobs.base import Job, JobEnd, StepEvent
from rlgov.jobs.listener import Listener
from rlgov.jobs.measured import HOST_GHZ
from rlgov.jobs.signals import ForwardedSignals
from rlgov.jobs.user import invoking_user

_POLL_S = 0.05
"""How often to look for the job's end on kernels that cannot announce it (before 5.3)."""

_BATCH_S = 0.02
"""Least time between two looks at the socket: a governor that woke at every step of a fast job
would take the processor from it each time."""

_INTERRUPTIONS = frozenset({signal.SIGINT, signal.SIGTERM, signal.SIGHUP})


class AttachedJob(Job):
    """Starts a command and follows the optimizer steps of its leading process.

    The command keeps our terminal and process group, so that Ctrl-C reaches it directly; we then
    wait for it to end, and pass SIGTERM and SIGHUP on to it. Of several processes that train, the
    one of the lowest rank is followed and the others are ignored; when it ends and another one
    trains on, that one is followed. The job is over when the started command ends, even where a
    grandchild lives on. Under sudo it runs as the user who called it.

    Attributes:
        name: The command's last path component.
        pid: Process id of the started command.

    Args:
        command: Program and arguments.
        env: The job's environment (default: ours).
        cwd: The job's working folder (default: ours).
        host_ghz: Clock in GHz at which the job's host seconds are turned into giga-cycles.

    Raises:
        ConfigError: The command is empty.
        JobError: The command cannot be started; ``exit_code`` is a shell's (126 or 127).
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        host_ghz: float = HOST_GHZ,
    ) -> None:
        if not command:
            raise ConfigError("no command to run; write it after --, as in: rlgov run -- python …")
        self.name = Path(command[0]).name
        self._end: JobEnd | None = None
        self._events: deque[StepEvent] = deque()
        self._selector = selectors.DefaultSelector()
        user = invoking_user()
        self._folder = launch.prepare_folder()
        self._server: socket.socket | None = None
        self._signals = ForwardedSignals()
        self._pidfd: int | None = None
        self._look_at_s = 0.0
        try:
            self._server = self._listen()
            if user is not None:
                user.own(self._folder)
            self._listener = Listener(self._server, self._selector, self._events, host_ghz)
            variables = launch.job_environment(self._folder, env, user)
            self._process = launch.start(command, variables, cwd, user)
        except BaseException:
            self._release()
            raise
        self.pid = self._process.pid
        self._signals.install(self.pid)
        self._watch_end()

    @property
    def returncode(self) -> int | None:
        """The job's exit code as a shell reports it; ``None`` while it runs."""
        code = self._process.poll()
        return None if code is None else 128 - code if code < 0 else code

    @property
    def torch_version(self) -> str | None:
        """The version of torch in the followed process, once it has taken a step."""
        return self._listener.torch_version

    def next_event(self, timeout_s: float | None = None) -> StepEvent | JobEnd | None:
        """The next event; ``None`` when ``timeout_s`` passed first."""
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        while True:
            if self._events:
                return self._events.popleft()
            if self._end is not None:
                return self._end
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            self._turn(left)
            if self._idle() and left == 0.0:
                return None

    def close(self) -> None:
        """Stop following the job. The job itself goes on."""
        if self._end is None:
            self._end = JobEnd(self.returncode, "unfollowed", self._listener.steps)
        self._release()

    def wait(self) -> int:
        """Wait for the job's end without following its steps.

        Returns:
            The exit code as a shell reports it.
        """
        code = self._process.wait()
        return 128 - code if code < 0 else code

    def _idle(self) -> bool:
        return not self._events and self._end is None

    def _listen(self) -> socket.socket:
        server = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            server.bind(str(self._folder / "s"))
            server.listen(128)
            server.setblocking(False)
        except OSError as error:
            server.close()
            raise JobError(f"cannot listen for the job's steps: {error}") from error
        return server

    def _watch_end(self) -> None:
        try:
            self._pidfd = os.pidfd_open(self.pid)
        except OSError:
            return
        self._selector.register(self._pidfd, selectors.EVENT_READ, None)

    def _turn(self, timeout_s: float | None) -> None:
        """Wait for something to happen, then take in all that has."""
        if self._pidfd is None:
            timeout_s = _POLL_S if timeout_s is None else min(timeout_s, _POLL_S)
        pause_s = max(0.0, self._look_at_s - time.monotonic())
        time.sleep(pause_s if timeout_s is None else min(pause_s, timeout_s))
        for key, _ in self._selector.select(timeout_s):
            if key.data is not None:
                key.data()
        self._look_at_s = time.monotonic() + _BATCH_S
        code = self.returncode
        if code is not None:
            self._listener.drain()
            self._end = JobEnd(code, self._reason(code), self._listener.steps)
            self._release()

    def _reason(self, code: int) -> str:
        if code == 0:
            return "completed" if self._listener.steps else "no_steps"
        interrupted = self._signals.received or code - 128 in _INTERRUPTIONS
        return "interrupted" if interrupted else "failed"

    def _release(self) -> None:
        self._signals.restore()
        if self._pidfd is not None:
            os.close(self._pidfd)
            self._pidfd = None
        if self._server is not None:
            self._listener.close()
            self._server.close()
            self._server = None
        self._selector.close()
        shutil.rmtree(self._folder, ignore_errors=True)
