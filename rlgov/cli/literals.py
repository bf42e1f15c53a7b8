"""Paths are kept away from Hydra's grammar.

A path may hold blanks, ``=``, brackets, quotes, commas, dollar signs: all of them mean something
to Hydra. So a path travels through composition as a token without any, and is put back in the
plain configuration afterwards, wherever interpolation may have carried it.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from rlgov.cli.arguments import Override
from rlgov.cli.command import Key
from rlgov.errors import ConfigError

_TOKEN = re.compile(r"RLGOVPATH(\d+)X")


class Literals:
    """The texts that were replaced by tokens, in the order met."""

    def __init__(self) -> None:
        self._texts: list[str] = []

    def hide(self, text: str) -> str:
        """A token that stands for ``text``."""
        self._texts.append(text)
        return f"RLGOVPATH{len(self._texts) - 1}X"

    @staticmethod
    def is_token(text: str) -> bool:
        """Whether ``text`` stands for another."""
        return _TOKEN.fullmatch(text) is not None

    def reveal(self, data: Any) -> Any:
        """``data`` with its texts back in place, and no carriage return ending a string."""
        if isinstance(data, dict):
            return {key: self.reveal(value) for key, value in data.items()}
        if isinstance(data, list):
            return [self.reveal(value) for value in data]
        if isinstance(data, str):
            return _TOKEN.sub(lambda match: self._texts[int(match[1])], data).rstrip("\r")
        return data

    def protect(self, override: Override, key: Key, *, sweeping: bool) -> Override:
        """``override`` with its path, if it holds one, replaced by a token.

        Raises:
            ConfigError: A path key without a path.
        """
        if not _is_literal(key, override.value):
            return override
        if not override.value:
            raise ConfigError(f"{override.key}= needs a path")
        parts = [override.value]
        # out= is never swept; any other path holding commas is a sweep unless it is a real file.
        if sweeping and override.key != "out" and not Path(override.value).exists():
            parts = override.value.split(",")
        value = ",".join(self.hide(_home(part)) for part in parts)
        return Override(override.prefix, override.key, value)


def _is_literal(key: Key, value: str) -> bool:
    if key.kind == "value" or value == "null":
        return False
    if key.kind == "path":
        return True
    if Path(value).exists() and value:
        return True
    if value.startswith("["):
        return False
    return key.kind == "paths" or "/" in value


def _home(text: str) -> str:
    # No shell expands the ~ of `out=~/runs`.
    return str(Path(text).expanduser()) if text.startswith("~/") else text
