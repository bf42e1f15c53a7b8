"""What the governor makes of the messages of one or several processes."""

import json
import selectors
import socket
from collections import deque

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlgov.jobs import hook
from rlgov.jobs.listener import Listener


class Room:
    """A listener, and processes that talk to it over real sockets."""

    def __init__(self, folder):
        self.path = str(folder / "s")
        self.server = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.server.bind(self.path)
        self.server.listen()
        self.server.setblocking(False)
        self.selector = selectors.DefaultSelector()
        self.events = deque()
        self.listener = Listener(self.server, self.selector, self.events, 2.0)
        self.links = []

    def join(self, rank=0, ranks=1):
        link = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        link.connect(self.path)
        self.links.append(link)
        self.note(link, kind="hello", rank=rank, ranks=ranks, torch="2.8.0")
        return link

    def note(self, link, **note):
        link.send(hook.JSON_MAGIC + json.dumps(note).encode())

    def step(self, link, seq, t_s=None, samples=-1, tokens=-1):
        t_s = float(seq) if t_s is None else t_s
        link.send(hook.STEP.pack(hook.STEP_MAGIC, seq, t_s, 0.25, 0.5, samples, tokens))
        self.listener.drain()

    def close(self):
        for link in self.links:
            link.close()
        self.listener.close()
        self.server.close()
        self.selector.close()

    def indices(self):
        return [event.index for event in self.events]


@pytest.fixture
def room(tmp_path):
    room = Room(tmp_path)
    yield room
    room.close()


WORK = {
    "kind": "work",
    "source": "counted",
    "size": 100,
    "flop": [1e9, 2e9, 3e6],
    "flop_half": [4e9, 8e9, 0.0],
    "byte": [1e6, 2e6, 3e6],
    "launch": [10, 20, 5],
    "host_s": [0.001, 0.002, 0.003],
}


def test_a_step_as_it_was_sent(room):
    link = room.join(rank=3)
    room.step(link, 1, 10.0)
    room.step(link, 2, 12.5, samples=4, tokens=100)
    first, second = room.events
    assert (first.index, first.t_s, first.wall_s, first.samples, first.tokens) == (
        0, 10.0, None, None, None,
    )  # fmt: skip
    assert (second.index, second.wall_s, second.steps, second.rank) == (1, 2.5, 1, 3)
    assert (second.samples, second.tokens) == (4, 100)
    assert (second.data_wait_s, second.pause_s) == (0.25, 0.5)
    assert (second.work, second.work_source) == (None, "unknown")
    assert room.listener.torch_version == "2.8.0"


def test_lost_messages_are_covered_by_the_next(room):
    link = room.join()
    room.step(link, 1)
    room.step(link, 5, samples=16)
    event = room.events[-1]
    assert (event.index, event.steps, event.wall_s, event.samples) == (4, 4, 4.0, 16)


def test_work_grows_with_tokens_but_launches_do_not(room):
    link = room.join()
    room.note(link, **WORK)
    room.step(link, 1, tokens=100)
    room.step(link, 2, tokens=250)
    one, more = (event.work for event in room.events)
    assert one.flop.tolist() == [1e9, 2e9, 3e6]
    assert one.host_gcycle.tolist() == [0.002, 0.004, 0.006]
    assert more.flop_half.tolist() == [1e10, 2e10, 0.0]
    assert more.byte.tolist() == [2.5e6, 5e6, 7.5e6]
    assert more.launch.tolist() == one.launch.tolist() == [10, 20, 5]
    assert more.host_gcycle.tolist() == one.host_gcycle.tolist()
    assert [event.work_source for event in room.events] == ["counted", "counted"]


def test_work_is_that_of_one_step_where_an_event_covers_several(room):
    link = room.join()
    room.note(link, **WORK)
    room.step(link, 2, tokens=200)
    assert room.events[0].work.flop.tolist() == [1e9, 2e9, 3e6]
    assert room.events[0].tokens == 200


