"""Where the YAML files are: the user's overlays, then those that came with rlgov."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

from rlgov.errors import ConfigError


def packaged_conf() -> Path:
    """The ``conf/`` of this rlgov: inside a wheel, or beside the package in a checkout.

    Raises:
        ConfigError: The installation is incomplete.
    """
    package = Path(str(files("rlgov")))
    for folder in (package / "conf", package.parent / "conf"):
        if (folder / "base.yaml").is_file():
            return folder
    raise ConfigError(f"no configuration files beside {package}; install rlgov again")


class ConfPath:
    """The folders that are searched for configs, the first hit winning.

    Attributes:
        folders: The user's overlays (``--config-dir``), then the packaged ``conf/``.
    """

    def __init__(self, overlays: Sequence[Path] = ()) -> None:
        self.folders = (*overlays, packaged_conf())

    def options(self, group: str) -> list[str]:
        """Names that ``group=`` may take; empty when there is no such group.

        A group that fills a second key, ``population@validation_population``, has its own options.
        """
        group = group.partition("@")[0]
        names: set[str] = set()
        for folder in self.folders:
            for pattern in ("*.yaml", "*.yml"):
                names |= {path.stem for path in (folder / group).glob(pattern)}
        return sorted(names)

    def find(self, name: str) -> Path | None:
        """The file of config ``name`` (``group/option``, or a primary config)."""
        for folder in self.folders:
            path = folder / f"{name}.yaml"
            if path.is_file():
                return path
        return None
