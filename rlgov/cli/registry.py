"""The one list of commands; a module is imported when its command, or the help, is asked for."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from importlib import import_module

from rlgov.cli.command import Command
from rlgov.errors import ConfigError

COMMANDS: dict[str, str] = {
    "run": "rlgov.cli.run:COMMAND",
    "train": "rlgov.cli.train:COMMAND",
    "evaluate": "rlgov.cli.evaluate:COMMAND",
    "boards": "rlgov.cli.boards:COMMAND",
    "doctor": "rlgov.cli.doctor:COMMAND",
    "restore": "rlgov.cli.restore:COMMAND",
    "emulate": "rlgov.cli.emulate:COMMAND",
    "fit": "rlgov.cli.fit:COMMAND",
    "traces import": "rlgov.cli.traces:IMPORT",
    "traces check": "rlgov.cli.traces:CHECK",
    "traces show": "rlgov.cli.traces:SHOW",
}
"""Command name (one or two words) -> where its `Command` is, in the order of ``rlgov --help``."""


def load(name: str) -> Command:
    """The command called ``name``, which must be in `COMMANDS`."""
    module, _, attribute = COMMANDS[name].partition(":")
    command: Command = getattr(import_module(module), attribute)
    return command


def split_command(words: Sequence[str]) -> tuple[str, list[str]]:
    """The command that ``words`` begin with, and the words after it.

    A first word that only opens two-word commands is returned as it is (for its help).

    Raises:
        ConfigError: No such command; the closest is named.
    """
    for count in (2, 1):
        name = " ".join(words[:count])
        if name in COMMANDS:
            return name, list(words[count:])
    first = words[0]
    below = subcommands(first)
    if below and (len(words) == 1 or words[1] in ("-h", "--help")):
        return first, list(words[1:])
    if below:
        typed, known = " ".join(words[:2]), below
    else:
        typed, known = first, list(COMMANDS)
    close = difflib.get_close_matches(typed, known, n=1)
    hint = f"did you mean {close[0]!r}? " if close else ""
    raise ConfigError(f"there is no command {typed!r}; {hint}commands: {', '.join(known)}")


def subcommands(first: str) -> list[str]:
    """The two-word commands that begin with ``first``."""
    return [name for name in COMMANDS if name.startswith(f"{first} ")]
