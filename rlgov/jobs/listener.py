"""The governor's end of the hook's socket: many processes may send, one is followed."""

from __future__ import annotations

import json
import selectors
import socket
from collections import deque
from dataclasses import dataclass

from rlgov.jobs import hook
from rlgov.jobs.base import StepEvent
from rlgov.jobs.measured import WorkBook

_LONGEST_MESSAGE = 1 << 16


@dataclass
class _Sender:
    """One connected process of the job.

    Attributes:
        link: Its socket.
        work: What it has counted so far.
        rank: Its rank (0 where it has none).
        ranks: How many processes step together with it (1 where it is alone).
        torch_version: Its torch, where it said so.
        seen: Its own count of steps at its last message.
        skip: Steps of its count that are not counted again, since an earlier leader took them.
        first_t_s: Time of its first step.
        last_t_s: Time of its last step.
    """

    link: socket.socket
    work: WorkBook
    rank: int = 0
    ranks: int = 1
    torch_version: str = ""
    seen: int = 0
    skip: int = 0
    first_t_s: float | None = None
    last_t_s: float | None = None


class Listener:
    """Accepts the job's processes and turns the leader's messages into events.

    Args:
        server: Listening socket (SOCK_SEQPACKET, not blocking); stays the caller's.
        selector: Where to be called from: the data of each key is a function without arguments.
        events: Where events go.
        host_ghz: See `WorkBook`.

    Attributes:
        steps: Steps counted so far.
        torch_version: The version of torch in the process followed last.
    """

    def __init__(
        self,
        server: socket.socket,
        selector: selectors.BaseSelector,
        events: deque[StepEvent],
        host_ghz: float,
    ) -> None:
        self.steps = 0
        self.torch_version: str | None = None
        self._server = server
        self._selector = selector
        self._events = events
        self._host_ghz = host_ghz
        self._senders: list[_Sender] = []
        self._lead: _Sender | None = None
        self._former: _Sender | None = None
        selector.register(server, selectors.EVENT_READ, self._accept)

    def drain(self) -> None:
        """Take in all that has arrived, without waiting."""
        self._accept()
        for sender in list(self._senders):
            self._receive(sender)

    def close(self) -> None:
        """Close every connection (the hooks notice at their next step)."""
        for sender in list(self._senders):
            self._drop(sender)

    def _accept(self) -> None:
        while True:
            try:
                link, _ = self._server.accept()
            except (BlockingIOError, ConnectionError):
                return
            link.setblocking(False)
            sender = _Sender(link, WorkBook(self._host_ghz))
            self._senders.append(sender)
            self._selector.register(
                link, selectors.EVENT_READ, lambda sender=sender: self._receive(sender)
            )

    def _receive(self, sender: _Sender) -> None:
        while sender in self._senders:
            try:
                message = sender.link.recv(_LONGEST_MESSAGE)
            except BlockingIOError:
                return
            except OSError:
                message = b""
            if not message:
                self._drop(sender)
            elif message.startswith(hook.STEP_MAGIC) and len(message) == hook.STEP.size:
                self._step(sender, message)
            elif message.startswith(hook.JSON_MAGIC):
                self._note(sender, message[len(hook.JSON_MAGIC) :])

    def _drop(self, sender: _Sender) -> None:
        self._senders.remove(sender)
        self._selector.unregister(sender.link)
        sender.link.close()
        if self._lead is sender:
            self._lead, self._former = None, sender

    def _note(self, sender: _Sender, text: bytes) -> None:
        try:
            note = json.loads(text)
        except ValueError:
            return
        if not isinstance(note, dict):
            return
        if note.get("kind") == "hello":
            sender.rank = _count(note.get("rank"), 0)
            sender.ranks = _count(note.get("ranks"), 1)
            sender.torch_version = str(note.get("torch", ""))
        elif note.get("kind") == "work":
            sender.work.add(note)

    def _step(self, sender: _Sender, message: bytes) -> None:
        _, seq, t_s, wait_s, pause_s, samples, tokens = hook.STEP.unpack(message)
        before, sender.seen = sender.seen, seq
        if sender.first_t_s is None:
            sender.first_t_s = t_s
        if not self._leads(sender, before, t_s):
            sender.last_t_s = t_s
            return
        new = seq - max(before, sender.skip)
        wall_s = None if sender.last_t_s is None else t_s - sender.last_t_s
        sender.last_t_s = t_s
        if new <= 0:
            return
        self.steps += new
        self._events.append(self._event(sender, new, t_s, wall_s, wait_s, pause_s, samples, tokens))

    def _leads(self, sender: _Sender, before: int, t_s: float) -> bool:
        """Whether this process is followed, from its count ``before`` this message on."""
        if self._lead is sender:
            return True
        if self._lead is None:
            if _ended_after(self._former, t_s):
                return False  # a step beside those of the former leader, read late
            sender.skip = max(before, self._shared(sender))
        elif sender.rank < self._lead.rank:
            # The same steps as the other ranks', which we have counted up to here.
            sender.skip = self.steps
        else:
            return False
        self._lead = sender
        self.torch_version = sender.torch_version or None
        return True

    def _shared(self, sender: _Sender) -> int:
        """Steps of its count that the former leader took together with it."""
        together = sender.ranks > 1 and _ended_after(self._former, sender.first_t_s)
        return self._former.seen if together and self._former is not None else 0

    def _event(
        self,
        sender: _Sender,
        new: int,
        t_s: float,
        wall_s: float | None,
        wait_s: float,
        pause_s: float,
        samples: int,
        tokens: int,
    ) -> StepEvent:
        known_samples = samples if samples >= 0 else None
        known_tokens = tokens if tokens >= 0 else None
        work, source = sender.work.work(
            None if known_samples is None else round(known_samples / new),
            None if known_tokens is None else round(known_tokens / new),
        )
        return StepEvent(
            index=self.steps - 1,
            t_s=t_s,
            wall_s=wall_s,
            work=work,
            work_source=source,
            samples=known_samples,
            tokens=known_tokens,
            data_wait_s=wait_s,
            pause_s=pause_s,
            rank=sender.rank,
            steps=new,
        )


def _count(value: object, missing: int) -> int:
    return value if isinstance(value, int) else missing


def _ended_after(former: _Sender | None, t_s: float | None) -> bool:
    if former is None or former.last_t_s is None or t_s is None:
        return False
    return t_s <= former.last_t_s
