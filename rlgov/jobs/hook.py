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

import atexit
import errno
import functools
import importlib
import json
import math
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
STEP = struct.Struct("<4sQdddqq")
"""A step message: magic, steps so far, time, data wait, pause, samples, tokens.

``steps so far`` counts from 1 in the sending process. The time is `time.monotonic` in seconds; the
waits (seconds), samples and tokens cover every step since the last message that got through; -1
stands for unknown.
"""

STEP_MAGIC = b"RGS1"
JSON_MAGIC = b"RGJ1"
"""What the two kinds of message begin with; the second is followed by a JSON object."""

_monotonic = time.monotonic
_perf = time.perf_counter
_MEASURE_FROM = 2  # steps: the first ones allocate and warm up
_MEASURE_AGAIN = 200  # steps, where no shape is visible; doubled each time
_MEASURE_SHAPES = 16
_MEASURE_TRIES = 64
_DISPATCH_S = 5e-6  # what watching one operation costs the step, at least
_LAST_WAIT_S = 0.5
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
        self.sent = 0
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
        self.optimizers: Any = weakref.WeakSet()
        self.meter = _Meter()
        self.notes: List[bytes] = []
        self.step_samples = -1
        self.step_tokens = -1
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


class _Meter:
    """When the work of a step is counted, and the counting that runs now."""

    def __init__(self) -> None:
        self.mode: Any = None
        self.thread = 0
        self.done: Set[Optional[int]] = set()
        self.tries = 0
        self.next_step = _MEASURE_FROM
        self.wait = _MEASURE_AGAIN
        self.estimated: Set[Optional[int]] = set()
        self.plain_s = 0.0
        self.plain_size = -1
        self.spoilt = False  # no further counting: estimate
        self.broken = False  # not even that


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
        try:
            _leave_mode(state)
        except Exception:
            pass
        if state.socket is not None:
            try:
                state.socket.close()
            except Exception:
                pass
            state.socket = None


# ------------------------------------------------------------------------------------ sending


def _number(names: Tuple[str, ...], missing: int) -> int:
    for name in names:
        value = os.environ.get(name, "")
        if value.isdigit():
            return int(value)
    return missing


def _rank() -> int:
    return _number(("RANK", "LOCAL_RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID"), 0)


def _ranks() -> int:
    return _number(("WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_NTASKS"), 1)


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
            "ranks": _ranks(),
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
    except OSError as error:
        if error.errno in (errno.EAGAIN, errno.ENOBUFS):
            return False
        raise
    return True


def _send_step(state: _State, message: bytes) -> bool:
    """Send a step after the notes that explain it, which wait for room rather than get lost."""
    while state.notes:
        if not _send(state, state.notes[0]):
            return False
        state.notes.pop(0)
    return _send(state, message)


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
    state.thread = threading.get_ident()
    if not state.meter.broken:
        try:
            _end_measure(state, now)
        except Exception:
            state.meter.broken = state.meter.spoilt = True
    state.last_end = now
    _credit_step(state)
    _report(state)
    if not state.sources and state.steps >= state.meter.next_step:
        state.meter.next_step = state.steps + state.meter.wait
        state.meter.wait *= 2
        _begin_measure(state, None)


def _report(state: _State) -> None:
    message = STEP.pack(
        STEP_MAGIC,
        state.steps,
        state.last_end,
        state.wait,
        state.pause,
        state.samples,
        state.tokens,
    )
    if _send_step(state, message):
        state.sent = state.steps
        state.clear()


def _credit_step(state: _State) -> None:
    if state.step_samples >= 0:
        state.samples = max(state.samples, 0) + state.step_samples
    if state.step_tokens >= 0:
        state.tokens = max(state.tokens, 0) + state.step_tokens
    state.step_samples = state.step_tokens = -1


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


def _enter(optimizer: Any, closure: bool) -> None:
    stack = _local.stack
    counts = True
    for entry in stack:
        if entry[0] is optimizer:
            counts = False  # super().step(): the outermost call is the step
        else:
            entry[1] = False  # a wrapper around other optimizers: those inside are the steps
    stack.append([optimizer, counts, closure])


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
        _enter(self, bool(args or kwargs))
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
            if _state is not None:
                _state.optimizers.add(self)
            if not getattr(cls.step, "_rlgov", False):
                cls.step = _wrap_step(cls.step)
        except Exception:
            _off()
        return result

    return rlgov_patch_step