def test_the_nearest_shape_counts_and_a_count_beats_an_estimate(room):
    link = room.join()
    room.note(link, **WORK)
    room.note(link, **{**WORK, "size": 1000, "launch": [11, 21, 6]})
    room.note(link, **{**WORK, "size": 400, "source": "estimated", "launch": [0, 0, 0]})
    room.step(link, 1, tokens=120)
    room.step(link, 2, tokens=500)
    assert [event.work.launch[0] for event in room.events] == [10, 11]


def test_other_ranks_are_ignored(room):
    zero, one = room.join(rank=0), room.join(rank=1)
    for seq in (1, 2, 3):
        room.step(zero, seq, seq)
        room.step(one, seq, seq + 0.1)
    assert room.indices() == [0, 1, 2]
    assert {event.rank for event in room.events} == {0}


def test_a_late_rank_zero_takes_over_without_counting_twice(room):
    one, zero = room.join(rank=1), room.join(rank=0)
    room.step(one, 1, 1.0)
    for seq in (1, 2, 3):
        room.step(zero, seq, seq + 0.1)
        room.step(one, seq + 1, seq + 1.0)
    assert room.indices() == [0, 1, 2]
    assert [event.rank for event in room.events] == [1, 0, 0]


def test_the_lead_passes_on_when_its_process_ends(room):
    first = room.join()
    room.step(first, 1)
    room.step(first, 2)
    bystander = room.join()
    room.step(bystander, 1, 10.0)
    first.close()
    room.listener.drain()
    room.step(bystander, 2, 11.0)
    assert room.indices() == [0, 1, 2]
    assert room.events[-1].steps == 1


def test_a_step_beside_the_former_leaders_is_not_counted(room):
    first, forked = room.join(), room.join()
    room.step(first, 1, 1.0)
    room.step(first, 2, 3.0)
    first.close()
    room.listener.drain()
    room.step(forked, 1, 2.0)
    assert room.indices() == [0, 1]
    room.step(forked, 2, 4.0)
    assert room.indices() == [0, 1, 2]


def test_ranks_that_end_one_after_another_took_the_same_steps(room):
    zero, one = room.join(rank=0, ranks=2), room.join(rank=1, ranks=2)
    room.step(zero, 1, 1.0)
    room.step(one, 1, 0.9)
    room.step(zero, 2, 2.0)
    zero.close()
    room.listener.drain()
    room.step(one, 2, 2.1)
    assert room.indices() == [0, 1]
    room.step(one, 3, 3.1)
    assert room.indices() == [0, 1, 2]


@pytest.mark.parametrize(
    "message",
    [
        b"x",
        hook.STEP_MAGIC,
        hook.JSON_MAGIC + b"{",
        hook.JSON_MAGIC + b"[1]",
        hook.JSON_MAGIC + b"\xff",
        hook.JSON_MAGIC + json.dumps({**WORK, "flop": [1, 2]}).encode(),
        hook.JSON_MAGIC + json.dumps({**WORK, "byte": [1, -2, 3]}).encode(),
        hook.JSON_MAGIC + json.dumps({**WORK, "launch": "many"}).encode(),
        hook.JSON_MAGIC + b'{"kind": "hello", "rank": "first"}',
    ],
)
def test_nonsense_is_ignored(room, message):
    link = room.join()
    link.send(message)
    room.step(link, 1)
    assert room.indices() == [0]
    assert room.events[0].work is None


@given(st.lists(st.integers(1, 9), min_size=1, max_size=20))
def test_no_step_is_lost_or_counted_twice(tmp_path_factory, jumps):
    room = Room(tmp_path_factory.mktemp("room"))
    try:
        link, seq = room.join(), 0
        for jump in jumps:
            seq += jump
            room.step(link, seq)
        assert [event.steps for event in room.events] == jumps
        assert room.events[-1].index == room.listener.steps - 1 == sum(jumps) - 1
    finally:
        room.close()
