"""What is behind the files: a twin that lives in real time and takes its clocks from them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace

from rlgov.boards.base import Reading, Setting
from rlgov.boards.emulate.clocks import Emc, FreqRange
from rlgov.boards.emulate.nodes import Number
from rlgov.boards.emulate.profiles import Profile, Rail
from rlgov.boards.twin import TwinSpec, load_of
from rlgov.boards.twin.board import TwinBoard
from rlgov.work import Work, make_work

LONGEST_S = 2.0
"""After a longer sleep the machine does not catch up: it cools in our absence all the same."""

_LEAST_S = 0.02
_BATCH_TOKENS = 2048.0


class Machine:
    """A board of one profile.

    Args:
        profile: The board and its release.
        spec: Its twin.
        seed: Of sensor noise.
        now: Real time in seconds.

    Attributes:
        load: Per mille of the time that the GPU trains; settable.
        heat_hz: What heat holds the GPU's maximum down to, 0 for nothing; settable.
        offline: Cores that are offline.
        gpu: The GPU's bounds.
        cpus: The bounds of each CPU policy, by its first core.
        emc: The memory clock.
        emc_range: Its bounds, on boards that have them in place of a lock.
    """

    def __init__(
        self,
        profile: Profile,
        spec: TwinSpec,
        seed: int = 1,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self.profile = profile
        self.load = Number(600)
        self.heat_hz = Number(0)
        self.offline: set[int] = set()
        strict = profile.strict
        self.gpu = FreqRange(profile.gpu_hz, strict=strict, cap=lambda: self.heat_hz.value or None)
        self.cpus = {
            cores[0]: FreqRange(
                profile.cpu_khz,
                strict=strict,
                low=profile.cpu_floor_khz,
                present=lambda cores=tuple(cores): not set(cores) <= self.offline,  # type: ignore[misc]
            )
            for cores in profile.policies
        }
        self.emc = Emc(profile.emc_hz, lambda: self.clock_mhz("emc") * 1e6)
        self.emc_range = FreqRange(profile.emc_hz, strict=False) if profile.emc == "bwmgr" else None
        self._twin = TwinBoard(spec, seed)
        self._load = load_of(_training_step(), spec)
        self._now = now
        self._last_s = now()
        self._busy_s = 0.0
        self._work = self._twin.read()

    def reading(self) -> Reading:
        """The twin's sensors, now; loads and clocks are those of the work, as means over time."""
        self._catch_up()
        share = min(self.load.value / 1000.0, 1.0)
        loads = {k: None if v is None else v * share for k, v in self._work.utilisation.items()}
        return replace(self._twin.read(), utilisation=loads, clocks_mhz=self._work.clocks_mhz)

    def clock_mhz(self, knob: str) -> float:
        """The twin's clock of a knob; 0 for what it does not know."""
        return self.reading().clocks_mhz.get(knob) or 0.0

    def gpu_hz(self) -> float:
        """The GPU's clock; 0 while nothing runs on it and its rail is gated."""
        if self.load.value == 0:
            return 0.0
        pinned = self.gpu.pinned
        low, high = self.gpu.bounds
        free = self.gpu.snap(round(self.clock_mhz("gpu") * 1e6))
        return pinned if pinned is not None else min(max(free, low), high or free)

    def cpu_khz(self, first: int) -> float:
        """The clock of a CPU policy."""
        part = self.cpus[first]
        low, high = part.bounds
        free = part.snap(round(self.clock_mhz("cpu") * 1e3))
        return part.pinned or min(max(free, low), high)

    def emc_range_hz(self) -> int | None:
        """The memory clock that its bounds leave no choice about."""
        return None if self.emc_range is None else self.emc_range.pinned

    def watts(self, rail: Rail) -> float:
        """Power of a rail of the board."""
        power_w = self.reading().power_w
        if rail.label in power_w:
            return power_w[rail.label]
        roles = self._by_role(power_w)
        return sum(roles.get(role, 0.0) * share for role, share in rail.shares.items())

    def _by_role(self, power_w: Mapping[str, float]) -> dict[str, float]:
        roles = {"total": self._twin.read().total_w or 0.0}
        for rail, watts in power_w.items():
            role = self._twin.spec.rail_roles.get(rail, "sys")
            roles[role] = roles.get(role, 0.0) + watts
        return roles

    def _catch_up(self) -> None:
        """Let the twin live until now."""
        elapsed_s = self._now() - self._last_s
        if elapsed_s < _LEAST_S:
            return
        self._last_s += elapsed_s
        self._twin.apply(self._setting())
        self._live(min(elapsed_s, LONGEST_S))
        self._twin.drain()

    def _live(self, seconds: float) -> None:
        """Train for the loaded share of ``seconds`` (and of what a long step overran), then idle.

        The twin's own clock runs ahead by at most a step, which is worked off before the next one.
        """
        share = min(self.load.value / 1000.0, 1.0)
        self._busy_s += seconds * share
        while self._busy_s > 0.0:
            before_s = self._twin.now_s()
            self._busy_s -= self._twin.advance(self._load) - before_s
            self._work = self._twin.read()
        if share < 1.0:
            self._twin.idle(seconds * (1.0 - share))
        if share == 0.0:
            self._work = self._twin.read()

    def _setting(self) -> Setting:
        """The twin's setting that the files stand for."""
        emc = self.emc_range.pinned if self.emc_range else self.emc.pinned
        cpus = [part for part in self.cpus.values() if part.present()]
        cpu = min((p.pinned or p.ceiling for p in cpus), default=None)
        free = all(p.pinned is None and p.ceiling == p.table[-1] for p in cpus)
        gpu = self.gpu.pinned
        if gpu is None and self.gpu.ceiling < self.gpu.table[-1]:
            gpu = self.gpu.ceiling
        wanted = {
            "gpu": _mhz(gpu, 1e6),
            "cpu": None if free else _mhz(cpu, 1e3),
            "emc": _mhz(emc, 1e6),
        }
        levels = {knob.name: knob.allowed_mhz for knob in self._twin.knobs}
        return Setting(
            **{
                name: min(levels[name], key=lambda level: abs(level - mhz))
                for name, mhz in wanted.items()
                if mhz is not None and name in levels
            }
        )


def _mhz(value: int | None, unit: float) -> float | None:
    return None if value is None else value / unit


def _training_step() -> Work:
    """One step of fine-tuning a small language model."""
    flop = 2.0 * 60e6 * _BATCH_TOKENS
    return make_work(
        flop=(flop, 2.0 * flop, 1e9),
        byte=(1.5e9, 3e9, 2e9),
        launch=(200.0, 400.0, 100.0),
        host_gcycle=(0.01, 0.01, 0.005),
        samples=16.0,
        tokens=_BATCH_TOKENS,
    )
