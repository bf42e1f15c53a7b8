"""The one file of ours that runs inside a job: it watches optimizer steps and sends them away.

It is copied alone into a private folder and started there by a generated ``sitecustomize`` (see
``rlgov.jobs.launch``). It needs only the standard library of Python 3.8 or newer, imports nothing
of rlgov, and never imports torch: it waits until the job does. Three promises shape every line:

- **The job's numbers stay its own.** Nothing here draws random numbers, reads a tensor's values,
  waits for a device or changes an argument.
- **The job outlives us.** Every entry swallows its own errors and then switches the hook off; a
  send never blocks, and what could not be sent is carried by the next message.
- **A step is a mini-batch.** With several optimizers only one of them ends the mini-batch, see
  `_ends_mini_batch`.

A step's time is stamped where the optimizer's Python call returns. On an asynchronous device that
is the moment its kernels were *queued*: single steps may look too short or too long, sums over a
few steps are right. There is no synchronisation to avoid that, since it would slow the job down.

Importing this module does nothing; `install` does.
"""

from __future__ import annotations

import functools
import json
import os
import socket
import struct
import sys
import threading
import time
import weakref
from typing import Any, Callable, Dict, List, Optional, Set, Tuple

SOCKET_VARIABLE = "RLGOV_SOCKET"
"""Path of the governor's socket; without it the hook is inert."""

VERSION = 1
STEP = struct.Struct("<4sQddddqq")
"""A step message: magic, steps so far, time, data wait, pause, busy, samples, tokens.

``steps so far`` counts from 1 in the sending process. The time is `time.monotonic` in seconds and
the waits (seconds), samples and tokens cover every step since the last message that got through;
-1 stands for unknown. ``busy`` is kept for the seconds this hook itself took.
"""

STEP_MAGIC = b"RGS1"
JSON_MAGIC = b"RGJ1"
"""What the two kinds of message begin with; the second is followed by a JSON object."""

_monotonic = time.monotonic
_MEASURE_FROM = 2
_MEASURE_EVERY = 200
_MEASURE_SHAPES = 16
_SEND_BUFFER_BYTES = 1 << 20
_LOOKAHEAD_FILE = os.path.join("accelerate", "data_loader.py")


class _Mark:
    """Set from inside compiled code, where nothing else of ours may run."""

    def __init__(self) -> None:
        self.stepped = False


class _Thread(threading.local):
    """What belongs to one thread: the optimizers whose ``step`` is running, and loader nesting."""

    def __init__(self) -> None:
        self.stack: List[List[Any]] = []
        self.fetching = False


class _Source:
    """How often batches of one dataset came between two steps."""

    __slots__ = ("first", "hits")

    def __init__(self, first: int) -> None:
        self.first = first
        self.hits = 0


