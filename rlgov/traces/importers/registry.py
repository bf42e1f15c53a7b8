"""Importers by name, and which one fits a file."""

from __future__ import annotations

from pathlib import Path

from rlgov.errors import ConfigError, TraceError
from rlgov.traces.importers.base import Importer
from rlgov.traces.text import read_text

_HEAD_CHARACTERS = 65536
_importers: dict[str, Importer] = {}


def register(kind: type[Importer]) -> type[Importer]:
    """Class decorator: make an importer known by its name.

    Raises:
        ConfigError: The name is taken.
    """
    if kind.name in _importers:
        raise ConfigError(f"there is an importer {kind.name!r} already")
    _importers[kind.name] = kind()
    return kind


def names() -> tuple[str, ...]:
    """Names of every importer."""
    return tuple(_importers)


def importer(name: str) -> Importer:
    """The importer called ``name``.

    Raises:
        ConfigError: There is none.
    """
    if name not in _importers:
        raise ConfigError(f"no importer {name!r}; there are: auto, {', '.join(_importers)}")
    return _importers[name]


def detect(path: str | Path) -> Importer:
    """The importer that fits a file, by its first lines.

    Raises:
        TraceError: None does, or the file cannot be read.
    """
    path = Path(path)
    return detect_text(read_text(path), path)


def detect_text(text: str, path: Path) -> Importer:
    """As `detect`, for text that is read already.

    Raises:
        TraceError: No importer fits.
    """
    head = text[:_HEAD_CHARACTERS]
    for candidate in _importers.values():
        if candidate.accepts(head):
            return candidate
    first = next((line.strip() for line in head.splitlines() if line.strip()), "")
    raise TraceError(
        f"{path}: no importer knows this file (first line: {first[:80]!r}); "
        f"name one with importer= if it is one of: {', '.join(_importers)}"
    )
