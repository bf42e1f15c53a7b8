"""Which Jetson this is: chip, release, model, power mode. For people; nothing is decided by it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from rlgov.boards.sysfs import Tree

COMPATIBLE = "/proc/device-tree/compatible"
MODEL = "/proc/device-tree/model"
RELEASE = "/etc/nv_tegra_release"
KERNEL = "/proc/sys/kernel/osrelease"
MODE_STATUS = "/var/lib/nvpmodel/status"
MODE_CONFIG = "/etc/nvpmodel.conf"

_JETPACK = {"32": "4", "34": "5", "35": "5", "36": "6", "38": "7", "39": "7"}
_BY_KERNEL = {"4.9": "4", "5.10": "5", "5.15": "6", "6.8": "7"}


@dataclass(frozen=True)
class Identity:
    """Who the board says it is.

    Attributes:
        soc: ``tegra234`` and the like; empty where the board does not say.
        model: The module's or kit's name; empty where the board does not say.
        jetpack: Generation of JetPack, ``4`` to ``7``; empty where it cannot be told.
        release: Release of the board support package, such as ``R36.4.3``; empty likewise.
    """

    soc: str
    model: str
    jetpack: str
    release: str

    @property
    def name(self) -> str:
        """The model as one word."""
        words = re.sub(r"[^a-z0-9]+", "_", self.model.lower()).strip("_").removeprefix("nvidia_")
        return words or "jetson"


def identify(tree: Tree) -> Identity:
    """Read the device tree and the release files."""
    compatible = (tree.text(COMPATIBLE).value or "").replace("\0", " ")
    soc = re.search(r"nvidia,(tegra\d+)", compatible)
    text = tree.text(RELEASE).value or ""
    found = re.search(r"R(\d+).*?REVISION:\s*([\d.]+)", text)
    kernel = re.match(r"\d+\.\d+", tree.text(KERNEL).value or "")
    jetpack = _JETPACK.get(found[1], "") if found else ""
    return Identity(
        soc=soc[1] if soc else "",
        model=tree.text(MODEL).value or "",
        jetpack=jetpack or _BY_KERNEL.get(kernel[0] if kernel else "", ""),
        release=f"R{found[1]}.{found[2]}" if found else "",
    )


def power_mode(tree: Tree) -> str | None:
    """The power mode in force, by name where its configuration tells, else by number.

    The files are read and ``nvpmodel`` is never run: it can hang or ask for a reboot. A mode that
    nobody knows is passed on as it stands.
    """
    status = tree.text(MODE_STATUS).value
    if not status:
        return None
    number = re.search(r"pmode:0*(\d+)", status)
    if number is None:
        return status
    text = tree.text(MODE_CONFIG).value or ""
    name = re.search(rf"<\s*POWER_MODEL\s+ID={number[1]}\s+NAME=(\S+?)\s*>", text)
    return name[1] if name else number[1]