def _patch_optimizer(module: Any) -> None:
    base = module.Optimizer
    names = [n for n in ("_patch_step_function", "_hook_for_profile") if hasattr(base, n)]
    for name in names or ["__init__"]:
        setattr(base, name, _wrap_patcher(getattr(base, name)))
    base.zero_grad = _wrap_zero_grad(base.zero_grad)


def _patch_compiler(module: Any) -> None:
    global _compiling  # noqa: PLW0603 - one process, one hook
    _compiling = getattr(module, "is_compiling", _never)  # absent before torch 2.1


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
        state.step_samples = max(state.step_samples, 0) + samples
    if tokens >= 0:
        state.step_tokens = max(state.step_tokens, 0) + tokens


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
            state.step_samples = state.step_tokens = -1  # other data, before training begins
        state.keys.add(key)
        state.last_key = key
    if train:
        _fetched_to_train(state, loader, start, now, batch, ahead)
        return
    _abandon_measure(state)
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
        shape = _describe(batch)
        if not state.fetched and state.steps >= _MEASURE_FROM:
            _measure_shape(state, shape)
        state.train_end = now
        state.fetched = True
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
        _abandon_measure(state)
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


# ---------------------------------------------------------------------------------- counting work
#
# For one step a shape, a dispatch mode of torch's own looks at every operation: it passes each on
# unchanged and notes the sizes. It is entered and left between two steps, on the training thread,
# and only where nothing else could mind: no other mode, no profiler, nothing compiled.


def _bucket(size: int) -> Optional[int]:
    """Shapes within about 20 % of each other share a count, scaled by their size."""
    return None if size <= 0 else round(4 * math.log2(size))


def _measure_shape(state: _State, shape: Tuple[int, int]) -> None:
    samples, tokens = shape
    key = _bucket(tokens if tokens > 0 else samples)
    meter = state.meter
    if key in meter.done or len(meter.done) >= _MEASURE_SHAPES:
        return
    if meter.tries >= _MEASURE_TRIES:
        return
    _begin_measure(state, key)


def _begin_measure(state: _State, key: Optional[int]) -> None:
    """Start counting; steps go on being seen where that fails."""
    meter = state.meter
    if meter.mode is not None or meter.spoilt:
        return
    meter.tries += 1
    try:
        _enter_mode(state, key)
    except Exception:
        meter.spoilt = True


def _enter_mode(state: _State, key: Optional[int]) -> None:
    meter = state.meter
    torch = sys.modules["torch"]
    thread = threading.get_ident()
    if thread != state.thread or not _may_watch(torch):
        return
    mode = _watcher(torch)
    mode.key = key
    mode.tally = _Tally()
    mode.__enter__()
    meter.mode, meter.thread = mode, thread
    _guard_backward(torch, state)


def _may_watch(torch: Any) -> bool:
    if not hasattr(torch, "utils") or _has_compiled():
        return False
    profiling = getattr(torch.autograd, "_profiler_enabled", None)
    if profiling is not None and profiling():
        return False
    return _current_mode(torch) is None


def _current_mode(torch: Any) -> Any:
    dispatch = sys.modules.get("torch.utils._python_dispatch")
    current = getattr(dispatch, "_get_current_dispatch_mode", None)
    if current is None:
        current = torch._C._get_torch_dispatch_mode  # torch 1.13
    return current()


def _has_compiled() -> bool:
    """Whether anything was or may soon be compiled; the compiler gives up under a mode."""
    utils = sys.modules.get("torch._dynamo.utils")
    counters = getattr(utils, "counters", {})
    if counters.get("frames", {}).get("total", 0):
        return True
    frames = sys.modules.get("torch._dynamo.eval_frame")
    backends = getattr(frames, "cached_backends", {})
    return any(backend is not None for backend in backends.values())


def _leave_mode(state: _State) -> Any:
    """Leave the running mode if that can be done now; its tally, or None."""
    meter = state.meter
    mode = meter.mode
    if mode is None or meter.thread != threading.get_ident():
        return None
    torch = sys.modules["torch"]
    if _current_mode(torch) is not mode:
        mode.tally.valid = False  # another mode was entered inside ours: leave when it is gone
        return None
    mode.__exit__(None, None, None)
    meter.mode = None
    _unguard_backward(torch)
    return mode.tally


