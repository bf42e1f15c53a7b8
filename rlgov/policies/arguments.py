"""Parameters of a policy (``policy_args.<name>``), from plain values to a typed record."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar, get_type_hints

from rlgov.errors import ConfigError

T = TypeVar("T")

_WORDS = {int: "a whole number", float: "a number", str: "a word", bool: "true or false"}


def typed_arguments(kind: type[T], name: str, args: Mapping[str, object]) -> T:
    """The dataclass ``kind`` from ``args``.

    Args:
        kind: A dataclass whose fields are numbers, words or flags, all with defaults.
        name: The policy's name, for messages.
        args: As given; ``None`` stands for the default.

    Raises:
        ConfigError: A key that it does not have, or a value that is not of the key's type.
    """
    hints = get_type_hints(kind)
    given = {key: value for key, value in args.items() if value is not None}
    for key, value in given.items():
        if key not in hints:
            raise ConfigError(f"policy_args.{name}: {key!r} is none of {', '.join(hints)}")
        if not _fits(hints[key], value):
            raise ConfigError(
                f"policy_args.{name}.{key} takes {_WORDS.get(hints[key], 'a value')}, not {value!r}"
            )
    return kind(**given)


def at_least(name: str, key: str, value: float, least: float) -> None:
    """Refuse a parameter that is too small.

    Raises:
        ConfigError: It is.
    """
    if not value >= least:
        raise ConfigError(f"policy_args.{name}.{key} must be at least {least:g}, not {value:g}")


def _fits(hint: object, value: object) -> bool:
    if isinstance(value, bool):
        return hint is bool
    if hint is float:
        return isinstance(value, (int, float))
    return isinstance(hint, type) and isinstance(value, hint)