class _State:
    """Everything the hook remembers about this process."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.on = True
        self.pid = os.getpid()
        self.socket: Optional[socket.socket] = None
        self.steps = 0
        self.last_end = 0.0
        self.lead: Optional[Callable[[], Any]] = None
        self.since: Set[int] = set()
        self.fetched = False
        self.thread = 0
        self.sources: Dict[int, _Source] = {}
        self.keys: Set[int] = set()
        self.last_key = 0
        self.train_end = 0.0
        self.pause_start: Optional[float] = None
        self.pause_end = 0.0
        self.saving = 0
        self.clear()

    def clear(self) -> None:
        """Forget what a message has carried away."""
        self.wait = 0.0
        self.pause = 0.0
        self.samples = -1
        self.tokens = -1

    def is_train(self, key: int) -> bool:
        """Whether batches of this dataset are trained on (see `_fetched`)."""
        source = self.sources.get(key)
        if source is None:
            return not self.sources
        return source.hits * 4 > (self.steps - source.first) * 3


_mark = _Mark()
_local = _Thread()
_state: Optional[_State] = None


def _never() -> bool:
    return False


_compiling: Callable[[], bool] = _never


def _off() -> None:
    """Switch the hook off for good: the job goes on as if it had never been there."""
    state = _state
    if state is not None:
        state.on = False
        if state.socket is not None:
            try:
                state.socket.close()
            except Exception:
                pass
            state.socket = None


# ------------------------------------------------------------------------------------ sending


def _rank() -> int:
    for name in ("RANK", "LOCAL_RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID"):
        value = os.environ.get(name, "")
        if value.isdigit():
            return int(value)
    return 0


def _connect(state: _State) -> Optional[socket.socket]:
    link = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        link.setblocking(False)
        link.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER_BYTES)
        link.connect(state.path)
        torch = sys.modules.get("torch")
        hello = {
            "kind": "hello",
            "version": VERSION,
            "pid": os.getpid(),
            "rank": _rank(),
            "python": "%d.%d.%d" % sys.version_info[:3],
            "torch": str(getattr(torch, "__version__", "")),
        }
        link.send(JSON_MAGIC + json.dumps(hello).encode())
    except BlockingIOError:
        link.close()
        return None
    except Exception:
        link.close()
        raise
    state.socket = link
    return link


def _send(state: _State, message: bytes) -> bool:
    """Send without ever waiting.

    Returns:
        False when the governor is too slow to take it now.

    Raises:
        OSError: There is no governor any more.
    """
    link = state.socket or _connect(state)
    if link is None:
        return False
    try:
        link.send(message)
    except BlockingIOError:
        return False
    return True


# -------------------------------------------------------------------------------- optimizer steps


def _ends_mini_batch(state: _State, optimizer: Any) -> bool:
    """Whether this optimizer's step ends a mini-batch, and so leads until another one does.

    With one optimizer every step does. With several, the one that ended the last mini-batch leads:
    the others step in its shadow, until one of them steps twice without it (the leader is slower,
    or gone), a new training batch was fetched in between, or the leader no longer exists. So a
    pair that alternates counts once a batch, whichever of the two runs only every k-th batch.
    """
    key = id(optimizer)
    lead = state.lead() if state.lead is not None else None
    if lead is optimizer or lead is None or state.fetched or key in state.since:
        if lead is not optimizer:
            state.lead = weakref.ref(optimizer)
        state.since.clear()
        return True
    state.since.add(key)
    return False


def _close_pause(state: _State, end: float) -> None:
    if state.pause_start is not None:
        state.pause += max(0.0, end - state.pause_start)
        state.pause_start = None


def _end_step(state: _State, now: float) -> None:
    """Account for one finished mini-batch and send it."""
    _close_pause(state, state.pause_end)
    _count_sources(state)
    state.steps += 1
    state.fetched = False
    state.last_end = now
    state.thread = threading.get_ident()
    message = STEP.pack(
        STEP_MAGIC, state.steps, now, state.wait, state.pause, 0.0, state.samples, state.tokens
    )
    if _send(state, message):
        state.clear()


def _count_sources(state: _State) -> None:
    if not state.keys:
        return
    for key in state.keys:
        source = state.sources.setdefault(key, _Source(state.steps))
        source.hits += 1
    # The batch that came last before a step was trained on, whatever the past says.
    last = state.sources[state.last_key]
    last.hits = max(last.hits, state.steps - last.first + 1)
    state.keys.clear()


def _enter(optimizer: Any) -> None:
    stack = _local.stack
    counts = True
    for entry in stack:
        if entry[0] is optimizer:
            counts = False  # super().step(): the outermost call is the step
        else:
            entry[1] = False  # a wrapper around other optimizers: those inside are the steps
    stack.append([optimizer, counts])


def _leave(optimizer: Any, done: bool) -> None:
    state = _state
    counts = _local.stack.pop()[1]
    if not (counts and done) or state is None or not state.on:
        return
    try:
        if _ends_mini_batch(state, optimizer):
            _end_step(state, _monotonic())
    except Exception:
        _off()


def _poll_compiled() -> None:
    """Count a step that ran inside compiled code, now that plain Python is back."""
    _mark.stepped = False
    state = _state
    if state is None or not state.on:
        return
    try:
        _end_step(state, _monotonic())
    except Exception:
        _off()


def _wrap_step(step: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(step)
    def rlgov_step(self: Any, *args: Any, **kwargs: Any) -> Any:
        if _compiling():
            # The compiler reads this branch only: a store of a constant is all it can keep.
            out = step(self, *args, **kwargs)
            _mark.stepped = True
            return out
        _enter(self)
        try:
            out = step(self, *args, **kwargs)
        except BaseException:
            _leave(self, False)
            raise
        _leave(self, True)
        return out

    rlgov_step._rlgov = True  # type: ignore[attr-defined]
    return rlgov_step


def _wrap_zero_grad(zero_grad: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(zero_grad)
    def rlgov_zero_grad(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not _compiling() and _mark.stepped:
            _poll_compiled()
        return zero_grad(self, *args, **kwargs)

    return rlgov_zero_grad


def _wrap_patcher(patcher: Callable[..., Any]) -> Callable[..., Any]:
    """Follow torch where it wraps ``step`` of every optimizer class that is instantiated."""

    @functools.wraps(patcher)
    def rlgov_patch_step(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = patcher(self, *args, **kwargs)
        try:
            cls = type(self)
            if not getattr(cls.step, "_rlgov", False):
                cls.step = _wrap_step(cls.step)
        except Exception:
            _off()
        return result

    return rlgov_patch_step


def _patch_optimizer(module: Any) -> None:
    global _compiling  # noqa: PLW0603 - one process, one hook
    torch = sys.modules.get("torch")
    compiler = getattr(torch, "compiler", None) or sys.modules.get("torch.compiler")
    _compiling = getattr(compiler, "is_compiling", _never)
    base = module.Optimizer
    names = [n for n in ("_patch_step_function", "_hook_for_profile") if hasattr(base, n)]
    for name in names or ["__init__"]:
        setattr(base, name, _wrap_patcher(getattr(base, name)))
    base.zero_grad = _wrap_zero_grad(base.zero_grad)


# ------------------------------------------------------------------------------- batches, pauses


def _describe(batch: Any) -> Tuple[int, int]:
    """Samples and tokens of a batch (-1 where unknown), from shapes alone."""
    torch = sys.modules.get("torch")
    if torch is None:
        return -1, -1
    first = _first_tensor(batch, torch.Tensor, [64])
    if first is None or first.dim() == 0:
        return -1, -1
    samples = int(first.shape[0])
    whole = first.dtype in (torch.int64, torch.int32, torch.int16, torch.uint8, torch.int8)
    if first.dim() == 2 and whole:
        return samples, samples * int(first.shape[1])
    return samples, -1


def _first_tensor(item: Any, tensor: type, budget: List[int]) -> Any:
    budget[0] -= 1
    if budget[0] < 0:
        return None
    if isinstance(item, tensor):
        return item
    if hasattr(item, "keys") and hasattr(item, "values"):
        if "input_ids" in item:
            return _first_tensor(item["input_ids"], tensor, budget)
        item = item.values()
    elif not isinstance(item, (list, tuple)):
        return None
    for part in item:
        found = _first_tensor(part, tensor, budget)
        if found is not None:
            return found
    return None


def _credit(state: _State, shape: Tuple[int, int]) -> None:
    samples, tokens = shape
    if samples >= 0:
        state.samples = max(state.samples, 0) + samples
    if tokens >= 0:
        state.tokens = max(state.tokens, 0) + tokens


def _fetched(state: _State, loader: Any, start: float, batch: Any, ahead: bool) -> None:
    """Account for one call of a data loader's ``__next__`` (``batch`` None: it had no more).

    A dataset is trained on when its batches came last before a step, or in more than three of
    four steps; anything else is evaluation, and the time until training goes on is a pause.
    """
    now = _monotonic()
    key = id(getattr(loader, "_dataset", loader))
    train = state.is_train(key)
    if batch is not None:
        if state.steps == 0 and key != state.last_key:
            state.clear()  # a look at other data before training begins
        state.keys.add(key)
        state.last_key = key
    if train:
        _fetched_to_train(state, loader, start, now, batch, ahead)
        return
    if state.pause_start is None:
        resumed = state.train_end > state.last_end
        state.pause_start = start if resumed else state.last_end
    state.pause_end = now


def _fetched_to_train(
    state: _State, loader: Any, start: float, now: float, batch: Any, ahead: bool
) -> None:
    _close_pause(state, start)
    if state.thread in (0, threading.get_ident()):
        state.wait += now - start
    shape = None
    if batch is not None:
        state.train_end = now
        state.fetched = True
        shape = _describe(batch)
    if ahead:
        # This loader reads one batch ahead: what the job gets now is what we saw last time.
        shape, loader._rlgov_ahead = getattr(loader, "_rlgov_ahead", None), shape
    if shape is not None:
        _credit(state, shape)


def _wrap_next(fetch: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(fetch)
    def rlgov_next(self: Any) -> Any:
        state = _state
        if _compiling() or state is None or not state.on or _local.fetching:
            return fetch(self)
        if _mark.stepped:
            _poll_compiled()
        start = _monotonic()
        batch = None
        _local.fetching = True
        try:
            batch = fetch(self)
            return batch
        finally:
            _local.fetching = False
            try:
                ahead = sys._getframe(1).f_code.co_filename.endswith(_LOOKAHEAD_FILE)
                _fetched(state, self, start, batch, ahead)
            except Exception:
                _off()

    return rlgov_next


def _patch_loader(module: Any) -> None:
    base = module._BaseDataLoaderIter
    base.__next__ = _wrap_next(base.__next__)
    if "next" in base.__dict__:
        base.next = base.__next__


def _wrap_save(save: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(save)
    def rlgov_save(*args: Any, **kwargs: Any) -> Any:
        state = _state
        if state is None or not state.on or state.saving:
            return save(*args, **kwargs)
        start = _monotonic()
        state.saving += 1
        try:
            return save(*args, **kwargs)
        finally:
            state.saving -= 1
            if state.pause_start is None:
                state.pause += _monotonic() - start

    return rlgov_save


def _patch_save(module: Any) -> None:
    module.save = _wrap_save(module.save)


def _patch_save_file(module: Any) -> None:
    module.save_file = _wrap_save(module.save_file)


# --------------------------------------------------------------------------------------- start up

_PATCHES: Dict[str, Callable[[Any], None]] = {
    "torch.optim.optimizer": _patch_optimizer,
    "torch.utils.data.dataloader": _patch_loader,
    "torch.serialization": _patch_save,
    "safetensors.torch": _patch_save_file,
}


class _Finder:
    """Lets a few modules load exactly as they would, then patches them."""

    def __init__(self) -> None:
        self.waiting = dict(_PATCHES)

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """Find with everyone else's finders; add a call after the module has run."""
        patch = self.waiting.pop(name, None)
        if patch is None:
            return None
        for finder in list(sys.meta_path):
            find = getattr(finder, "find_spec", None)
            spec = find(name, path, target) if finder is not self and find else None
            if spec is not None:
                _after_exec(spec.loader, patch)
                return spec
        return None