def _abandon_measure(state: _State) -> None:
    """Stop counting without a result: what runs next is no part of a step."""
    if state.meter.mode is None:
        return
    try:
        _leave_mode(state)
    except Exception:
        _off()


def _end_measure(state: _State, now: float) -> None:
    meter = state.meter
    size = state.step_tokens if state.step_tokens > 0 else state.step_samples
    if meter.mode is None:
        meter.plain_s = max(0.0, now - state.last_end - state.wait - state.pause)
        meter.plain_size = size
        if not meter.done and state.steps > _MEASURE_FROM + 1:
            _estimate(state, size)
        return
    key = meter.mode.key
    tally = _leave_mode(state)
    if tally is None or not tally.valid:
        return
    meter.done.add(key)
    ratio = size / meter.plain_size if size > 0 and meter.plain_size > 0 else 1.0
    note = tally.note(meter.plain_s * ratio)
    note.update(kind="work", source="counted", size=max(size, 0))
    state.notes.append(JSON_MAGIC + json.dumps(note).encode())


def _estimate(state: _State, size: int) -> None:
    """Where counting is not possible: six operations a parameter and token, once a shape."""
    meter = state.meter
    key = _bucket(size)
    if key in meter.estimated or len(meter.estimated) >= _MEASURE_SHAPES:
        return
    count = byte = tensors = 0
    for optimizer in list(state.optimizers):
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                count += parameter.numel()
                byte += parameter.numel() * parameter.element_size()
                tensors += 1
    if not count:
        return
    meter.estimated.add(key)
    half = byte < 4 * count
    flop = [2.0 * count * max(size, 1), 4.0 * count * max(size, 1)]
    nothing = [0.0, 0.0]
    note = {
        "kind": "work",
        "source": "estimated",
        "size": max(size, 0),
        "flop": (nothing if half else flop) + [10.0 * count],
        "flop_half": (flop if half else nothing) + [0.0],
        "byte": [1.0 * byte, 2.0 * byte, 5.0 * byte],
        "launch": [2.0 * tensors, 4.0 * tensors, 4.0 * tensors],
        "host_s": [0.0, 0.0, 0.0],
    }
    state.notes.append(JSON_MAGIC + json.dumps(note).encode())


class _Tally:
    """What one step did, per phase (forward, backward, optimizer)."""

    def __init__(self) -> None:
        self.valid = True
        self.differs = False
        self.flop = [0.0, 0.0, 0.0]
        self.half = [0.0, 0.0, 0.0]
        self.byte = [0.0, 0.0, 0.0]
        self.launch = [0, 0, 0]
        self.gap_s = [0.0, 0.0, 0.0]
        self.inside_s = 0.0
        self.watched = 0
        self.last = _perf()

    def note(self, plain_s: float) -> Dict[str, Any]:
        """The tally as a message; ``plain_s`` is how long a step takes that is not watched."""
        gaps = sum(self.gap_s)
        host = max(0.0, gaps - _DISPATCH_S * self.watched)
        if plain_s > 0:
            host = min(host, max(0.0, plain_s - self.inside_s))
        share = host / gaps if gaps > 0 else 0.0
        return {
            "flop": self.flop,
            "flop_half": self.half,
            "byte": self.byte,
            "launch": self.launch,
            "host_s": [gap * share for gap in self.gap_s],
        }


def _numel(item: Any) -> int:
    return int(item.numel()) if hasattr(item, "numel") else 0


def _tensors(items: Any, found: List[Any]) -> List[Any]:
    """The tensors among arguments or results, lists of tensors included."""
    for item in items:
        if hasattr(item, "element_size"):
            found.append(item)
        elif isinstance(item, (list, tuple)):
            _tensors(item, found)
    return found


def _flop_mm(args: Any, out: Any) -> float:
    return 2.0 * _numel(out) * int(args[0].shape[-1])


def _flop_addmm(args: Any, out: Any) -> float:
    return 2.0 * _numel(out) * int(args[1].shape[-1])


def _flop_convolution(args: Any, out: Any) -> float:
    weight, transposed = args[1], len(args) > 6 and args[6]
    places = _numel(args[0]) if transposed else _numel(out)
    return 2.0 * places * _numel(weight) / max(1, int(weight.shape[0]))


