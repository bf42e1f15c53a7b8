"""A command of the tests' own, and what a command line left behind."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from rlgov.cli.command import Invocation
from rlgov.errors import BoardError

PROBE_YAML = """\
defaults:
  - base
  - board: alpha  # The board.
  - board@second: alpha  # Another board.
  - _self_
  - experiment: null

# Allowed slowdown.
budget: 0.05
# What to save.
objective: energy
# A measured profile.
profile: null
traces: null
policy: ppo
# How many
steps: 100
reward:
  lambda: 1.0
again: ${profile}
seeds: [1, 2]
dry: false
"""


@dataclass(frozen=True)
class Result:
    code: int
    out: str
    err: str


Cli = Callable[..., Result]


class Probe:
    """A command of our own, with groups, typed keys and paths; it records what it was given."""

    def __init__(self, conf: Path) -> None:
        self.conf = conf
        self.seen: list[Invocation] = []
        self.behave: Callable[[Invocation], int] = lambda _: 0

    def run(self, invocation: Invocation) -> int:
        self.seen.append(invocation)
        code = self.behave(invocation)
        invocation.folder.write_summary({"saving": 0.1 * len(self.seen), "inner": {"x": 1}})
        return code

    @property
    def config(self) -> dict[str, object]:
        return self.seen[-1].config


def refuse_board(_: Invocation) -> int:
    raise BoardError("the board says no")
