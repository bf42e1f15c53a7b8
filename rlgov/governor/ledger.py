"""The ledger: what every part of a run cost, and what it saved.

Windows are kept by kind. The saving compares decided windows with windows that ran as found, in the
same run; exploration is inside it, since every decided window counts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal

from rlgov.boards.base import Setting
from rlgov.governor.live import LiveWindow, Stretch
from rlgov.governor.statistics import Interval, log_ratio_interval
from rlgov.governor.stepsize import StepSize

Kind = Literal["reference", "audit", "decided"]


@dataclass(frozen=True, slots=True)
class Entry:
    """What is kept of a window: a run of days has a hundred thousand of them.

    Attributes:
        steps: Steps.
        train_s: Seconds of training.
        train_j: Joules of training; ``None`` where they were not metered.
        tokens: Tokens, where known for every step.
    """

    steps: int
    train_s: float
    train_j: float | None
    tokens: int | None

    @staticmethod
    def of(stretch: Stretch) -> Entry:
        """The entry of a stretch."""
        return Entry(stretch.steps, stretch.train_s, stretch.train_j, stretch.tokens)


@dataclass
class Account:
    """Sums over stretches of one kind.

    Attributes:
        steps: Steps.
        train_s: Seconds of training.
        train_j: Joules of training, over the steps that were metered.
        metered_steps: Steps whose energy is known.
    """

    steps: int = 0
    train_s: float = 0.0
    train_j: float = 0.0
    metered_steps: int = 0

    def add(self, entry: Entry) -> None:
        """Count an entry."""
        self.steps += entry.steps
        self.train_s += entry.train_s
        if entry.train_j is not None:
            self.train_j += entry.train_j
            self.metered_steps += entry.steps

    @property
    def j_per_step(self) -> float | None:
        """Mean joules a step; ``None`` where nothing was metered."""
        return self.train_j / self.metered_steps if self.metered_steps else None

    @property
    def s_per_step(self) -> float | None:
        """Mean seconds a step."""
        return self.train_s / self.steps if self.steps else None


@dataclass
class Ledger:
    """Everything that a run's summary is made of.

    Attributes:
        windows: Complete windows by kind.
        settling: Steps after changes of setting.
        tail: Steps of the window that the job's end cut short.
        pause_s: Seconds outside training.
        pause_j: Joules outside training; NaN once a pause was not metered.
        setting_s: Seconds of decided windows by setting, settling included.
        rail_j: Joules by rail, where metered.
        unmetered: Cause -> rails (the total is one) times stretches without a figure.
        size: Size of a step, by its tokens.
    """

    windows: dict[Kind, list[Entry]] = field(
        default_factory=lambda: {"reference": [], "audit": [], "decided": []}
    )
    settling: Account = field(default_factory=Account)
    tail: Account = field(default_factory=Account)
    pause_s: float = 0.0
    pause_j: float = 0.0
    setting_s: dict[str, float] = field(default_factory=dict)
    rail_j: dict[str, float] = field(default_factory=dict)
    unmetered: dict[str, int] = field(default_factory=dict)
    size: StepSize = field(default_factory=StepSize)

    def add(self, kind: Kind, window: LiveWindow, complete: bool) -> None:
        """Take in a window; one that the job's end cut short counts as tail."""
        for stretch in (window.settling, window.metered):
            if stretch is not None:
                self._common(stretch)
                if kind == "decided":
                    self._time_at(window.asked, stretch)
        if window.settling is not None:
            self.settling.add(Entry.of(window.settling))
        if window.metered is None:
            return
        if complete:
            self.windows[kind].append(Entry.of(window.metered))
        else:
            self.tail.add(Entry.of(window.metered))

    def account(self, *kinds: Kind) -> Account:
        """Sums over all windows of these kinds."""
        account = Account()
        for kind in kinds:
            for entry in self.windows[kind]:
                account.add(entry)
        return account

    @property
    def steps(self) -> int:
        """Every step that any stretch holds."""
        windows = self.account("reference", "audit", "decided").steps
        return windows + self.settling.steps + self.tail.steps

    @property
    def energy_j(self) -> float | None:
        """Joules of the whole run, pauses included; ``None`` where a part was not metered."""
        whole = [self.account("reference", "audit", "decided"), self.settling, self.tail]
        if any(a.metered_steps < a.steps for a in whole) or math.isnan(self.pause_j):
            return None
        return sum(a.train_j for a in whole) + self.pause_j

    def saving(self) -> Interval | None:
        """Saving of decided against as-found windows at equal step size, with its interval."""
        ratio = log_ratio_interval(self._joules("decided"), self._joules("reference", "audit"))
        return None if ratio is None else ratio.map(lambda log: 1.0 - math.exp(log))

    def slowdown(self) -> Interval | None:
        """Slowdown of decided against as-found windows at equal step size, with its interval."""
        ratio = log_ratio_interval(self._seconds("decided"), self._seconds("reference", "audit"))
        return None if ratio is None else ratio.map(lambda log: math.exp(log) - 1.0)

    def _joules(self, *kinds: Kind) -> list[float]:
        """Joules a step of mean size, for every metered window of these kinds.

        Sensors that showed no more than the window's pauses cost leave nothing to compare.
        """
        metered = [(e, e.train_j) for kind in kinds for e in self.windows[kind]]
        return [joules / self._effective(e) for e, joules in metered if joules and joules > 0]

    def _seconds(self, *kinds: Kind) -> list[float]:
        entries = [e for kind in kinds for e in self.windows[kind] if e.train_s > 0]
        return [e.train_s / self._effective(e) for e in entries]

    def _effective(self, entry: Entry) -> float:
        return entry.steps * self.size.size(entry.tokens, entry.steps)

    def settings_time_share(self) -> dict[str, float]:
        """Share of the decided time at each setting, the largest first."""
        total = sum(self.setting_s.values())
        shares = sorted(self.setting_s.items(), key=lambda item: -item[1])
        return {name: seconds / total for name, seconds in shares} if total > 0 else {}

    def _time_at(self, asked: Setting, stretch: Stretch) -> None:
        seconds = stretch.t1_s - stretch.t0_s
        self.setting_s[str(asked)] = self.setting_s.get(str(asked), 0.0) + seconds

    def _common(self, stretch: Stretch) -> None:
        self.pause_s += stretch.pause_s
        self.pause_j += math.nan if stretch.pause_j is None else stretch.pause_j
        for rail, joules in stretch.energy.rail_j.items():
            self.rail_j[rail] = self.rail_j.get(rail, 0.0) + joules
        for reason in stretch.energy.quality.values():
            cause = reason.partition(" (")[0]
            self.unmetered[cause] = self.unmetered.get(cause, 0) + 1