def _flop_convolution_backward(args: Any, out: Any) -> float:
    grad, x, weight = args[0], args[1], args[2]
    places = _numel(x) if len(args) > 7 and args[7] else _numel(grad)
    wanted = sum(1 for part in out[:2] if part is not None)
    return 2.0 * wanted * places * _numel(weight) / max(1, int(weight.shape[0]))


def _flop_attention(args: Any, _out: Any) -> float:
    query, key, value = args[0], args[1], args[2]
    return 2.0 * _numel(query) * int(key.shape[-2]) + 2.0 * (
        _numel(query) / max(1, int(query.shape[-1])) * int(key.shape[-2]) * int(value.shape[-1])
    )


def _flop_attention_backward(args: Any, out: Any) -> float:
    return 2.5 * _flop_attention(args[1:4], out)


def _flop_fused(args: Any, _out: Any) -> float:
    return 12.0 * sum(_numel(parameter) for parameter in args[0])


def _flop_recurrent(args: Any, _out: Any) -> float:
    tensors = _tensors(args, [])
    x = tensors[0]
    weights = sum(_numel(t) for t in tensors[1:] if t.dim() == 2)
    return 2.0 * weights * _numel(x) / max(1, int(x.shape[-1]))


_FLOP: Dict[str, Callable[[Any, Any], float]] = {
    "aten::mm": _flop_mm,
    "aten::bmm": _flop_mm,
    "aten::mv": _flop_mm,
    "aten::dot": _flop_mm,
    "aten::_scaled_mm": _flop_mm,
    "aten::mkldnn_linear": _flop_mm,
    "aten::linear": _flop_mm,
    "aten::addmm": _flop_addmm,
    "aten::addmv": _flop_addmm,
    "aten::_addmm_activation": _flop_addmm,
    "aten::baddbmm": _flop_addmm,
    "aten::convolution": _flop_convolution,
    "aten::_convolution": _flop_convolution,
    "aten::convolution_overrideable": _flop_convolution,
    "aten::convolution_backward": _flop_convolution_backward,
    "aten::mkldnn_rnn_layer": _flop_recurrent,
    "aten::_cudnn_rnn": _flop_recurrent,
}

_LOOKUPS = frozenset(
    "aten::" + n for n in ("embedding", "index", "index_select", "gather", "_unsafe_index")
)
"""Operations that read only as much of their first argument as they return."""

_FREE = frozenset(
    "aten::" + n
    for n in ("detach", "empty", "empty_like", "empty_strided", "new_empty", "_local_scalar_dense")
)
"""Operations that start no kernel, besides views."""

_DIFFERS = ("prod", "cumprod", "linalg_inv", "linalg_det", "linalg_slogdet", "linalg_svd")
"""Beginnings of operations whose *backward* torch may compute by another formula under a mode."""


def _kind(func: Any) -> Tuple[Any, bool, bool, bool]:
    """What an operation is: its count of operations, view or not, lookup or not, differs or not."""
    name = str(func._schema.name)
    flop = _flop_fused if name.startswith("aten::_fused_") else _FLOP.get(name)
    if "scaled_dot_product" in name or "flash_attention" in name:
        flop = _flop_attention_backward if "backward" in name else _flop_attention
    view = getattr(func, "is_view", None)
    if view is None:
        returns = func._schema.returns
        view = any(r.alias_info is not None and not r.alias_info.is_write for r in returns)
    free = view or name in _FREE
    short = name.split("::")[-1].lstrip("_")
    return flop, bool(free), name in _LOOKUPS, short.startswith(_DIFFERS)


_kinds: Dict[Any, Tuple[Any, bool, bool, bool]] = {}


def _tally(tally: _Tally, func: Any, args: Any, out: Any, phase: int) -> None:
    kind = _kinds.get(func)
    if kind is None:
        kind = _kinds[func] = _kind(func)
    count, free, lookup, differs = kind
    tally.differs = tally.differs or differs
    if free:
        return
    inputs = _tensors(args, [])
    results = _tensors(out if isinstance(out, (list, tuple)) else (out,), [])
    if out is None and isinstance(args[0], (list, tuple)):
        results = _tensors(args[0], [])  # in place on a whole list: its tensors are written
    tally.byte[phase] += _moved(results) + (
        _moved(inputs[1:] + results) if lookup else _moved(inputs)
    )
    tally.launch[phase] += 1
    if not inputs and not results:
        return
    lead = (inputs or results)[0]
    if count is not None:
        flop = count(args, out)
    elif lookup:
        flop = 0.0
    else:
        flop = float(max(sum(map(_numel, results)), _numel(lead)))
    (tally.half if lead.element_size() == 2 else tally.flop)[phase] += flop


