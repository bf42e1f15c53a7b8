"""The emulated files behind a mount point, through FUSE (``pip install rlgov[emulate]``)."""

from __future__ import annotations

import errno
import os
import signal
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rlgov.boards.emulate.nodes import Node, refusal
from rlgov.boards.emulate.tree import KernelTree
from rlgov.errors import BoardError, NotSupportedError

_SIZE = 4096
"""What the kernel says of every attribute's size."""


def serve(tree: KernelTree, mount: Path, on_mounted: Callable[[], None]) -> None:
    """Mount ``tree`` and serve it until it is unmounted or this process is told to end.

    Args:
        tree: The files.
        mount: An empty folder.
        on_mounted: Called once the files are there.

    Raises:
        NotSupportedError: This machine has no FUSE, or its library is missing.
        BoardError: The kernel refused the mount.
    """
    fuse = _library()
    if not Path("/dev/fuse").exists():
        raise NotSupportedError("this machine has no /dev/fuse: in a container, --device /dev/fuse")
    # The kernel checks permissions as it does in /sys; others get in only where root mounted.
    options = {"default_permissions": True, "direct_io": True, "fsname": "rlgov"}
    if os.geteuid() == 0:
        options["allow_other"] = True
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        # libfuse unmounts on these, but only where nobody else handles them.
        signal.signal(number, signal.SIG_DFL)
    mounted = False

    def begin() -> None:
        nonlocal mounted
        mounted = True
        on_mounted()

    operations = type("Operations", (Mounted, fuse.Operations), {})(tree, begin)
    try:
        fuse.FUSE(operations, str(mount), foreground=True, nothreads=True, **options)
    except RuntimeError as error:
        if mounted:
            return  # the library's way of saying that a signal ended it
        raise BoardError(
            f"{mount} could not be mounted (FUSE error {error}); is it an empty folder, and is "
            "fusermount3 installed (apt install fuse3)?"
        ) from error


def _library() -> Any:
    try:
        import mfusepy
    except ImportError as error:
        raise NotSupportedError("rlgov emulate needs: pip install 'rlgov[emulate]'") from error
    except OSError as error:
        raise NotSupportedError(f"libfuse is missing ({error}): apt install fuse3") from error
    return mfusepy


class Mounted:
    """What a mount does, in the terms of the library's operations.

    Args:
        tree: The files.
        on_mounted: Called once the files are there.
    """

    use_ns = True

    def __init__(self, tree: KernelTree, on_mounted: Callable[[], None]) -> None:
        self._tree = tree
        self._on_mounted = on_mounted
        self._open: dict[int, tuple[Node, bytes | None]] = {}
        self._next = 1

    def init(self, path: str) -> None:
        """The mount is there."""
        self._on_mounted()

    def getattr(self, path: str, fh: int | None = None) -> dict[str, Any]:
        """Mode and size."""
        return _attributes(self._tree, path)

    def readlink(self, path: str) -> str:
        """Where a link leads."""
        return self._tree.links[path]

    def readdir(self, path: str, fh: int) -> list[str]:
        """Names in a folder."""
        return [".", "..", *sorted(_children(self._tree, path))]

    def open(self, path: str, flags: int) -> int:
        """A handle."""
        handle, self._next = self._next, self._next + 1
        self._open[handle] = (_node(self._tree, path), None)
        return handle

    def read(self, path: str, size: int, offset: int, fh: int) -> bytes:
        """Content, made anew at each reading from the start."""
        node, content = self._open[fh]
        if content is None or offset == 0:
            content = node.read()
            self._open[fh] = (node, content)
        return content[offset : offset + size]

    def write(self, path: str, data: bytes, offset: int, fh: int) -> int:
        """One write."""
        self._open[fh][0].write(data)
        return len(data)

    def truncate(self, path: str, length: int, fh: int | None = None) -> int:
        """Nothing happens, as in ``/sys``."""
        _node(self._tree, path)
        return 0

    def release(self, path: str, fh: int) -> int:
        """The handle is closed."""
        self._open.pop(fh, None)
        return 0


def _node(tree: KernelTree, path: str) -> Node:
    node = tree.files.get(path)
    if node is None or not node.present():
        raise refusal(errno.ENOENT)
    return node


def _children(tree: KernelTree, path: str) -> set[str]:
    folder = path.rstrip("/") + "/"
    names = [p for p, node in tree.files.items() if node.present()] + list(tree.links)
    return {name[len(folder) :].split("/", 1)[0] for name in names if name.startswith(folder)}


def _attributes(tree: KernelTree, path: str) -> dict[str, Any]:
    if path in tree.links:
        return {"st_mode": stat.S_IFLNK | 0o777, "st_nlink": 1, "st_size": len(tree.links[path])}
    if path not in tree.files:
        if not _children(tree, path):
            raise refusal(errno.ENOENT)
        debug = path.endswith("/sys/kernel/debug")
        return {"st_mode": stat.S_IFDIR | (0o700 if debug else 0o755), "st_nlink": 2}
    node = _node(tree, path)
    return {"st_mode": stat.S_IFREG | node.mode, "st_nlink": 1, "st_size": _SIZE}
