"""Trees of kernel files, one for each family and generation of board, and a kernel's manners.

Plain files take any write; `KernelWriter` stands where the kernel would: it refuses, clamps, rounds
and keeps requests apart from what reading them back shows.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rlgov.boards.writer import FileWriter

CPUFREQ = "/sys/devices/system/cpu/cpufreq"
DEVFREQ = "/sys/class/devfreq"
HWMON = "/sys/class/hwmon"
BPMP = "/sys/kernel/debug/bpmp/debug"
EMC = f"{BPMP}/clk/emc"
CLK_CAP = "/sys/kernel/nvpmodel_clk_cap/emc"
ISO_CAP = "/sys/kernel/nvpmodel_emc_cap/emc_iso_cap"
OVERRIDE = "/sys/kernel/debug/clk/override.emc"

GRID_102 = [306000000 + 102000000 * k for k in range(10)]
NANO = [76800000 * k for k in range(1, 13)]
XAVIER = [
    114750000, 216750000, 318750000, 420750000, 522750000, 624750000, 675750000, 828750000,
    905250000, 1032750000, 1198500000, 1236750000, 1338750000, 1377000000,
]  # fmt: skip
XAVIER_NX = [
    114750000, 204000000, 306000000, 408000000, 510000000, 599250000, 701250000, 752250000,
    803250000, 854250000, 905250000, 956250000, 1007250000, 1058250000, 1109250000,
]  # fmt: skip
TX2 = [114750000, 318750000, 624750000, 905250000, 1134750000, 1300500000]
ORIN_13 = [
    114750000, 216750000, 318750000, 420750000, 522750000, 624750000, 726750000, 828750000,
    930750000, 1032750000, 1134750000, 1236750000, 1300500000,
]  # fmt: skip
ORIN_11 = [*GRID_102, 1300500000]
ORIN_NANO = GRID_102[:8]
THOR = [54000000, *range(315000000, 1575000001, 45000000)]
EMC_ORIN = [204000000, 665600000, 2133000000, 3199000000]
EMC_NANO = [204000000, 408000000, 665600000, 800000000, 1065600000, 1331200000, 1600000000]
EMC_XAVIER = [*EMC_NANO, 2133000000]
EMC_THOR = [665000000, 2750000000, 3200000000, 4266000000]
ORIN_CPU = [115200 + 76800 * k for k in range(28)]

AGX_RAILS = (
    (("VDD_GPU_SOC", 19096, 168), ("VDD_CPU_CV", 19096, 240), ("VIN_SYS_5V0", 5016, 952)),
    (("NC", 0, 0), ("VDDQ_VDD2_1V8AO", 5016, 400), ("NC", 0, 0)),
)
MODULE_RAILS = ((("VDD_IN", 5016, 1856), ("VDD_CPU_GPU_CV", 5016, 400), ("VDD_SOC", 5016, 304)),)
THOR_RAILS = (
    (("VDD_GPU", 19992, -16), ("VDD_CPU_SOC_MSS", 19992, 296), ("VIN_SYS_5V0", 5016, 1120)),
)


def words(values: Sequence[int]) -> str:
    return " ".join(str(value) for value in values) + "\n"


@dataclass(frozen=True)
class Profile:
    """One board at one release.

    Attributes:
        model: As the device tree has it.
        soc: The chip.
        release: Line of ``/etc/nv_tegra_release``.
        gpu: Real folder of the GPU's devfreq node.
        gpu_hz: Its table.
        policies: First core of each CPU policy.
        cpu_khz: Table of each.
        emc: ``override``, ``bpmp_old``, ``bpmp``, ``cap`` or ``bwmgr``.
        emc_hz: Its rates.
        strict: Whether writes are refused as on 4.9, or clamped as since 5.10.
        rails: Monitors with their rails (label, mV, mA); of iio (label, mW) where ``strict``.
    """

    model: str
    soc: str
    release: str
    gpu: str
    gpu_hz: Sequence[int]
    policies: Sequence[int]
    cpu_khz: Sequence[int]
    emc: str
    emc_hz: Sequence[int]
    strict: bool
    rails: Sequence[Sequence[tuple[object, ...]]]
    cpu_floor: int = 0
    more: Mapping[str, str] = field(default_factory=dict)


ORIN_CPUS = [*ORIN_CPU, 2201600]
NANO_KHZ = [102000, 204000, 518400, 825600, 921600, 1036800, 1132800, 1428000, 1479000]
OC = {
    f"{HWMON}/hwmon7/name": "soctherm_oc\n",
    f"{HWMON}/hwmon7/oc1_event_cnt": "0\n",
    f"{HWMON}/hwmon7/oc2_event_cnt": "0\n",
    f"{HWMON}/hwmon7/oc3_event_cnt": "17\n",
}
JP5_GPU = "/sys/devices/17000000.ga10b/devfreq/17000000.ga10b"
JP6_GPU = "/sys/devices/platform/bus@0/17000000.gpu/devfreq/17000000.gpu"


def _orin(release: str, gpu: str, table: Sequence[int], emc: str, **more: object) -> Profile:
    values = {
        "model": "NVIDIA Jetson AGX Orin Developer Kit",
        "soc": "tegra234",
        "release": release,
        "gpu": gpu,
        "gpu_hz": table,
        "policies": (0, 4, 8),
        "cpu_khz": ORIN_CPUS,
        "emc": emc,
        "emc_hz": EMC_ORIN,
        "strict": False,
        "rails": AGX_RAILS,
        "cpu_floor": 729600,
        "more": OC,
    }
    return Profile(**{**values, **more})  # type: ignore[arg-type]


PROFILES = {
    "nano-jp4": Profile(
        model="NVIDIA Jetson Nano Developer Kit",
        soc="tegra210",
        release="# R32 (release), REVISION: 7.1, GCID: 1, BOARD: t210ref, EABI: aarch64\n",
        gpu="/sys/devices/57000000.gpu/devfreq/57000000.gpu",
        gpu_hz=NANO,
        policies=(0,),
        cpu_khz=NANO_KHZ,
        emc="override",
        emc_hz=EMC_NANO,
        strict=True,
        rails=((("POM_5V_IN", 2480), ("POM_5V_GPU", 80), ("POM_5V_CPU", 640)),),
    ),
    "xavier-agx-jp4": Profile(
        model="Jetson-AGX",
        soc="tegra194",
        release="# R32 (release), REVISION: 5.1, GCID: 1, BOARD: t186ref, EABI: aarch64\n",
        gpu="/sys/devices/17000000.gv11b/devfreq/17000000.gv11b",
        gpu_hz=XAVIER,
        policies=(0, 2, 4, 6),
        cpu_khz=[115200, 729600, 1190400, 1497600, 2265600],
        emc="bpmp_old",
        emc_hz=EMC_XAVIER,
        strict=True,
        rails=(
            (("GPU", 1000), ("CPU", 312), ("SOC", 936)),
            (("CV", 0), ("VDDRQ", 624), ("SYS5V", 1480)),
        ),
        cpu_floor=1190400,
    ),
    "tx2-jp4": Profile(
        model="quill",
        soc="tegra186",
        release="# R32 (release), REVISION: 7.1\n",
        gpu="/sys/devices/17000000.gp10b/devfreq/17000000.gp10b",
        gpu_hz=TX2,
        policies=(0, 1),
        cpu_khz=[345600, 1113600, 1574400, 2035200],
        emc="bpmp_old",
        emc_hz=[204000000, 1331200000, 1866000000],
        strict=True,
        rails=(
            (("VDD_SYS_GPU", 152), ("VDD_SYS_SOC", 456), ("VDD_4V0_WIFI", 19)),
            (("VDD_IN", 2000), ("VDD_SYS_CPU", 304), ("VDD_SYS_DDR", 290)),
        ),
    ),
    "xavier-nx-jp5": Profile(
        model="NVIDIA Jetson Xavier NX Developer Kit",
        soc="tegra194",
        release="# R35 (release), REVISION: 3.1\n",
        gpu="/sys/devices/17000000.gv11b/devfreq/17000000.gv11b",
        gpu_hz=XAVIER_NX,
        policies=(0, 2, 4),
        cpu_khz=[115200, 1190400, 1420800, 1907200],
        emc="bpmp_old",
        emc_hz=EMC_XAVIER[:-1],
        strict=False,
        rails=((("VDD_IN", 5016, 856), ("VDD_CPU_GPU_CV", 5016, 120), ("VDD_SOC", 5016, 200)),),
    ),
    "agx-orin-jp5-13": _orin("# R35 (release), REVISION: 1.0\n", JP5_GPU, ORIN_13, "bpmp_old"),
    "agx-orin-jp5-11": _orin("# R35 (release), REVISION: 4.1\n", JP5_GPU, ORIN_11, "bpmp_old"),
    "agx-orin-jp6": _orin("# R36 (release), REVISION: 4.3\n", JP6_GPU, ORIN_11, "bpmp"),
    "agx-orin-jp6-nodebug": _orin("# R36 (release), REVISION: 4.3\n", JP6_GPU, ORIN_11, "cap"),
    "orin-nano-super-jp6": _orin(
        "# R36 (release), REVISION: 4.3\n",
        JP6_GPU,
        ORIN_NANO,
        "bpmp",
        model="NVIDIA Jetson Orin Nano Developer Kit Super",
        policies=(0, 4),
        cpu_khz=ORIN_CPU[:22],
        rails=MODULE_RAILS,
    ),
    "orin-jp7": _orin("# R39 (release), REVISION: 0.0\n", JP6_GPU, ORIN_11, "bpmp"),
    "thor-jp7": Profile(
        model="NVIDIA Jetson AGX Thor Developer Kit",
        soc="tegra264",
        release="# R38 (release), REVISION: 2.0\n",
        gpu="/sys/devices/platform/bus@0/gpu/devfreq/gpu-gpc-0",
        gpu_hz=THOR,
        policies=(0, 2, 4, 6, 8, 10, 12),
        cpu_khz=[972000, 1404000, 2106000, 2601000],
        emc="bwmgr",
        emc_hz=EMC_THOR,
        strict=False,
        rails=THOR_RAILS,
        more={
            f"{HWMON}/hwmon5/name": "ina238\n",
            f"{HWMON}/hwmon5/in1_label": "VIN\n",
            f"{HWMON}/hwmon5/power1_input": "19800000\n",
            **OC,
        },
    ),
}


def build(root: Path, name: str) -> Path:
    """Lay the tree of a profile below ``root``."""
    p = PROFILES[name]
    put(root, _base(p))
    _gpu(root, p)
    put(root, _cpu(p))
    put(root, _emc(p))
    put(root, _iio(p) if p.strict else _hwmon(p))
    put(root, p.more)
    return root


def put(root: Path, files: Mapping[str, str]) -> None:
    """Write files that may not be there yet."""
    for name, text in files.items():
        path = root / name.lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def get(root: Path, name: str) -> str:
    return (root / name.lstrip("/")).read_text()


def contents(root: Path) -> dict[str, bytes]:
    """Bytes of every file below ``root``."""
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }


def _base(p: Profile) -> dict[str, str]:
    zones = [("cpu-thermal", "53062\n"), ("gpu-thermal", "47812\n"), ("tj-thermal", "53062\n")]
    zones += [("PMIC-Die", "100000\n"), ("cv0-thermal", "-256000\n")]
    files = {
        "/proc/device-tree/compatible": f"nvidia,some-board\0nvidia,{p.soc}\0",
        "/proc/device-tree/model": f"{p.model}\0",
        "/etc/nv_tegra_release": p.release,
        "/proc/stat": "cpu  20 0 20 160 0 0 0 0 0 0\ncpu0 10 0 10 80 0 0 0 0 0 0\n"
        "cpu1 10 0 10 80 0 0 0 0 0 0\nintr 1\n",
        "/var/lib/nvpmodel/status": "pmode:0000\n",
        "/etc/nvpmodel.conf": "< POWER_MODEL ID=0 NAME=MAXN >\n< POWER_MODEL ID=2 NAME=30W >\n",
        "/sys/class/thermal/cooling_device0/type": "17000000.gpu-devfreq\n",
        "/sys/class/thermal/cooling_device0/cur_state": "0\n",
        "/sys/class/thermal/cooling_device1/type": "pwm-fan\n",
        "/sys/class/thermal/cooling_device1/cur_state": "2\n",
    }
    for n, (zone, temp) in enumerate(zones):
        files[f"/sys/class/thermal/thermal_zone{n}/type"] = f"{zone}\n"
        files[f"/sys/class/thermal/thermal_zone{n}/temp"] = temp
    return files


def _devfreq(folder: str, table: Sequence[int]) -> dict[str, str]:
    return {
        f"{folder}/available_frequencies": words(table),
        f"{folder}/min_freq": f"{table[0]}\n",
        f"{folder}/max_freq": f"{table[-1]}\n",
        f"{folder}/cur_freq": "0\n",
    }


def _gpu(root: Path, p: Profile) -> None:
    node = Path(p.gpu)
    put(root, _devfreq(p.gpu, p.gpu_hz))
    parent = root / str(node.parent.parent).lstrip("/")
    thor = node.name.startswith("gpu-gpc")
    if not thor:
        put(root, {f"{node.parent.parent}/load": "371\n"})
        label = "gpu\0" if "ga10b" not in node.name else "ga10b\0"
        put(root, {f"{node.parent.parent}/of_node/name": label})
        put(root, {f"{DEVFREQ}/15340000.vic/device/of_node/name": "vic\0"})
        put(root, _devfreq(f"{DEVFREQ}/15340000.vic", [115200000, 729600000]))
    else:
        put(root, _devfreq(f"{DEVFREQ}/gpu-nvd-0", [100000000, 1692000000]))
    entry = root / DEVFREQ.lstrip("/") / node.name
    entry.parent.mkdir(parents=True, exist_ok=True)
    target = root / p.gpu.lstrip("/")
    entry.symlink_to(os.path.relpath(target, entry.parent))
    (target / "device").symlink_to(os.path.relpath(parent, target))


def _cpu(p: Profile) -> dict[str, str]:
    files = {}
    for first in p.policies:
        folder = f"{CPUFREQ}/policy{first}"
        files |= {
            f"{folder}/scaling_available_frequencies": words(p.cpu_khz),
            f"{folder}/scaling_min_freq": f"{p.cpu_floor or p.cpu_khz[0]}\n",
            f"{folder}/scaling_max_freq": f"{p.cpu_khz[-1]}\n",
            f"{folder}/scaling_cur_freq": f"{p.cpu_khz[1]}\n",
        }
    return files


def _emc(p: Profile) -> dict[str, str]:
    low, top = p.emc_hz[0], p.emc_hz[-1]
    if p.emc == "bwmgr":
        files = {**_devfreq(f"{DEVFREQ}/bwmgr", p.emc_hz), CLK_CAP: f"{top}\n"}
        files[f"{DEVFREQ}/bwmgr/cur_freq"] = f"{low}\n"
        return files
    if p.emc == "override":
        return {
            f"{OVERRIDE}/clk_rate": f"{top}\n",
            f"{OVERRIDE}/clk_update_rate": f"{top}\n",
            f"{OVERRIDE}/clk_state": "0\n",
            "/sys/kernel/debug/tegra_bwmgr/emc_min_rate": f"{low}\n",
            "/sys/kernel/debug/tegra_bwmgr/emc_max_rate": f"{top}\n",
            "/sys/kernel/actmon_avg_activity/mc_all": "400000\n",
        }
    if p.emc == "cap":
        return {CLK_CAP: f"{top}\n"}
    dvfs = "  idx rate_hz mv\n" + "".join(f"  {i} {r} 800\n" for i, r in enumerate(p.emc_hz))
    files = {
        f"{EMC}/rate": f"{p.emc_hz[-2]}\n",
        f"{EMC}/min_rate": f"{low}\n",
        f"{EMC}/max_rate": f"{top}\n",
        f"{EMC}/dvfs": dvfs,
        f"{EMC}/mrq_rate_locked": "0\n",
        f"{EMC}/state": "1\n",
    }
    if p.emc == "bpmp":
        halt = {f"{BPMP}/bwmgr/bwmgr_halt": "0\n", CLK_CAP: f"{top}\n"}
        return {**files, **halt, "/sys/kernel/debug/cactmon/mc_all": "213300\n"}
    return {**files, ISO_CAP: "0\n", "/sys/kernel/actmon_avg_activity/mc_all": "213300\n"}


def _hwmon(p: Profile) -> dict[str, str]:
    files = {}
    for chip, rails in enumerate(p.rails):
        folder = f"{HWMON}/hwmon{chip + 2}"
        files[f"{folder}/name"] = "ina3221\n"
        files[f"{folder}/samples"] = "512\n"
        for n, (label, millivolts, milliamperes) in enumerate(rails, 1):
            files[f"{folder}/in{n}_label"] = f"{label}\n"
            files[f"{folder}/in{n}_input"] = f"{millivolts}\n"
            files[f"{folder}/curr{n}_input"] = f"{milliamperes}\n"
        files[f"{folder}/in7_label"] = "sum of shunt voltages\n"
        files[f"{folder}/in7_input"] = "99999\n"
        files[f"{folder}/curr4_input"] = "99999\n"
    return files


def _iio(p: Profile) -> dict[str, str]:
    files = {}
    for chip, rails in enumerate(p.rails):
        folder = f"/sys/bus/i2c/drivers/ina3221x/1-004{chip}/iio:device{chip}"
        for n, (label, milliwatts) in enumerate(rails):
            files[f"{folder}/rail_name_{n}"] = f"{label}\n"
            files[f"{folder}/in_power{n}_input"] = f"{milliwatts}\n"
    return files


class KernelWriter:
    """What the kernel does with a write to the tree below ``root``.

    Attributes:
        written: Every write that was accepted, in order.
        faults: File -> error number that it answers with.
        thermal_cap: Folder -> what cooling holds its maximum down to.
    """

    def __init__(self, root: Path, name: str) -> None:
        self.profile = PROFILES[name]
        self.written: list[tuple[str, str]] = []
        self.faults: dict[str, int] = {}
        self.thermal_cap: dict[str, int] = {}
        self._root = root
        self._files = FileWriter(root)
        self._requests: dict[str, int] = {}
        self._free_rate = get(root, f"{EMC}/rate") if (root / f"{EMC}/rate"[1:]).exists() else ""

    def refusal(self, key: str) -> OSError | None:
        if key in self.faults:
            return self._error(self.faults[key])
        return self._files.refusal(key)

    def write(self, key: str, text: str) -> None:
        if key in self.faults:
            raise self._error(self.faults[key])
        if not text.strip().isdigit():
            raise self._error(errno.EINVAL)
        value = int(text)
        folder, _, leaf = key.rpartition("/")
        if leaf.endswith(("min_freq", "max_freq")):
            (self._strict if self.profile.strict else self._qos)(folder, leaf, value)
        elif key == CLK_CAP:
            rate = max((v for v in self.profile.emc_hz if v <= value), default=204000000)
            self._files.write(key, f"{rate}\n")
        elif folder == EMC:
            self._bpmp(key, text)
        else:
            self._files.write(key, text)
        self.written.append((key, text))

    def refresh(self, folder: str, prefix: str = "") -> None:
        """Show what is in force after a cap of cooling has changed."""
        self._show(folder, prefix)

    def _strict(self, folder: str, leaf: str, value: int) -> None:
        table = self._table(folder)
        value = min(max(value, table[0]), table[-1])
        low, high = self._ends(folder, leaf)
        other = int(get(self._root, high if leaf.endswith("min_freq") else low))
        if (value > other) if leaf.endswith("min_freq") else (value < other):
            raise self._error(errno.EINVAL)
        self._files.write(f"{folder}/{leaf}", f"{value}\n")

    def _qos(self, folder: str, leaf: str, value: int) -> None:
        for file in self._ends(folder, leaf):
            self._requests.setdefault(file, int(get(self._root, file)))
        self._requests[f"{folder}/{leaf}"] = value
        self._show(folder, "scaling_" if leaf.startswith("scaling_") else "")

    def _show(self, folder: str, prefix: str) -> None:
        low, high = (f"{folder}/{prefix}{end}_freq" for end in ("min", "max"))
        for file in (low, high):
            self._requests.setdefault(file, int(get(self._root, file)))
        table = self._table(folder)
        cap = self.thermal_cap.get(folder, table[-1])
        top = max(min(self._requests[high] or table[-1], table[-1], cap), table[0])
        floor = min(max(self._requests[low], table[0]), top)
        self._files.write(high, f"{top}\n")
        self._files.write(low, f"{floor}\n")

    def _bpmp(self, key: str, text: str) -> None:
        locked = get(self._root, f"{EMC}/mrq_rate_locked").strip() == "1"
        if key.endswith("/rate") and self.profile.emc == "bpmp" and not locked:
            raise self._error(errno.EINVAL)
        self._files.write(key, text)
        if key.endswith("mrq_rate_locked") and text.strip() == "0":
            self._files.write(f"{EMC}/rate", self._free_rate)

    def _table(self, folder: str) -> list[int]:
        for leaf in ("available_frequencies", "scaling_available_frequencies"):
            path = self._root / folder.lstrip("/") / leaf
            if path.exists():
                return [int(word) for word in path.read_text().split()]
        raise self._error(errno.ENOENT)

    def _ends(self, folder: str, leaf: str) -> tuple[str, str]:
        prefix = "scaling_" if leaf.startswith("scaling_") else ""
        return f"{folder}/{prefix}min_freq", f"{folder}/{prefix}max_freq"

    def _error(self, number: int) -> OSError:
        return OSError(number, os.strerror(number))
