"""`LivePlant`: a board with a running job on it, as the environment sees it.

A window ends with a step; the first steps after a change of setting are left to settle and kept out
of the window's figures, but not out of the ledger: exploring costs what it costs.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from rlgov.boards.base import AS_FOUND, KNOB_NAMES, Board, Reading, Setting
from rlgov.envs.plant import Plant, WindowData, role_watts
from rlgov.envs.simulated import WindowSpec
from rlgov.governor.stepsize import StepSize
from rlgov.jobs.base import Job, JobEnd, StepEvent
from rlgov.metering import Energy, Meter
from rlgov.work import FloatArray

FIRST_SETTLE = 4.0
"""Times the usual settling before the very first window."""


@dataclass(frozen=True)
class Stretch:
    """Steps in a row at one setting, as the ledger keeps them.

    Attributes:
        t0_s: Start on the board's clock.
        t1_s: End.
        steps: Steps that ended in it.
        pause_s: Of its time, what was spent outside training.
        energy: What was metered between start and end.
        pause_j: Joules of the pauses; ``None`` where they were not metered.
        tokens: Tokens, where known for every step.
        samples: Sequences, where known for every step.
        timed: Tokens (where known) and training seconds of every event of a single step.
    """

    t0_s: float
    t1_s: float
    steps: int
    pause_s: float
    energy: Energy
    pause_j: float | None
    tokens: int | None
    samples: int | None
    timed: tuple[tuple[int | None, float], ...] = ()

    @property
    def train_s(self) -> float:
        """Seconds of training."""
        return self.t1_s - self.t0_s - self.pause_s

    @property
    def train_j(self) -> float | None:
        """Joules of training; ``None`` where anything was not metered."""
        if self.energy.total_j is None or self.pause_j is None:
            return None
        return self.energy.total_j - self.pause_j


@dataclass(frozen=True)
class LiveWindow:
    """One window of a live job.

    Attributes:
        asked: The setting asked for.
        took: The setting that the board says took effect.
        settling: Steps after the change, kept out of the figures.
        metered: The window proper; ``None`` when the job ended before it was complete.
        readings: Readings within the window proper.
    """

    asked: Setting
    took: Setting
    settling: Stretch | None
    metered: Stretch | None
    readings: Sequence[Reading] = field(default_factory=list)


class LivePlant(Plant):
    """A board and a job that runs on it.

    Args:
        board: The board.
        job: Its job, on the board's clock.
        drain: Hands over the readings since the last call, in order of time.
        roles: Rail -> what it mostly feeds (`rlgov.envs.plant.ROLES`).
        window: How long a window is.
        settle_s: Seconds after a change during which clocks and sensors settle.
        max_gap_s: Longest distance between readings that the meter bridges.
        on_window: Told of every window, complete or not.
    """

    n = 1

    def __init__(
        self,
        board: Board,
        job: Job,
        drain: Callable[[], Sequence[Reading]],
        roles: Mapping[str, str],
        window: WindowSpec,
        settle_s: float,
        max_gap_s: float,
        on_window: Callable[[LiveWindow], None],
    ) -> None:
        self.board = board
        self.knobs = board.knobs
        self.end: JobEnd | None = None
        self.first_step_s: float | None = None
        self.meter = Meter(board.rails, max_gap_s)
        self._job = job
        self._drain = drain
        self._roles = dict(roles)
        self._window = window
        self._settle_s = settle_s
        self._settled_once = False
        self._on_window = on_window
        self._recent: deque[Reading] = deque()
        self._t_s: float | None = None
        self._setting: Setting | None = None  # the first window settles too: sensors lag
        self._took = Setting()
        self.size = StepSize()

    def reset(self, seed: int | None) -> None:
        """A new episode on the running job: nothing to do but wait for its first step."""
        while self._t_s is None and self.end is None:
            event = self._next()
            if event is not None:
                self._t_s = self.first_step_s = event.t_s

    def window(self, targets_mhz: FloatArray) -> WindowData | None:
        """Turn the knobs and follow the job until the window is complete."""
        if self._t_s is None or self.end is not None:
            return None
        asked = _setting(targets_mhz[0])
        changed = asked != self._setting
        took = self.board.apply(asked) if changed else self._took
        self._setting, self._took = asked, took
        # Steps that ended before the change was made are still to come from the job's queue.
        late_s = max(0.0, self.board.now_s() - self._t_s)
        # Before the first window the sensors still show the idle board, far from what comes.
        settle_s = self._settle_s * (1.0 if self._settled_once else FIRST_SETTLE)
        self._settled_once = True
        settling = self._follow(1, settle_s + late_s) if changed else None
        metered = self._follow(self._window.min_steps, self._window.min_seconds)
        complete = self.end is None
        readings = self._readings_of(metered) if metered else []
        self._on_window(LiveWindow(asked, took, settling, metered, readings))
        if not complete or metered is None:
            return None
        self.meter.forget_before(metered.t0_s)
        if asked == AS_FOUND:
            self.size.learn(metered.timed)
        return self._data(metered, readings)

    def close(self) -> None:
        """Stop following the job; the lease, not the plant, gives the board back."""
        self._job.close()

    def _follow(self, min_steps: int, min_seconds: float) -> Stretch | None:
        """Follow the job for at least so many steps and seconds; ``None`` if it took no step."""
        if self._t_s is None or self.end is not None:
            return None
        t0_s = t_s = self._t_s
        events: list[StepEvent] = []
        pauses: list[tuple[float, float]] = []
        steps, pause_s = 0, 0.0
        while steps < min_steps or t_s - t0_s - pause_s < min_seconds:
            event = self._next()
            if event is None:
                break
            if event.pause_s > 0:
                pauses.append((t_s, min(t_s + event.pause_s, event.t_s)))
                pause_s += pauses[-1][1] - pauses[-1][0]
            events.append(event)
            t_s = event.t_s
            steps += event.steps
        if not events:
            return None
        self._t_s = t_s
        return self._stretch(t0_s, t_s, events, pauses)

    def _stretch(
        self,
        t0_s: float,
        t1_s: float,
        events: Sequence[StepEvent],
        pauses: Sequence[tuple[float, float]],
    ) -> Stretch:
        spent = [self.meter.energy(*pause).total_j for pause in pauses]
        known = [joules for joules in spent if joules is not None]
        return Stretch(
            t0_s=t0_s,
            t1_s=t1_s,
            steps=sum(e.steps for e in events),
            pause_s=sum(b - a for a, b in pauses),
            energy=self.meter.energy(t0_s, t1_s),
            pause_j=sum(known) if len(known) == len(spent) else None,
            tokens=_sum_known([e.tokens for e in events]),
            samples=_sum_known([e.samples for e in events]),
            timed=_timed(t0_s, events),
        )

    def _next(self) -> StepEvent | None:
        """The next step; ``None`` (and `end` set) when the job is over. Readings are taken in."""
        event = self._job.next_event()
        for reading in self._drain():
            self.meter.add(reading)
            self._recent.append(reading)
        if isinstance(event, JobEnd):
            self.end = event
            return None
        return event

    def _readings_of(self, stretch: Stretch) -> list[Reading]:
        while self._recent and self._recent[0].t_s < stretch.t0_s:
            self._recent.popleft()
        return [r for r in self._recent if r.t_s <= stretch.t1_s]

    def _data(self, stretch: Stretch, readings: Sequence[Reading]) -> WindowData:
        seconds = stretch.t1_s - stretch.t0_s
        train_j = stretch.train_j
        effective = stretch.steps * self.size.size(stretch.tokens, stretch.steps)
        joules = stretch.energy.rail_j
        rail_w = np.array([[joules.get(r, np.nan) / seconds for r in self.board.rails]])
        return WindowData(
            step_time_s=np.array([stretch.train_s / effective]),
            step_j=np.array([np.nan if train_j is None else train_j / effective]),
            role_w=role_watts(rail_w, self.board.rails, self._roles),
            utilisation=_means([r.utilisation for r in readings]),
            clocks_mhz=_means([r.clocks_mhz for r in readings]),
            temperature_c=np.array([hottest(readings)]),
            steps=np.array([float(stretch.steps)]),
        )


def _setting(targets_mhz: FloatArray) -> Setting:
    values = zip(KNOB_NAMES, targets_mhz.tolist(), strict=True)
    return Setting(**{name: None if np.isnan(v) else v for name, v in values})


def _timed(t0_s: float, events: Sequence[StepEvent]) -> tuple[tuple[int | None, float], ...]:
    starts = [t0_s, *(e.t_s for e in events[:-1])]
    pairs = zip(events, starts, strict=True)
    return tuple((e.tokens, e.t_s - start - e.pause_s) for e, start in pairs if e.steps == 1)


def _sum_known(values: Sequence[int | None]) -> int | None:
    known = [v for v in values if v is not None]
    return sum(known) if len(known) == len(values) else None


def _means(rows: Sequence[Mapping[str, float | None]]) -> FloatArray:
    """Mean by knob over the rows that know it, ``[1, 3]``; NaN where none does."""
    out = np.full((1, len(KNOB_NAMES)), np.nan)
    for k, name in enumerate(KNOB_NAMES):
        known = [v for row in rows if (v := row.get(name)) is not None]
        if known:
            out[0, k] = float(np.mean(known))
    return out


def hottest(readings: Sequence[Reading]) -> float:
    """Degrees of the hottest zone in the newest reading that has one; NaN where none has."""
    for reading in reversed(readings):
        known = [v for v in reading.temperature_c.values() if v is not None]
        if known:
            return max(known)
    return float("nan")
