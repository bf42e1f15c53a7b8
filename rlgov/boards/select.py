"""Which back-end: the one asked for, or with ``auto`` the first that can set anything here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from rlgov.boards.jetson import JetsonBoard
from rlgov.boards.jetson_gpu import find_gpu
from rlgov.boards.jtop_source import JtopSource
from rlgov.boards.linux import LinuxBoard
from rlgov.boards.nvml import NvmlBoard, all_devices, installed_nvml
from rlgov.boards.nvml_device import NvmlLoad
from rlgov.boards.sensors import Sensor
from rlgov.boards.sysfs import Tree
from rlgov.boards.sysfs_board import SysfsBoard
from rlgov.errors import BoardError, ConfigError, NotSupportedError

KINDS = ("jetson", "nvml", "linux")
"""Real back-ends in the order that ``auto`` asks them.

A Jetson comes before NVML: there NVML may load and answer nothing.
"""

RealBoard = SysfsBoard | NvmlBoard


@dataclass(frozen=True)
class BoardSpec:
    """Which real board is wanted.

    Attributes:
        kind: One of `KINDS`, or ``auto``.
        require: ``any``: with nothing to set, an emulated board will do; ``real``: it will not.
        fallback: Name of the board that is emulated then.
        root: Where the kernel's files are: ``/``, or a folder that stands for it.
        settle_s: Seconds between a write and reading back.
        period_s: Seconds between readings.
        jtop: On a Jetson, fill in what no file tells from jtop's service.
    """

    kind: str
    require: str = "any"
    fallback: str = "jetson_agx_orin_64gb"
    root: str = "/"
    settle_s: float = 0.1
    period_s: float = 0.1
    jtop: bool = False

    def __post_init__(self) -> None:
        if self.kind not in (*KINDS, "auto"):
            raise ConfigError(f"board.kind={self.kind} is not one of auto, {', '.join(KINDS)}")
        if self.require not in ("any", "real"):
            raise ConfigError(f"board.require={self.require} is neither any nor real")
        if not self.settle_s >= 0.0 or not self.period_s > 0.0:
            raise ConfigError("board.settle_s must be 0 or more and board.period_s above 0")


@dataclass(frozen=True)
class Choice:
    """What `select` found.

    Attributes:
        board: The board; ``None`` where there is nothing to set and an emulated one will do.
        why: Why this one, in words.
        tried: Kind of back-end -> what was found of it.
    """

    board: RealBoard | None
    why: str
    tried: Mapping[str, str]


Opener = Callable[[BoardSpec], RealBoard]


def open_board(spec: BoardSpec) -> RealBoard:
    """The back-end called ``spec.kind``, whether or not anything can be set.

    Raises:
        ConfigError: ``CUDA_VISIBLE_DEVICES`` names what is not there.
        NotSupportedError: It is not there.
    """
    root = Path(spec.root)
    if spec.kind == "jetson":
        return _jetson(root, spec)
    if spec.kind == "nvml":
        return NvmlBoard(settle_s=spec.settle_s)
    return LinuxBoard(root, settle_s=spec.settle_s)


def _jetson(root: Path, spec: BoardSpec) -> JetsonBoard:
    more: list[Sensor] = [*_load_by_nvml(root)]
    if not spec.jtop:
        return JetsonBoard(root, more=more, settle_s=spec.settle_s)
    source = JtopSource()
    try:
        board = JetsonBoard(root, more=[*more, source], settle_s=spec.settle_s)
    except NotSupportedError:
        source.close()
        raise
    board.closers.append(source.close)
    return board


def _load_by_nvml(root: Path) -> list[NvmlLoad]:
    """NVML's busy share, for a GPU of this machine that has no file of it (Thor)."""
    gpu = find_gpu(Tree(root))
    if gpu is None or gpu.load or str(root) != "/":
        return []
    try:
        return [NvmlLoad(device) for device in all_devices(installed_nvml())[:1]]
    except NotSupportedError:
        return []


def select(spec: BoardSpec, opener: Opener = open_board) -> Choice:
    """Find the board that ``spec`` asks for.

    Args:
        spec: What is wanted.
        opener: For tests.

    Raises:
        BoardError: A named back-end is not there, or none can set anything and ``require=real``.
    """
    if spec.kind != "auto":
        return Choice(opener(spec), f"board={spec.kind} was asked for", {})
    tried: dict[str, str] = {}
    for kind in KINDS:
        board = _try(spec, kind, opener, tried)
        if board is not None:
            return Choice(board, _why(board, tried), tried)
    found = "; ".join(f"{kind}: {reason}" for kind, reason in tried.items())
    if spec.require == "real":
        raise BoardError(f"board.require=real, and nothing can be set here. {found}")
    return Choice(None, f"nothing can be set here. {found}", tried)


def _try(spec: BoardSpec, kind: str, opener: Opener, tried: dict[str, str]) -> RealBoard | None:
    """The board of that kind if it has a knob; else what was found goes to ``tried``."""
    try:
        board = opener(replace(spec, kind=kind))
    except NotSupportedError as error:
        tried[kind] = str(error)
        return None
    if board.knobs:
        tried[kind] = _knobs(board)
        return board
    tried[kind] = f"{board.name} is there, but {refusals(board)}"
    board.close()
    return None


def refusals(board: RealBoard) -> str:
    """Why the knobs of a board that are not offered cannot be set."""
    texts = [f"{knob} cannot be set: {reason}" for knob, reason in board.refused.items()]
    return "; ".join(texts) or "it has no knobs"


def _knobs(board: RealBoard) -> str:
    return ", ".join(f"{knob.name} ({len(knob.allowed_mhz)} levels)" for knob in board.knobs)


def _why(board: RealBoard, tried: Mapping[str, str]) -> str:
    others = [f"{kind}: {text}" for kind, text in tried.items() if kind != board.kind]
    found = f"board=auto chose {board.kind}, which can set {_knobs(board)}"
    return f"{found} ({'; '.join(others)})" if others else found