def _moved(tensors: List[Any]) -> int:
    return sum(_numel(tensor) * int(tensor.element_size()) for tensor in tensors)


_watchers: List[Any] = []


def _watcher(torch: Any) -> Any:
    """The dispatch mode that looks on (made once, when torch is there to derive it from)."""
    if _watchers:
        return _watchers[0]
    dispatch: Any = importlib.import_module("torch.utils._python_dispatch")

    backward_id = getattr(torch._C, "_current_graph_task_id", None)
    grad_enabled = torch.is_grad_enabled

    def phase_now() -> int:
        if backward_id is not None and backward_id() != -1:
            return 1
        stack = _local.stack
        # A closure runs the forward pass inside the optimizer's step, with gradients enabled.
        return 2 if stack and not (stack[-1][2] and grad_enabled()) else 0

    class RlgovWatcher(dispatch.TorchDispatchMode):  # type: ignore[misc]
        tally: _Tally
        supports_higher_order_operators = True

        @classmethod
        def _should_skip_dynamo(cls) -> bool:
            return False  # skipping would import the compiler for a job that has none

        @classmethod
        def ignore_compile_internals(cls) -> bool:
            return True

        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            start = _perf()
            out = func(*args, **(kwargs or {}))
            end = _perf()
            tally = self.tally
            try:
                phase = phase_now()
                tally.gap_s[phase] += start - tally.last
                tally.inside_s += end - start
                tally.watched += 1
                _tally(tally, func, args, out, phase)
                tally.last = _perf()
            except Exception:
                tally.valid = False
            return out

    _watchers.append(RlgovWatcher())
    return _watchers[0]


def _guard_backward(torch: Any, state: _State) -> None:
    """Leave before a backward pass that would compute another way under a mode."""
    for name in ("backward", "grad"):
        real = getattr(torch.autograd, name)

        def guarded(*args: Any, _real: Any = real, **kwargs: Any) -> Any:
            mode = state.meter.mode
            if mode is not None and mode.tally.differs:
                state.meter.spoilt = True
                _abandon_measure(state)
            return _real(*args, **kwargs)

        functools.update_wrapper(guarded, real)
        guarded._rlgov_real = real  # type: ignore[attr-defined]
        setattr(torch.autograd, name, guarded)


def _unguard_backward(torch: Any) -> None:
    for name in ("backward", "grad"):
        real = getattr(getattr(torch.autograd, name), "_rlgov_real", None)
        if real is not None:
            setattr(torch.autograd, name, real)


# --------------------------------------------------------------------------------------- start up

_PATCHES: Dict[str, Callable[[Any], None]] = {
    "torch.optim.optimizer": _patch_optimizer,
    "torch.compiler": _patch_compiler,
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
        if name not in self.waiting:
            return None
        for finder in list(sys.meta_path):
            find = getattr(finder, "find_spec", None)
            spec = find(name, path, target) if finder is not self and find else None
            if spec is not None:
                self.patch_after_exec(name, spec.loader)
                return spec
        return None

    def patch_after_exec(self, name: str, loader: Any) -> None:
        """Shadow the loader's own method on this one instance, until it has run."""
        try:
            exec_module = loader.exec_module

            def rlgov_exec_module(module: Any) -> None:
                del loader.exec_module
                exec_module(module)
                patch = self.waiting.pop(name, None)
                if patch is not None:
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
        _abandon_measure(old)
        _state = _State(old.path)
        _state.on = old.on
    except Exception:
        _off()


def _at_exit() -> None:
    if _mark.stepped:
        _poll_compiled()
    state = _state
    if state is None or not state.on:
        return
    _abandon_measure(state)
    try:
        if state.sent < state.steps and state.socket is not None:
            # The job is over: now the count of its last steps is worth a moment's wait.
            state.socket.settimeout(_LAST_WAIT_S)
            _report(state)
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
        atexit.register(_at_exit)
        finder = _Finder()
        for name, patch in _PATCHES.items():
            if name in sys.modules:
                finder.waiting.pop(name)
                _apply(patch, sys.modules[name])
        sys.meta_path.insert(0, finder)
    except Exception:
        _off()
