"""Objects from ``_target_`` nodes of the configuration."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any

from hydra.errors import HydraException
from hydra.utils import instantiate

from rlgov.errors import ConfigError, RlgovError


def instantiate_group(node: Mapping[str, Any], name: str, **more: Any) -> Any:
    """Build the object that a config node describes.

    Args:
        node: A plain mapping with a ``_target_``, as in `Invocation.config`.
        name: Name of the node, for messages.
        **more: Arguments known only at run time, passed on to the constructor.

    Raises:
        ConfigError: No target, a target outside rlgov, or arguments that it does not take.
        RlgovError: Whatever the constructor raised.
    """
    if "_target_" not in node:
        raise ConfigError(f"{name} has no _target_ that says what to build")
    for target in _targets(node):
        _check_target(target, name)
    try:
        if not more:
            return instantiate(dict(node), _convert_="all")
        # Passed through Hydra, objects such as dataclasses would be turned into dictionaries.
        return instantiate({**node, "_partial_": True}, _convert_="all")(**more)
    except HydraException as error:
        if isinstance(error.__cause__, RlgovError):
            raise error.__cause__ from None
        reason = str(error.__cause__ or error).splitlines()[0]
        raise ConfigError(f"{name} cannot be built: {reason}") from error
    except TypeError as error:
        raise ConfigError(f"{name} cannot be built: {error}") from error


def _targets(node: Any) -> Iterator[Any]:
    if isinstance(node, Mapping):
        if "_target_" in node:
            yield node["_target_"]
        for value in node.values():
            yield from _targets(value)
    elif isinstance(node, (list, tuple)):
        for value in node:
            yield from _targets(value)


def _check_target(target: Any, name: str) -> None:
    """Only rlgov's own names are built: a shared config must not run what it likes."""
    words = str(target).split(".")
    if words[0] != "rlgov" or len(words) < 3:
        raise ConfigError(f"{name}: _target_ {target} is not a part of rlgov")
    try:
        built = _locate(words)
    except (ImportError, AttributeError) as error:
        raise ConfigError(f"{name}: there is no {target} ({error})") from error
    # A module of ours also holds what it imported; `rlgov.files.os` must not pass.
    if not str(getattr(built, "__module__", "")).startswith("rlgov."):
        raise ConfigError(f"{name}: _target_ {target} is not a part of rlgov")


def _locate(words: list[str]) -> Any:
    """The class or function that ``words`` name, or the class whose method they name."""
    for word in words[1:-2]:
        if word[:1].isupper():
            raise ImportError("too many parts")
    owner, last = words[-2:]
    if owner[:1].isupper():
        built = getattr(import_module(".".join(words[:-2])), owner)
        getattr(built, last)
        return built
    return getattr(import_module(".".join(words[:-1])), last)
