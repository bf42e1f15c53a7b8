"""From overrides to a plain configuration: the only place that composes with Hydra.

Hydra's compose API is used rather than its application decorator: it never changes the working
directory, installs no logging and writes no files.
"""

from __future__ import annotations

import itertools
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from hydra import compose, initialize_config_dir
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override as HydraOverride
from hydra.errors import HydraException
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from rlgov.cli.arguments import Override
from rlgov.cli.command import Command
from rlgov.cli.confdir import ConfPath
from rlgov.cli.literals import Literals
from rlgov.cli.schema import check_option, check_value, dotted_keys, lookup, unknown_key
from rlgov.errors import ConfigError

HYDRA_VERSION_BASE = "1.3"

_REPLACED = {
    "hydra.run.dir": "the run folder is given as out=DIR",
    "hydra.sweep.dir": "the sweep's folder is given as out=DIR",
    "hydra.sweep.subdir": "the runs of a sweep are numbered below out=DIR",
    "hydra.searchpath": "a folder with your own configs is given as --config-dir DIR",
    "hydra.output_subdir": "the resolved configuration is always written to config.yaml",
}


@dataclass(frozen=True)
class Composed:
    """One resolved configuration.

    Attributes:
        config: Plain Python values.
        overrides: The overrides that made it, as typed.
        swept: Of those, the ones that differ between the runs of a sweep, by key.
    """

    config: dict[str, Any]
    overrides: tuple[str, ...]
    swept: dict[str, str]


class Composer:
    """Composes one command's configuration."""

    def __init__(self, command: Command, overlays: Sequence[Path] = ()) -> None:
        self._command = command
        self._conf = ConfPath(overlays)
        self._scratch = Path()

    def compose(self, overrides: Sequence[Override], *, sweeping: bool = False) -> list[Composed]:
        """Every configuration that ``overrides`` ask for: one, or those of a sweep in order.

        Raises:
            ConfigError: Anything that is wrong with them, in words for the user.
        """
        literals = Literals()
        with tempfile.TemporaryDirectory(prefix="rlgov-conf-") as scratch:
            self._scratch = Path(scratch)
            self._lend_primary()
            safe = [self._protect(item, literals, sweeping=sweeping) for item in overrides]
            with (
                _readable_errors(literals),
                initialize_config_dir(scratch, version_base=HYDRA_VERSION_BASE),
            ):
                return [
                    self._one(combination, swept, literals)
                    for combination, swept in _expand(self._command, safe, sweeping)
                ]

    def _protect(self, item: Override, literals: Literals, *, sweeping: bool) -> Override:
        if not self._conf.options(item.key):
            return literals.protect(item, self._command.key(item.key), sweeping=sweeping)
        values = item.value.split(",") if sweeping else [item.value]
        lent = [self._lend_name(item.key, value, literals) for value in values]
        return Override(item.prefix, item.key, ",".join(lent))

    def _lend_primary(self) -> None:
        """Hydra wants the primary config in its main folder, and ranks all other folders below."""
        primary = self._conf.find(self._command.config)
        if primary is None:
            raise ConfigError(f"the configuration {self._command.config}.yaml is missing")
        shutil.copyfile(primary, self._scratch / primary.name)

    def _lend_name(self, group: str, value: str, literals: Literals) -> str:
        """A group's value may be a YAML file: it is lent a name that Hydra can find."""
        path = Path(value).expanduser()
        if path.suffix not in (".yaml", ".yml"):
            return value
        if not path.is_file():
            raise ConfigError(f"{group}={value}: there is no such file")
        name = literals.hide(value)
        target = self._scratch / group.partition("@")[0] / f"{name}.yaml"
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)
        return name

    def _compose(self, overrides: Sequence[str]) -> dict[str, Any]:
        quoted = ",".join(f"'file://{_escaped(folder)}'" for folder in self._conf.folders)
        config = compose(
            self._command.config,
            overrides=[f"hydra.searchpath=[{quoted}]", *overrides],
            return_hydra_config=True,
        )
        # Resolution fails on Hydra's own runtime keys, which have no value here.
        plain: dict[str, Any] = OmegaConf.to_container(config)  # type: ignore[assignment]
        return plain

    def _one(
        self, overrides: Sequence[Override], swept: dict[str, str], literals: Literals
    ) -> Composed:
        groups = [item for item in overrides if self._is_group(item)]
        values = [item for item in overrides if not self._is_group(item)]
        if groups:
            defaults = self._compose([])
            for item in groups:
                self._check_group(item, defaults)
        chosen = [f"{item.key}={item.value}" for item in groups]
        base = self._compose(chosen)
        for item in values:
            self._check_item(item, base)
        mine = [f"{item.key}={item.value}" for item in values if not _is_hydra(item.key)]
        full = self._compose([*chosen, *mine])
        full.pop("hydra")
        resolved = _resolved(full)
        for item in values:
            self._check_interpolated(item, base, resolved)
        return Composed(
            config=literals.reveal(resolved),
            overrides=tuple(literals.reveal([str(item) for item in overrides])),
            swept=literals.reveal(swept),
        )

    def _is_group(self, item: Override) -> bool:
        return bool(self._conf.options(item.key))

    def _check_group(self, item: Override, defaults: dict[str, Any]) -> None:
        choices = defaults["hydra"]["runtime"]["choices"]
        if item.key not in choices:
            raise unknown_key(item.key, self._known(defaults, item.key), self._command.name)
        value = _parse(item).value()
        if isinstance(value, (list, dict)):
            raise ConfigError(f"{item.key} takes one name, not {item.value}")
        options = self._conf.options(item.key)
        if value is None and choices[item.key] is not None:
            raise ConfigError(f"{item.key} cannot be null; it is one of {', '.join(options)}")
        if value is not None and not Literals.is_token(str(value)):
            check_option(item.key, str(value), options)

    def _check_item(self, item: Override, base: dict[str, Any]) -> None:
        if item.key in _REPLACED or item.key.startswith(("hydra/", "hydra.launcher.")):
            raise ConfigError(f"{item.key}: {_REPLACED.get(item.key, 'runs are sequential here')}")
        try:
            default = lookup(base, item.key)
        except KeyError:
            raise unknown_key(item.key, self._known(base, item.key), self._command.name) from None
        if not _is_hydra(item.key):
            check_value(self._command, item.key, default, _parse(item).value())

    def _check_interpolated(
        self, item: Override, base: dict[str, Any], resolved: dict[str, Any]
    ) -> None:
        # What ``${...}`` stands for is known only now; as typed it passed as a text.
        if "${" in str(item.value) and not _is_hydra(item.key):
            value = lookup(resolved, item.key)
            check_value(self._command, item.key, lookup(base, item.key), value)

    def _known(self, base: dict[str, Any], typed: str) -> list[str]:
        choices = base["hydra"]["runtime"]["choices"]
        keys = [*dotted_keys(base), *(c for c in choices if not _is_hydra(c) and c not in base)]
        return keys if typed.startswith("hydra") else [k for k in keys if not _is_hydra(k)]


