"""The command line, split into its parts before Hydra sees any of it."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rlgov.cli.command import Command
from rlgov.errors import ConfigError

_OVERRIDE = re.compile(r"(?P<prefix>\+{0,2})(?P<key>[A-Za-z_][\w./@-]*)=(?P<value>.*)", re.DOTALL)
_OPTIONS = ("--config-dir", "--help", "--multirun", "--print-config", "-h", "-m")


@dataclass(frozen=True)
class Override:
    """One ``key=value`` as typed.

    Attributes:
        prefix: ``""``, ``+`` or ``++``.
        key: The key.
        value: Everything after the first ``=``, without a carriage return at its end.
    """

    prefix: str
    key: str
    value: str

    def __str__(self) -> str:
        return f"{self.prefix}{self.key}={self.value}"


@dataclass
class Arguments:
    """The parts of a command line, after the command's name."""

    overrides: list[Override] = field(default_factory=list)
    files: list[Path] = field(default_factory=list)
    job: list[str] = field(default_factory=list)
    config_dirs: list[Path] = field(default_factory=list)
    multirun: bool = False
    show_help: bool = False
    print_config: bool = False


def parse_arguments(command: Command, words: Sequence[str]) -> Arguments:
    """Split ``words`` (what follows the command's name).

    Raises:
        ConfigError: A word that is none of the known forms.
    """
    mine, job = _split_job(command, words)
    parsed = Arguments(job=job)
    rest = iter(mine)
    for word in rest:
        if word.startswith("--config-dir"):
            parsed.config_dirs.append(_config_dir(word, rest_value=lambda: next(rest, None)))
        elif word.partition("=")[0] in command.flags:
            parsed.overrides.append(_own_flag(command, word, lambda: next(rest, None)))
        elif word.startswith("-"):
            _flag(parsed, word)
        else:
            _plain_word(command, parsed, word)
    if not parsed.show_help:
        _check_presence(command, parsed)
    return parsed


def _split_job(command: Command, words: Sequence[str]) -> tuple[list[str], list[str]]:
    if "--" not in words:
        return list(words), []
    at = list(words).index("--")
    if command.job_rule == "none":
        raise ConfigError(f"rlgov {command.name} takes no command after --")
    if not words[at + 1 :]:
        raise ConfigError("there is no command after --")
    return list(words[:at]), list(words[at + 1 :])


def _config_dir(word: str, rest_value: Callable[[], str | None]) -> Path:
    name, _, attached = word.partition("=")
    if name != "--config-dir":
        raise _unknown_option(word)
    value = attached or rest_value()
    if not value:
        raise ConfigError("--config-dir needs a folder of YAML files: --config-dir DIR")
    if not Path(value).is_dir():
        raise ConfigError(f"--config-dir needs a folder of YAML files; {value!r} is none")
    return Path(value).absolute()


def _own_flag(command: Command, word: str, rest_value: Callable[[], str | None]) -> Override:
    name, has_value, attached = word.partition("=")
    key, _, value = command.flags[name].partition("=")
    if value:
        if has_value:
            raise ConfigError(f"{name} takes no value")
        return Override("", key, value)
    given = attached if has_value else rest_value()
    if not given:
        raise ConfigError(f"{name} needs a value")
    return Override("", key, given)


def _flag(parsed: Arguments, word: str) -> None:
    if word in ("-h", "--help"):
        parsed.show_help = True
    elif word in ("-m", "--multirun"):
        parsed.multirun = True
    elif word == "--print-config":
        parsed.print_config = True
    else:
        raise _unknown_option(word)


def _unknown_option(word: str) -> ConfigError:
    bare, _, value = word.lstrip("-").partition("=")
    close = difflib.get_close_matches(word, _OPTIONS, n=1)
    if close:
        return ConfigError(f"there is no option {word}; did you mean {close[0]}?")
    example = f"{bare.replace('-', '_')}={value or 'VALUE'}"
    return ConfigError(f"there is no option {word}; settings are written without dashes: {example}")


def _plain_word(command: Command, parsed: Arguments, word: str) -> None:
    match = _OVERRIDE.fullmatch(word)
    if re.match(r"~[A-Za-z_]", word) and not Path(word).exists():
        raise ConfigError(f"{word}: keys cannot be removed, only set; write key=value")
    # A file may well be called `a=b.csv`; one that exists is never an override.
    if command.files_rule != "none" and (match is None or Path(word).exists()):
        parsed.files.append(Path(word))
        return
    if match is None:
        raise ConfigError(
            f"{word!r} is neither key=value nor an option; see rlgov {command.name} --help"
        )
    value = match["value"].rstrip("\r")  # from a script saved with Windows line ends
    parsed.overrides.append(Override(match["prefix"], match["key"], value))


def _check_presence(command: Command, parsed: Arguments) -> None:
    if command.files_rule == "required" and not parsed.files:
        raise ConfigError(f"rlgov {command.name} needs {command.files}")
    for path in parsed.files if command.files_exist else ():
        if not path.exists():
            raise ConfigError(f"there is no file {path}")
    if command.job_rule == "required" and not parsed.job:
        raise ConfigError(
            f"rlgov {command.name} needs your training command after --, "
            f"for example: {command.examples[0][0]}"
        )
