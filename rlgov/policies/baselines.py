"""Policies that learn nothing: the marks that a learned one is measured against."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from rlgov.boards.base import KNOB_NAMES, Knob
from rlgov.errors import ConfigError
from rlgov.policies.base import Observation, Policy, PolicyContext, only_offered
from rlgov.work import FloatArray

FIXED_KEYS = tuple(f"{knob}_mhz" for knob in KNOB_NAMES)


class StaticPolicy(Policy):
    """The same setting always: ``as_found``, ``max`` and ``fixed``.

    Args:
        name: See `Policy`.
        targets_mhz: ``[3]``, NaN for auto.
    """

    def __init__(self, name: str, targets_mhz: FloatArray) -> None:
        self.name = name
        self.targets_mhz = targets_mhz

    def act(self, observation: Observation) -> FloatArray:
        """The setting."""
        return only_offered(np.tile(self.targets_mhz, (len(observation), 1)), observation)


class RandomPolicy(Policy):
    """Any setting of the board's tables or auto, each knob alike and on its own."""

    name = "random"

    def __init__(self, context: PolicyContext) -> None:
        by_name = {knob.name: knob.allowed_mhz for knob in context.knobs}
        self._choices = [np.array([np.nan, *by_name.get(name, ())]) for name in KNOB_NAMES]
        self._seed = context.seed
        self._rng = np.random.default_rng(self._seed)

    def begin(self, n: int) -> None:
        """Start the stream of draws anew."""
        self._rng = np.random.default_rng(self._seed)

    def act(self, observation: Observation) -> FloatArray:
        """A draw for every job."""
        drawn = [self._rng.choice(choices, len(observation)) for choices in self._choices]
        return only_offered(np.stack(drawn, axis=1), observation)


class OraclePolicy(Policy):
    """The best static setting of each job, as somebody who knows the truth worked it out.

    Args:
        best: Targets of the jobs at hand, ``[n, 3]``, or of every window where the best changes,
            ``[windows, n, 3]``; asked once an episode.
        name: See `Policy`.
    """

    def __init__(self, best: Callable[[], FloatArray], name: str = "oracle") -> None:
        self.name = name
        self._best = best
        self._schedule_mhz = np.full((1, 0, 3), np.nan)
        self._window = 0

    def begin(self, n: int) -> None:
        """Ask for the settings of the new jobs."""
        best = self._best()
        self._schedule_mhz = best if best.ndim == 3 else best[None]
        self._window = 0

    def act(self, observation: Observation) -> FloatArray:
        """The best static setting, whatever has been seen."""
        targets = self._schedule_mhz[min(self._window, len(self._schedule_mhz) - 1)]
        self._window += 1
        return only_offered(targets, observation)


def as_found(_: PolicyContext, args: Mapping[str, object]) -> Policy:
    """Leave every knob to the board."""
    no_arguments("as_found", args)
    return StaticPolicy("as_found", np.full(3, np.nan))


def pinned_max(context: PolicyContext, args: Mapping[str, object]) -> Policy:
    """Pin every knob at its ceiling."""
    no_arguments("max", args)
    top = {knob.name: knob.allowed_mhz[-1] for knob in context.knobs}
    return StaticPolicy("max", np.array([top.get(name, np.nan) for name in KNOB_NAMES]))


def fixed(context: PolicyContext, args: Mapping[str, object]) -> Policy:
    """Pin the knobs that ``gpu_mhz``, ``cpu_mhz`` and ``emc_mhz`` name.

    Raises:
        ConfigError: An unknown key, a value that is not of the board's table, or none at all.
    """
    given = {key: value for key, value in args.items() if value is not None}
    unknown = sorted(set(given) - set(FIXED_KEYS))
    if unknown or not given:
        what = f"{unknown[0]!r} is none of" if unknown else "give at least one of"
        raise ConfigError(
            f"policy_args.fixed: {what} {', '.join(FIXED_KEYS)}; for example gpu_mhz: 612"
        )
    by_name = {knob.name: knob for knob in context.knobs}
    levels = [_level(by_name, name, given.get(f"{name}_mhz")) for name in KNOB_NAMES]
    return StaticPolicy("fixed", np.array(levels))


def random_settings(context: PolicyContext, args: Mapping[str, object]) -> Policy:
    """Draw every setting."""
    no_arguments("random", args)
    return RandomPolicy(context)


def oracle(context: PolicyContext, args: Mapping[str, object]) -> Policy:
    """The best static setting of each job.

    Raises:
        ConfigError: Nobody knows the truth here.
    """
    no_arguments("oracle", args)
    if context.best is None:
        raise ConfigError("policy=oracle knows what no board tells: it exists on twins only")
    return OraclePolicy(context.best)


def gpu_oracle(context: PolicyContext, args: Mapping[str, object]) -> Policy:
    """The best static GPU clock of each job, the other knobs as found.

    Raises:
        ConfigError: Nobody knows the truth here.
    """
    no_arguments("gpu_oracle", args)
    if context.best_gpu is None:
        raise ConfigError("policy=gpu_oracle knows what no board tells: it exists on twins only")
    return OraclePolicy(context.best_gpu, "gpu_oracle")


def power_mode(context: PolicyContext, mode: str) -> Policy:
    """The caps of an nvpmodel mode as fixed targets; cores that a mode takes away stay.

    A cap at or above a knob's ceiling leaves the knob as found, one between two levels of its
    table is the lower one.

    Raises:
        ConfigError: The board has no such mode.
    """
    if mode not in context.modes:
        known = ", ".join(f"nvpmodel:{name}" for name in context.modes) or "none"
        raise ConfigError(
            f"policy=nvpmodel:{mode}: the board has no such mode; its modes are {known}"
        )
    caps = context.modes[mode]
    by_name = {knob.name: knob for knob in context.knobs}
    targets = [_capped(by_name.get(name), caps.get(name)) for name in KNOB_NAMES]
    return StaticPolicy(f"nvpmodel:{mode}", np.array(targets))


def _capped(knob: Knob | None, cap_mhz: float | None) -> float:
    if knob is None or cap_mhz is None or cap_mhz >= knob.allowed_mhz[-1]:
        return float("nan")
    below = [level for level in knob.allowed_mhz if level <= cap_mhz + 1e-3]
    return below[-1] if below else knob.allowed_mhz[0]


def no_arguments(name: str, args: Mapping[str, object]) -> None:
    """Refuse arguments of a policy that takes none.

    Raises:
        ConfigError: There are some.
    """
    if args:
        raise ConfigError(f"policy_args.{name}: policy {name} takes no arguments")


def _level(by_name: Mapping[str, Knob], name: str, value: object) -> float:
    """The table's own value of a fixed clock; NaN where none is asked for."""
    if value is None:
        return float("nan")
    if name not in by_name:
        offered = ", ".join(by_name) or "none"
        raise ConfigError(f"policy_args.fixed.{name}_mhz: the board's knobs are {offered}")
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ConfigError(f"policy_args.fixed.{name}_mhz must be a number of MHz, not {value!r}")
    allowed = by_name[name].allowed_mhz
    nearest = min(allowed, key=lambda level: abs(level - value))
    if abs(nearest - value) > 1e-3:
        table = ", ".join(f"{level:g}" for level in allowed)
        raise ConfigError(
            f"policy_args.fixed.{name}_mhz={value:g} is not a level of the board, whose table is "
            f"{table} MHz (the nearest is {nearest:g})"
        )
    return nearest