def _is_hydra(key: str) -> bool:
    return key == "hydra" or key.startswith(("hydra.", "hydra/"))


def _escaped(path: Path) -> str:
    return str(path).replace("\\", "\\\\").replace("'", "\\'")


def _resolved(config: dict[str, Any]) -> Any:
    node = OmegaConf.create(config)
    missing = sorted(OmegaConf.missing_keys(node))
    if missing:
        raise ConfigError(f"{missing[0]} has no default: give {missing[0]}=VALUE")
    return OmegaConf.to_container(node, resolve=True)


def _parse(item: Override) -> HydraOverride:
    try:
        return OverridesParser.create().parse_override(str(item))
    except HydraException as error:
        raise ConfigError(
            f"the value of {item} cannot be read; a text with special characters is written in "
            f"quotes inside quotes: '{item.key}=\"{item.value}\"'; a list as '{item.key}=[1, 2]'"
        ) from error


def _expand(
    command: Command, overrides: Sequence[Override], sweeping: bool
) -> list[tuple[list[Override], dict[str, str]]]:
    """Every combination, and of each the overrides that vary."""
    axes: list[list[Override]] = []
    varying: list[bool] = []
    for item in overrides:
        parsed = None if "-" in item.key else _parse(item)  # no key of ours has a dash
        sweeps = parsed is not None and parsed.is_sweep_override()
        if sweeps and not sweeping:
            raise ConfigError(_bracket_form(item, command.key(item.key).many))
        values = list(parsed.sweep_string_iterator()) if sweeps and parsed else [item.value]
        axes.append([Override(item.prefix, item.key, value) for value in values])
        varying.append(sweeps)
    return [
        (list(row), {o.key: o.value for o, varies in zip(row, varying, strict=True) if varies})
        for row in itertools.product(*axes)
    ]


def _bracket_form(item: Override, many: bool) -> str:
    listed = f"{item.key}=[{item.value}]"
    how = f"write {listed} (quote it in the shell: '{listed}')"
    if many:
        return f"{item} is a bare list; {how}, or add -m for one run each"
    return (
        f"{item} is a bare list, and {item.key} takes one value here; add -m for one run each "
        f"(a key that takes a list has it in brackets: {how})"
    )


@contextmanager
def _readable_errors(literals: Literals) -> Iterator[None]:
    try:
        yield
    except (HydraException, OmegaConfBaseException, yaml.YAMLError) as error:
        causes = [str(error), str(error.__cause__ or "")]
        lines = [line.strip() for text in causes for line in text.splitlines() if line.strip()]
        text = "; ".join(dict.fromkeys(lines)) or type(error).__name__
        raise ConfigError(
            f"the configuration cannot be composed: {literals.reveal(text)}"
        ) from error
