"""Is every key one that exists, and every value one that it may hold?

Hydra alone accepts ``+anything=1``, says little about a typing error and nothing about a value.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from typing import Any

from rlgov.cli.command import Command, Key
from rlgov.errors import ConfigError

_TYPE_WORDS = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}


def dotted_keys(node: Any, prefix: str = "") -> Iterator[str]:
    """Every key of a nested mapping, inner ones with their path: ``board``, ``board.rails``."""
    if isinstance(node, dict):
        for name, value in node.items():
            yield f"{prefix}{name}"
            yield from dotted_keys(value, f"{prefix}{name}.")


def lookup(node: Any, key: str) -> Any:
    """The value at a dotted key.

    Raises:
        KeyError: There is none.
    """
    for name in key.split("."):
        if not isinstance(node, dict) or name not in node:
            raise KeyError(key)
        node = node[name]
    return node


def unknown_key(key: str, known: Sequence[str], command: str) -> ConfigError:
    """The error for a key that does not exist, naming the nearest that does."""
    # Keys differ from what people type by dashes and capitals more often than by letters.
    typed = key.replace("-", "_").lower()
    top = [name for name in known if "." not in name]
    close = difflib.get_close_matches(typed, known, n=1, cutoff=0.6)
    if not close and "." not in typed:
        ends = [name for name in known if name.rpartition(".")[2] == typed]
        close = ends[:1]
    if close:
        return ConfigError(f"there is no key {key!r}; did you mean {close[0]!r}?")
    return ConfigError(
        f"there is no key {key!r}; keys of rlgov {command}: {', '.join(sorted(top))}"
    )


def check_value(command: Command, key: str, default: Any, value: Any) -> None:
    """Refuse a value that ``key`` cannot hold.

    Raises:
        ConfigError: Naming what is allowed.
    """
    rule = command.key(key)
    if value is None:
        if default is not None and default != "???" and not rule.optional:
            raise ConfigError(f"{key} cannot be null")
        return
    if isinstance(value, str) and "${" in value:
        return  # known only once resolved, when it is checked again
    if isinstance(value, list) and not isinstance(default, list):
        if not rule.many and rule.kind == "value":
            raise ConfigError(f"{key} takes one value, not a list (got {_show(value)})")
        if not value:
            raise ConfigError(f"{key}=[] is empty; give at least one value")
    # A list's items are checked against its default's first item, where it has one.
    model = (default[0] if default else None) if isinstance(default, list) else default
    for item in value if isinstance(value, list) else [value]:
        _check_one(key, rule, model, item)


def _check_one(key: str, rule: Key, default: Any, value: Any) -> None:
    if rule.choices:
        if value not in rule.choices:
            raise _not_a_choice(key, value, rule.choices)
        return
    expected = rule.type or (type(default) if default not in (None, "???") else None)
    if expected in _TYPE_WORDS and not _fits(expected, value):
        raise ConfigError(f"{key} takes {_TYPE_WORDS[expected]}, not {_show(value)}")
    if isinstance(value, (int, float)):
        _check_range(key, rule, value)


def _fits(expected: type, value: Any) -> bool:
    if isinstance(value, bool):
        return expected is bool
    if expected is float:
        return isinstance(value, (int, float))
    if expected is str:
        return isinstance(value, (str, int, float))  # a name may look like a number
    return isinstance(value, expected)


def _check_range(key: str, rule: Key, value: float) -> None:
    if value != value or value in (float("inf"), float("-inf")):
        raise ConfigError(f"{key} takes a finite number, not {value}")
    if rule.minimum is not None and value < rule.minimum:
        raise ConfigError(f"{key} must be at least {rule.minimum:g}, not {value:g}")
    if rule.maximum is not None and value > rule.maximum:
        raise ConfigError(f"{key} must be at most {rule.maximum}, not {value}")
    if rule.above is not None and value <= rule.above:
        raise ConfigError(f"{key} must be above {rule.above:g}, not {value:g}")


def _not_a_choice(key: str, value: Any, choices: Sequence[Any]) -> ConfigError:
    names = [str(choice) for choice in choices]
    close = difflib.get_close_matches(str(value), names, n=1)
    hint = f"; did you mean {close[0]}?" if close else ""
    return ConfigError(f"{key} is one of {', '.join(names)}; not {_show(value)}{hint}")


def _show(value: Any) -> str:
    return repr(value) if isinstance(value, (str, list, dict)) else str(value).lower()


def check_option(group: str, value: str, options: Sequence[str]) -> None:
    """Refuse a group value that names no config.

    Raises:
        ConfigError: Naming the options.
    """
    if value not in options:
        extra = "; a file is given as a path that ends in .yaml" if "." in value else ""
        error = _not_a_choice(group, value, options)
        raise ConfigError(f"{error}{extra}")
