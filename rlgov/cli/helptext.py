"""``--help``: generated from the commands and from the comments in their primary configs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import rlgov
from rlgov.cli.command import Command
from rlgov.cli.confdir import ConfPath
from rlgov.cli.registry import COMMANDS, load, subcommands
from rlgov.cli.text import definitions, paragraph

_KEY = re.compile(
    r"(?P<indent> *)(?P<key>[A-Za-z_]\w*):\s*(?P<value>[^#\n]*?)\s*(?:#\s*(?P<note>.*))?"
)
_GROUP = re.compile(
    r"\s*-\s+(?:optional\s+)?(?P<key>[\w@]+):\s*(?P<value>[^#\n]*?)\s*(?:#\s*(?P<note>.*))?"
)

_TITLE = (
    "rlgov: a learned governor that saves energy while language models are fine-tuned "
    "on embedded GPUs"
)

_EXIT_CODES = (
    ("0", "done"),
    ("2", "a key, value or file that cannot be used; nothing was touched"),
    ("3", "the board is missing, unreadable or refuses a write"),
    ("4", "the board is held by another governor, or could not be given back"),
    ("5", "a policy bundle is damaged or does not fit"),
    ("6", "a trace or profile cannot be read or written"),
    ("125", "any other failure of rlgov's own"),
    ("130", "interrupted (Ctrl-C)"),
    ("143", "terminated (SIGTERM)"),
)

_OPTIONS = (
    ("-m, --multirun", "one run for each value of a comma list: budget=0.02,0.05"),
    ("--config-dir DIR", "a folder with your own YAML files; it is searched first"),
    ("--print-config", "print the resolved configuration and stop"),
    ("-h, --help", "this text"),
)


def overview() -> str:
    """The text of ``rlgov --help``."""
    commands = [load(name) for name in COMMANDS]
    return "\n".join(
        [
            _TITLE,
            "",
            "usage: rlgov COMMAND [key=value ...] [options] [-- your training command]",
            "",
            "commands:",
            definitions((command.name, command.summary) for command in commands),
            "",
            "options:",
            definitions([*_OPTIONS, ("--version", "the version")]),
            "",
            "exit codes:",
            definitions(_EXIT_CODES),
            "",
            "rlgov COMMAND --help explains a command and its keys.",
        ]
    )


def family_help(first: str) -> str:
    """The help of a word that only opens two-word commands."""
    commands = [load(name) for name in subcommands(first)]
    return "\n".join(
        [
            f"usage: rlgov {first} SUBCOMMAND [key=value ...]",
            "",
            "subcommands:",
            definitions((command.name, command.summary) for command in commands),
        ]
    )


def command_help(command: Command, overlays: Sequence[Path] = ()) -> str:
    """The text of ``rlgov COMMAND --help``."""
    conf = ConfPath(overlays)
    parts = [f"usage: {_usage(command)}", "", paragraph(command.help), "", "keys:"]
    parts.append(definitions(_keys(command, conf)))
    flags = [(option, f"short for {key}") for option, key in command.flags.items()]
    parts += ["", "options:", definitions([*flags, *_OPTIONS]), "", "examples:"]
    for line, meaning in command.examples:
        parts += [paragraph(f"# {meaning}", "  "), f"  {line}"]
    parts += ["", "exit codes:", definitions([*command.exit_codes, *_EXIT_CODES])]
    return "\n".join(parts)


def version() -> str:
    """The text of ``rlgov --version``."""
    return f"rlgov {rlgov.__version__}"


def _usage(command: Command) -> str:
    words = ["rlgov", command.name]
    if command.files:
        words.append(command.files)
    words.append("[key=value ...] [options]")
    if command.job_rule != "none":
        job = "-- your training command"
        words.append(job if command.job_rule == "required" else f"[{job}]")
    return " ".join(words)


def _keys(command: Command, conf: ConfPath) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for name in (command.config, "base"):
        path = conf.find(name)
        if path is not None:
            found += _keys_of(path, command, conf)
    return found


def _keys_of(path: Path, command: Command, conf: ConfPath) -> list[tuple[str, str]]:
    """Keys and groups of a YAML file with the comments above or beside them."""
    found: list[tuple[str, str]] = []
    comment: list[str] = []
    parents: list[tuple[int, str]] = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.lstrip().startswith("#"):
            comment.append(line.lstrip("# ").rstrip())
            continue
        match = _KEY.fullmatch(line) or _GROUP.fullmatch(line)
        if match and match["key"] not in ("defaults", "_target_"):
            meaning = " ".join([*comment, match["note"] or ""]).strip()
            key = _dotted(match, parents)
            if not meaning and found and found[-1][1] and _siblings(key, found[-1][0]):
                meaning = "As above."  # one comment may stand over several keys in a row
            found.append(_entry(key, match["value"], meaning, command, conf))
        comment = []
    return found


def _dotted(match: re.Match[str], parents: list[tuple[int, str]]) -> str:
    """The key with those that it is nested in, which ``parents`` keeps with their indents."""
    if "indent" not in match.groupdict():  # a line of the defaults list
        return match["key"]
    indent = len(match["indent"])
    while parents and parents[-1][0] >= indent:
        parents.pop()
    parents.append((indent, match["key"]))
    return ".".join(name for _, name in parents)


def _siblings(key: str, shown: str) -> bool:
    before = shown.rstrip(":").partition("=")[0]
    return "." in key and key.rpartition(".")[0] == before.rpartition(".")[0]


def _entry(key: str, value: str, meaning: str, command: Command, conf: ConfPath) -> tuple[str, str]:
    rule = command.key(key)
    options = [str(choice) for choice in rule.choices] or conf.options(key)
    if options:
        meaning = f"{meaning} One of: {', '.join(options)}.".strip()
    if not value:
        return f"{key}:", meaning  # the keys below it follow
    return f"{key}={'REQUIRED' if value == '???' else value}", meaning
