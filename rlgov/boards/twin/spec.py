"""What a twin of a board is made of: one typed record, filled from ``conf/board/NAME.yaml``.

Every number's source stands beside it in that file. The constructor is the schema: a misspelled
or missing key fails when the file is loaded.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from types import UnionType
from typing import Any, Literal, get_args, get_origin, get_type_hints

from rlgov.boards.base import KNOB_NAMES, ApplyMode, Knob
from rlgov.errors import ConfigError

COMPONENTS = ("gpu", "soc", "mem", "cpu", "base")
"""Consumers whose power the model computes; rails are weighted sums of them."""


@dataclass(frozen=True)
class KnobSpec:
    """One clock's table and how fast a change takes effect.

    Attributes:
        levels_mhz: Ascending table.
        delay_s: Time until a new level is effective.
        mode: How a level is applied, see `rlgov.boards.base.Knob`.
        offered: False where the board cannot set this clock at all.
    """

    levels_mhz: tuple[float, ...]
    delay_s: float
    mode: ApplyMode = "pin"
    offered: bool = True


@dataclass(frozen=True)
class VoltageSpec:
    """Relative supply voltage ``v(f) = max(1, 1 + slope * (f - knee))``, f in GHz.

    Below the knee the rail sits at its floor and dynamic power is linear in f.
    """

    knee_ghz: float
    slope_per_ghz: float


@dataclass(frozen=True)
class GpuSpec:
    """Arithmetic of the GPU and what it draws.

    Attributes:
        flop_per_cycle: Peak fp32 operations a clock cycle.
        half_flop_per_cycle: Peak dense bf16/fp16 operations a clock cycle on the matrix units.
        efficiency: Share of the fp32 peak that large kernels reach.
        half_efficiency: The same on the matrix units.
        launch_kcycle: Thousand GPU cycles that each kernel loses in ramping up and draining.
        flop_pj: Picojoules a fp32 operation at v = 1.
        half_flop_pj: Picojoules a matrix-unit operation at v = 1.
        byte_pj: Picojoules a byte moved through the GPU's caches, at v = 1.
        clock_w_per_ghz: Clock-tree power at v = 1 while busy.
        gated_share: Share of the clock-tree power left while idle.
        leak_w: Leakage at v = 1 and 45 degrees C.
    """

    voltage: VoltageSpec
    flop_per_cycle: float
    half_flop_per_cycle: float
    efficiency: float
    half_efficiency: float
    launch_kcycle: float
    flop_pj: float
    half_flop_pj: float
    byte_pj: float
    clock_w_per_ghz: float
    gated_share: float
    leak_w: float


@dataclass(frozen=True)
class MemorySpec:
    """Memory and its controller.

    Attributes:
        byte_per_cycle: Bytes a cycle of the EMC clock at peak.
        efficiency: Share of the peak that streaming kernels reach.
        soc_byte_pj: Picojoules a byte in the controller and fabric (component ``soc``).
        mem_byte_pj: Picojoules a byte in the DRAM (component ``mem``).
        soc_clock_w_per_ghz: Controller power by EMC clock while the GPU is busy.
        mem_clock_w_per_ghz: DRAM interface power by EMC clock, likewise.
        soc_static_w: Remaining constant power of the component ``soc``.
        mem_static_w: Remaining constant power of the component ``mem``.
        gated_share: Share of both clock powers left while the GPU is idle.
    """

    byte_per_cycle: float
    efficiency: float
    soc_byte_pj: float
    mem_byte_pj: float
    soc_clock_w_per_ghz: float
    mem_clock_w_per_ghz: float
    soc_static_w: float
    mem_static_w: float
    gated_share: float = 1.0


@dataclass(frozen=True)
class CpuSpec:
    """CPU cluster.

    Attributes:
        cores: Cores online.
        launch_kcycle: Thousand CPU cycles that each kernel launch costs the training thread.
        core_w_per_ghz: Power of one busy core at v = 1.
        leak_w: Idle power of the whole cluster at v = 1 and 45 degrees C.
    """

    voltage: VoltageSpec
    cores: int
    launch_kcycle: float
    core_w_per_ghz: float
    leak_w: float


@dataclass(frozen=True)
class ThermalSpec:
    """First-order thermal model of the junction.

    Attributes:
        ambient_c: Air at the heatsink.
        resistance_k_per_w: Steady rise a watt of total power.
        time_constant_s: Of the heatsink.
        leak_per_k: Relative growth of leakage a degree.
        trip_c: Above it the GPU ceiling falls.
        trip_slope_per_k: Share of the GPU's maximum lost a degree above the trip.
    """

    ambient_c: float
    resistance_k_per_w: float
    time_constant_s: float
    leak_per_k: float = 0.012
    trip_c: float = 95.0
    trip_slope_per_k: float = 0.05


@dataclass(frozen=True)
class SensorSpec:
    """What the board's own sensors do to the truth.

    Attributes:
        refresh_s: Period at which a new value appears.
        lag_s: Time constant of the averaging in hardware.
        quantum_w: Step of a rail's reading.
        noise: Relative noise of one sample of a rail's power.
        gain_spread: Relative calibration error of a rail, fixed for a board.
        clock_noise: Relative noise of one sample of a utilisation.
    """

    refresh_s: float
    lag_s: float
    quantum_w: float
    noise: float
    gain_spread: float = 0.0
    clock_noise: float = 0.02


@dataclass(frozen=True)
class GovernorSpec:
    """The board's own governors: what "as found" does.

    Attributes:
        gpu_target: GPU load that nvhost_podgov aims at.
        gpu_period_s: Its period.
        cpu_headroom: schedutil's factor on utilisation.
        cpu_period_s: Over how long schedutil's utilisation decays (PELT).
        cpu_floor_mhz: Lowest clock the power mode leaves to it.
        emc_target: Bandwidth utilisation above which the EMC steps up.
        emc_gpu_floor: EMC clock asked for by the GPU's own driver, as a share of the EMC maximum
            for each unit of GPU clock share.
    """

    gpu_target: float = 0.7
    gpu_period_s: float = 0.05
    cpu_headroom: float = 1.25
    cpu_period_s: float = 0.032
    cpu_floor_mhz: float = 0.0
    emc_target: float = 0.35
    emc_gpu_floor: float = 0.5


@dataclass(frozen=True)
class SmoothSpec:
    """Exponents of the smooth maxima (see `physics.smooth_max`)."""

    gpu_memory: float = 3.5
    host: float = 4.0
    loader: float = 6.0


@dataclass(frozen=True)
class ModeSpec:
    """One nvpmodel mode: caps, and cores online. ``None`` leaves a clock alone."""

    gpu_mhz: float | None = None
    cpu_mhz: float | None = None
    emc_mhz: float | None = None
    cores: int | None = None


@dataclass(frozen=True)
class TwinSpec:
    """A board's twin.

    Attributes:
        name: As in ``board=NAME``.
        title: For people.
        memory_gib: Shared memory, which bounds the jobs that fit.
        rails: Rail name -> weights over `COMPONENTS`.
        total_rails: Rails whose sum is the total.
        total_rule: How the total is formed, in words.
        rail_roles: Rail name -> what it mostly feeds (``gpu``, ``cpu``, ``mem``, ``sys``), for
            observations that mean the same on every board.
        power_limit_w: Cap of the whole board, for boards that regulate by power.
        power_softness: How sharply it is held, see `powercap.gpu_within_limit`.
        modes: nvpmodel modes by name; the first is the mode the board is found in.
    """

    name: str
    title: str
    memory_gib: float
    knobs: Mapping[str, KnobSpec]
    gpu: GpuSpec
    memory: MemorySpec
    cpu: CpuSpec
    base_w: float
    rails: Mapping[str, Mapping[str, float]]
    rail_roles: Mapping[str, str]
    total_rails: tuple[str, ...]
    total_rule: str
    thermal: ThermalSpec
    sensors: SensorSpec
    governors: GovernorSpec = field(default_factory=GovernorSpec)
    smooth: SmoothSpec = field(default_factory=SmoothSpec)
    modes: Mapping[str, ModeSpec] = field(default_factory=dict)
    power_limit_w: float | None = None
    power_softness: float = 6.0

    def __post_init__(self) -> None:
        _check(self)

    @staticmethod
    def from_dict(values: Mapping[str, Any]) -> TwinSpec:
        """Build from plain nested mappings, as read from YAML.

        Raises:
            ConfigError: A key that is missing, unknown or of the wrong kind, by its full path.
        """
        if "kind" in values:
            raise ConfigError(
                f"board={values['kind']} is a real board, and a twin is needed here; "
                "rlgov boards lists both"
            )
        spec: TwinSpec = _build(TwinSpec, values, "board")
        return spec

    def ceilings(self, mode: str | None = None) -> dict[str, float | None]:
        """Caps by knob of a power mode (the first of `modes` by default).

        Raises:
            ConfigError: The board has no such mode.
        """
        if mode is None:
            mode = next(iter(self.modes), None)
        if mode is None:
            return dict.fromkeys(KNOB_NAMES)
        if mode not in self.modes:
            raise ConfigError(
                f"board {self.name} has no mode {mode!r}; it has {', '.join(self.modes) or 'none'}"
            )
        caps = self.modes[mode]
        return {"gpu": caps.gpu_mhz, "cpu": caps.cpu_mhz, "emc": caps.emc_mhz}

    def board_knobs(self, ceiling_mhz: Mapping[str, float | None] | None = None) -> list[Knob]:
        """The offered knobs as the `Board` seam describes them."""
        ceilings = ceiling_mhz or {}
        return [
            Knob(name, self.knobs[name].levels_mhz, self.knobs[name].mode, ceilings.get(name))
            for name in KNOB_NAMES
            if name in self.knobs and self.knobs[name].offered
        ]


def _check(spec: TwinSpec) -> None:
    if set(spec.knobs) != set(KNOB_NAMES):
        raise ConfigError(f"board {spec.name}: knobs must be {', '.join(KNOB_NAMES)}")
    for name, knob in spec.knobs.items():
        levels = knob.levels_mhz
        if not levels or any(b <= a for a, b in pairwise(levels)):
            raise ConfigError(f"board {spec.name}: knobs.{name}.levels_mhz must ascend")
    for rail, weights in spec.rails.items():
        unknown = set(weights) - set(COMPONENTS)
        if unknown:
            raise ConfigError(
                f"board {spec.name}: rails.{rail} names {', '.join(sorted(unknown))}; "
                f"components are {', '.join(COMPONENTS)}"
            )
    missing = set(spec.total_rails) - set(spec.rails)
    if missing or not spec.total_rails:
        raise ConfigError(f"board {spec.name}: total_rails must name rails of the board")


def _build(kind: Any, values: Any, path: str) -> Any:
    """Turn nested plain values into the dataclass ``kind``, checking every key."""
    if not isinstance(values, Mapping):
        raise ConfigError(f"{path} must be a mapping, not {type(values).__name__}")
    known = {f.name: f for f in dataclasses.fields(kind)}
    values = {k: v for k, v in values.items() if k != "_target_"}
    unknown = sorted(set(values) - set(known))
    if unknown:
        raise ConfigError(f"{path}: unknown key {unknown[0]!r}; it has {', '.join(known)}")
    required = {n for n, f in known.items() if _is_required(f)}
    if required - set(values):
        raise ConfigError(f"{path}: missing {', '.join(sorted(required - set(values)))}")
    hints = get_type_hints(kind)
    return kind(**{n: _convert(hints[n], v, f"{path}.{n}") for n, v in values.items()})


def _is_required(f: dataclasses.Field[Any]) -> bool:
    return f.default is dataclasses.MISSING and f.default_factory is dataclasses.MISSING


def _convert(hint: Any, value: Any, path: str) -> Any:
    if dataclasses.is_dataclass(hint):
        return _build(hint, value, path)
    origin, args = get_origin(hint), get_args(hint)
    if origin is tuple:
        return tuple(_convert(args[0], item, path) for item in _of_kind(list, value, path))
    if origin is Literal:
        if value not in args:
            raise ConfigError(f"{path} must be one of {', '.join(args)}, not {value!r}")
        return value
    if origin is UnionType:
        return None if value is None else _convert(args[0], value, path)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        known = _of_kind(Mapping, value, path)
        return {str(k): _convert(args[1], v, f"{path}.{k}") for k, v in known.items()}
    if hint in (float, int):
        return _number(hint, value, path)
    return _of_kind(hint, value, path)


def _of_kind(kind: Any, value: Any, path: str) -> Any:
    if not isinstance(value, (list, tuple) if kind is list else kind):
        wanted = {list: "a list", Mapping: "a mapping", str: "text", bool: "true or false"}[kind]
        raise ConfigError(f"{path} must be {wanted}, not {value!r}")
    return value


def _number(hint: Any, value: Any, path: str) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ConfigError(f"{path} must be a number, not {value!r}")
    return hint(value)
