"""Boards at releases: names and places of files, tables, rails. Physics come from a twin.

Tables are what owners have published of each release; a twin of another board stands in where there
is none of the same, so its watts are of the right kind rather than of the right size.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

EmcWay = Literal["override", "bpmp_old", "bpmp", "cap", "bwmgr"]


@dataclass(frozen=True)
class Rail:
    """One channel of a power monitor.

    Attributes:
        label: As the board has it.
        volts: Its voltage.
        shares: Where the twin has no rail of this name: role of its rails, or ``total``, and how
            much of it.
    """

    label: str
    volts: float
    shares: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Profile:
    """One board at one release.

    Attributes:
        twin: The twin that gives its watts, clocks and heat.
        model: As in the device tree.
        soc: The chip.
        release: First line of ``/etc/nv_tegra_release``.
        gpu: Folder of the GPU's devfreq node.
        gpu_name: Its device tree name; empty on Thor, which has none.
        gpu_hz: Its table.
        policies: Cores of each CPU policy.
        cpu_khz: Table of each.
        cpu_floor_khz: Minimum that the power mode sets.
        emc: The way to the memory clock.
        emc_hz: Its rates.
        chips: Power monitors with their rails.
        jetpack: Generation.
        scaling: Whether ``enable_3d_scaling`` is there.
    """

    twin: str
    model: str
    soc: str
    release: str
    gpu: str
    gpu_name: str
    gpu_hz: Sequence[int]
    policies: Sequence[Sequence[int]]
    cpu_khz: Sequence[int]
    cpu_floor_khz: int
    emc: EmcWay
    emc_hz: Sequence[int]
    chips: Sequence[Sequence[Rail]]
    jetpack: int
    scaling: bool = True

    @property
    def strict(self) -> bool:
        """Kernel 4.9."""
        return self.jetpack == 4


def _cores(count: int, each: int) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(range(i, min(i + each, count))) for i in range(0, count, each))


_GRID = tuple(306000000 + 102000000 * k for k in range(10))
_ORIN_11 = (*_GRID, 1300500000)
_ORIN_13 = (
    *(114750000 + 102000000 * k for k in range(12)),
    1300500000,
)
_XAVIER = (
    114750000, 216750000, 318750000, 420750000, 522750000, 624750000, 675750000, 828750000,
    905250000, 1032750000, 1198500000, 1236750000, 1338750000, 1377000000,
)  # fmt: skip
_TX2 = (
    114750000, 216750000, 318750000, 420750000, 522750000, 624750000, 726750000, 854250000,
    930750000, 1032750000, 1122000000, 1236750000, 1300500000,
)  # fmt: skip
_NANO_KHZ = (
    102000, 204000, 307200, 403200, 518400, 614400, 710400, 825600, 921600, 1036800, 1132800,
    1224000, 1326000, 1428000, 1479000,
)  # fmt: skip
_ORIN_KHZ = tuple(115200 + 76800 * k for k in range(28))
_EMC_ORIN = (204000000, 665600000, 2133000000, 3199000000)
_EMC_NANO = (204000000, 408000000, 665600000, 800000000, 1065600000, 1331200000, 1600000000)

_AGX_CHIPS = (
    (
        Rail("VDD_GPU_SOC", 19.096),
        Rail("VDD_CPU_CV", 19.096),
        Rail("VIN_SYS_5V0", 5.016, {"sys": 0.85}),
    ),
    (Rail("NC", 0.0), Rail("VDDQ_VDD2_1V8AO", 5.016, {"sys": 0.15}), Rail("NC", 0.0)),
)
_MODULE_CHIPS = (
    (
        Rail("VDD_IN", 5.016, {"total": 1.0}),
        Rail("VDD_CPU_GPU_CV", 5.016, {"gpu": 1.0}),
        Rail("VDD_SOC", 5.016, {"mem": 1.0}),
    ),
)
_JP5_GPU = "/sys/devices/17000000.ga10b/devfreq/17000000.ga10b"
_JP6_GPU = "/sys/devices/platform/bus@0/17000000.gpu/devfreq/17000000.gpu"

_AGX_ORIN = Profile(
    twin="jetson_agx_orin_64gb",
    model="NVIDIA Jetson AGX Orin Developer Kit",
    soc="tegra234",
    release="# R36 (release), REVISION: 4.3, GCID: 1, BOARD: generic, EABI: aarch64",
    gpu=_JP6_GPU,
    gpu_name="gpu",
    gpu_hz=_ORIN_11,
    policies=_cores(12, 4),
    cpu_khz=(*_ORIN_KHZ, 2201600),
    cpu_floor_khz=729600,
    emc="bpmp",
    emc_hz=_EMC_ORIN,
    chips=_AGX_CHIPS,
    jetpack=6,
)


def _orin(**changes: object) -> Profile:
    return Profile(**{**vars(_AGX_ORIN), **changes})


PROFILES: Mapping[str, Profile] = {
    "agx-orin-jp6": _AGX_ORIN,
    "agx-orin-jp6-nodebug": _orin(emc="cap"),
    "agx-orin-jp5": _orin(
        release="# R35 (release), REVISION: 4.1, GCID: 1, BOARD: t186ref, EABI: aarch64",
        gpu=_JP5_GPU,
        gpu_name="ga10b",
        emc="bpmp_old",
        jetpack=5,
    ),
    "agx-orin-jp5-early": _orin(
        release="# R35 (release), REVISION: 1.0, GCID: 1, BOARD: t186ref, EABI: aarch64",
        gpu=_JP5_GPU,
        gpu_name="ga10b",
        gpu_hz=_ORIN_13,
        emc="bpmp_old",
        jetpack=5,
    ),
    "agx-orin-jp7": _orin(
        release="# R39 (release), REVISION: 0.0, GCID: 1, BOARD: generic, EABI: aarch64",
        jetpack=7,
        scaling=False,
    ),
    "orin-nx-jp6": _orin(
        twin="jetson_orin_nx_16gb",
        model="NVIDIA Jetson Orin NX Engineering Reference Developer Kit",
        gpu_hz=_GRID[:7],
        policies=_cores(8, 4),
        cpu_khz=(*_ORIN_KHZ[:25], 1984000),
        chips=_MODULE_CHIPS,
    ),
    "orin-nano-super-jp6": _orin(
        twin="jetson_orin_nano_8gb_super",
        model="NVIDIA Jetson Orin Nano Developer Kit Super",
        gpu_hz=_GRID[:8],
        policies=_cores(6, 4),
        cpu_khz=_ORIN_KHZ[:22],
        chips=_MODULE_CHIPS,
    ),
    "xavier-agx-jp4": Profile(
        twin="jetson_agx_xavier",
        model="Jetson-AGX",
        soc="tegra194",
        release="# R32 (release), REVISION: 5.1, GCID: 1, BOARD: t186ref, EABI: aarch64",
        gpu="/sys/devices/17000000.gv11b/devfreq/17000000.gv11b",
        gpu_name="gv11b",
        gpu_hz=_XAVIER,
        policies=_cores(8, 2),
        cpu_khz=(115200, 729600, 1190400, 1497600, 1804800, 2265600),
        cpu_floor_khz=1190400,
        emc="bpmp_old",
        emc_hz=(*_EMC_NANO, 2133000000),
        chips=(
            (Rail("GPU", 19.0, {"gpu": 1.0}), Rail("CPU", 19.0, {"cpu": 1.0}),
             Rail("SOC", 19.0, {"mem": 0.5})),
            (Rail("CV", 19.0, {}), Rail("VDDRQ", 19.0, {"mem": 0.5}),
             Rail("SYS5V", 5.0, {"sys": 1.0})),
        ),
        jetpack=4,
    ),
    "tx2-jp4": Profile(
        twin="jetson_tx2",
        model="quill",
        soc="tegra186",
        release="# R32 (release), REVISION: 7.1, GCID: 1, BOARD: t186ref, EABI: aarch64",
        gpu="/sys/devices/17000000.gp10b/devfreq/17000000.gp10b",
        gpu_name="gp10b",
        gpu_hz=_TX2,
        policies=((0, 3, 4, 5), (1, 2)),
        cpu_khz=tuple(345600 + 153600 * k for k in range(12)),
        cpu_floor_khz=345600,
        emc="bpmp_old",
        emc_hz=(*_EMC_NANO, 1866000000),
        chips=(
            (Rail("VDD_SYS_GPU", 19.0, {"gpu": 1.0}), Rail("VDD_SYS_SOC", 19.0, {"mem": 0.5}),
             Rail("VDD_IN", 19.0, {"total": 1.0})),
        ),
        jetpack=4,
    ),
    "nano-jp4": Profile(
        twin="jetson_tx2",
        model="NVIDIA Jetson Nano Developer Kit",
        soc="tegra210",
        release="# R32 (release), REVISION: 7.1, GCID: 1, BOARD: t210ref, EABI: aarch64",
        gpu="/sys/devices/57000000.gpu/devfreq/57000000.gpu",
        gpu_name="gpu",
        gpu_hz=tuple(76800000 * k for k in range(1, 13)),
        policies=_cores(4, 4),
        cpu_khz=_NANO_KHZ,
        cpu_floor_khz=102000,
        emc="override",
        emc_hz=_EMC_NANO,
        chips=(
            (Rail("POM_5V_IN", 5.0, {"total": 0.7}), Rail("POM_5V_GPU", 5.0, {"gpu": 0.7}),
             Rail("POM_5V_CPU", 5.0, {"cpu": 0.7})),
        ),
        jetpack=4,
    ),
    "thor-jp7": Profile(
        twin="jetson_agx_orin_64gb",
        model="NVIDIA Jetson AGX Thor Developer Kit",
        soc="tegra264",
        release="# R38 (release), REVISION: 2.0, GCID: 1, BOARD: generic, EABI: aarch64",
        gpu="/sys/devices/platform/bus@0/gpu/devfreq/gpu-gpc-0",
        gpu_name="",
        gpu_hz=(54000000, *range(315000000, 1575000001, 45000000)),
        policies=_cores(14, 2),
        cpu_khz=(972000, 1404000, 2106000, 2601000),
        cpu_floor_khz=972000,
        emc="bwmgr",
        emc_hz=(665000000, 2750000000, 3200000000, 4266000000),
        chips=(
            (Rail("VDD_GPU", 19.992, {"gpu": 1.0}), Rail("VDD_CPU_SOC_MSS", 19.992, {"cpu": 1.0}),
             Rail("VIN_SYS_5V0", 5.016, {"sys": 1.0})),
        ),
        jetpack=7,
        scaling=False,
    ),
}  # fmt: skip
"""Name, as in ``rlgov emulate NAME`` -> the board."""
