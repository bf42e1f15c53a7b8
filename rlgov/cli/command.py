"""What a command is: the form that every file of this room exposes as ``COMMAND``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

from rlgov.files import RunFolder

KeyKind = Literal["value", "path", "paths", "name_or_path"]
Rule = Literal["none", "optional", "required"]


@dataclass(frozen=True)
class Key:
    """What a key of the primary config may hold, beyond what its default's type says.

    The key's meaning is the comment above it in the primary YAML; a type is taken from its
    default, so most keys need no entry here.

    Attributes:
        kind: ``value`` is parsed by Hydra; ``path`` is taken literally; ``paths`` is one literal
            path or a bracketed list; ``name_or_path`` is literal when it looks like a path.
        choices: The allowed values; empty for any.
        type: Type of a value whose default is ``null``.
        minimum: Smallest allowed number.
        maximum: Largest allowed number.
        above: The number must be greater than this.
        many: A bracketed list of such values is allowed as well.
        optional: ``null`` is allowed although the default is not ``null``.
    """

    kind: KeyKind = "value"
    choices: tuple[str | int | float, ...] = ()
    type: type | None = None
    minimum: float | None = None
    maximum: float | None = None
    above: float | None = None
    many: bool = False
    optional: bool = False


SEED = Key(minimum=0, maximum=2**32 - 1)
"""A seed: what every generator behind a command takes."""


@dataclass(frozen=True)
class Invocation:
    """One run of a command, with everything resolved.

    Attributes:
        config: The resolved configuration, plain Python values only.
        folder: The run's folder; `RunFolder.write_summary` is the command's duty.
        files: Positional files, relative to the launch directory as they were typed.
        job: The user's command after ``--``; empty when there was none.
        overrides: The overrides as typed, for records.
        config_dirs: The user's config folders (``--config-dir``).
    """

    config: dict[str, Any]
    folder: RunFolder
    files: tuple[Path, ...] = ()
    job: tuple[str, ...] = ()
    overrides: tuple[str, ...] = ()
    config_dirs: tuple[Path, ...] = ()


@dataclass(frozen=True)
class Command:
    """A command of ``rlgov``.

    Attributes:
        name: As typed, for instance ``boards`` or ``traces import``.
        summary: One line for ``rlgov --help``.
        help: What it does, in a few lines, for its own ``--help``.
        examples: Pairs of a command line and what it does.
        config: Name of its primary config, ``conf/<config>.yaml``.
        run: Does the work and returns the exit code.
        keys: Checks by key, see `Key`.
        files: Name of its positional files in the help (``FILE...``); empty when it takes none.
        files_rule: Whether positional files are required.
        files_exist: Whether they must be there; false where they are names of something else.
        job_rule: Whether a user's command after ``--`` is taken.
        flags: Options that stand for a key: ``--json`` for ``json=true``; with a ``=`` at the end
            (``mount=``) the option takes a value.
        sweep_columns: Summary fields shown in the table that ends a sweep.
        exit_codes: What its exit codes mean, beyond the common ones.
    """

    name: str
    summary: str
    help: str
    examples: tuple[tuple[str, str], ...]
    config: str
    run: Callable[[Invocation], int]
    keys: Mapping[str, Key] = field(default_factory=dict)
    files: str = ""
    files_rule: Rule = "none"
    files_exist: bool = True
    job_rule: Rule = "none"
    flags: Mapping[str, str] = field(default_factory=dict)
    sweep_columns: tuple[str, ...] = ()
    exit_codes: tuple[tuple[str, str], ...] = ()

    def key(self, name: str) -> Key:
        """The checks of ``name``; those of the common keys when the command has none."""
        return self.keys.get(name, COMMON_KEYS.get(name, Key()))


def later(place: str) -> Callable[[Invocation], int]:
    """A command's ``run`` that is imported only when it is called.

    A file of this room is imported for ``rlgov --help``; one that needs NumPy or more keeps its
    work in another module and names it here.

    Args:
        place: ``package.module:function``.
    """

    def run(invocation: Invocation) -> int:
        module, _, function = place.partition(":")
        code: int = getattr(import_module(module), function)(invocation)
        return code

    return run


COMMON_KEYS: Mapping[str, Key] = {"out": Key(kind="path")}
"""Keys of ``conf/base.yaml`` that need more than their default's type."""
