"""Jetson boards over trees of `tests.fakes.sysfs_tree`, without waiting for clocks to settle."""

from __future__ import annotations

from pathlib import Path

from rlgov.boards.jetson import JetsonBoard
from tests.fakes.sysfs_tree import KernelWriter, build


def board_of(root: Path, name: str, writer: KernelWriter | None = None) -> JetsonBoard:
    """A board of the tree already below ``root``."""
    return JetsonBoard(
        root, writer or KernelWriter(root, name), settle_s=0.0, sleep=lambda _s: None
    )


def make(root: Path, name: str) -> tuple[JetsonBoard, KernelWriter]:
    build(root, name)
    writer = KernelWriter(root, name)
    return board_of(root, name, writer), writer