def _after_exec(loader: Any, patch: Callable[[Any], None]) -> None:
    try:
        exec_module = loader.exec_module

        def rlgov_exec_module(module: Any) -> None:
            del loader.exec_module
            exec_module(module)
            _apply(patch, module)

        loader.exec_module = rlgov_exec_module
    except Exception:
        _off()


def _apply(patch: Callable[[Any], None], module: Any) -> None:
    try:
        patch(module)
    except Exception:
        _off()


def _after_fork() -> None:
    """A forked child is another process: it counts from zero over its own connection."""
    global _state  # noqa: PLW0603 - one process, one hook
    old = _state
    if old is None:
        return
    try:
        if old.socket is not None:
            old.socket.close()
        _local.stack = []
        _mark.stepped = False
        _state = _State(old.path)
        _state.on = old.on
    except Exception:
        _off()


def install() -> None:
    """Start watching, if the environment names a governor's socket. Never raises."""
    global _state  # noqa: PLW0603 - one process, one hook
    try:
        path = os.environ.get(SOCKET_VARIABLE)
        if not path or _state is not None:
            return
        _state = _State(path)
        os.register_at_fork(after_in_child=_after_fork)
        finder = _Finder()
        for name, patch in _PATCHES.items():
            if name in sys.modules:
                finder.waiting.pop(name)
                _apply(patch, sys.modules[name])
        sys.meta_path.insert(0, finder)
    except Exception:
        _off()
