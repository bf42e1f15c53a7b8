"""The work of ``rlgov emulate``."""

from __future__ import annotations

from pathlib import Path

import yaml

from rlgov.boards.emulate.fuse import serve
from rlgov.boards.emulate.machine import Machine
from rlgov.boards.emulate.profiles import PROFILES, Profile
from rlgov.boards.emulate.tree import KernelTree
from rlgov.boards.twin import TwinSpec
from rlgov.cli.command import Invocation
from rlgov.cli.confdir import ConfPath
from rlgov.errors import ConfigError


def run(invocation: Invocation) -> int:
    """Mount the board and serve it until it is unmounted."""
    config = invocation.config
    names = [str(path) for path in invocation.files]
    if len(names) != 1 or names[0] not in PROFILES:
        raise ConfigError(f"give one board of {', '.join(PROFILES)}; not {' '.join(names)!r}")
    if config["mount"] is None:
        raise ConfigError("give the folder to mount on: --mount DIR")
    mount = Path(config["mount"])
    if not mount.is_dir() or any(mount.iterdir()):
        raise ConfigError(f"mount={mount} must be an empty folder")
    profile = PROFILES[names[0]]
    machine = Machine(profile, _twin(profile, ConfPath(invocation.config_dirs)), config["seed"])
    machine.load.value = config["load_per_mille"]
    invocation.folder.write_summary({"board": names[0], "mount": str(mount)})
    serve(KernelTree(machine), mount.resolve(), lambda: _say(names[0], mount))
    return 0


def _twin(profile: Profile, conf: ConfPath) -> TwinSpec:
    path = conf.find(f"board/{profile.twin}")
    if path is None:
        raise ConfigError(f"there is no conf/board/{profile.twin}.yaml")
    return TwinSpec.from_dict(yaml.safe_load(path.read_text(encoding="utf-8")))


def _say(name: str, mount: Path) -> None:
    print(f"rlgov: {name} is at {mount}; end it with Ctrl-C or: umount {mount}", flush=True)
