"""Every file of an emulated board, by path."""

from __future__ import annotations

import errno
from collections.abc import Iterator, Mapping
from functools import partial

from rlgov.boards.emulate.clocks import FreqRange
from rlgov.boards.emulate.machine import Machine
from rlgov.boards.emulate.nodes import Node, Number, constant, live, refusal, whole
from rlgov.boards.emulate.profiles import Rail

CPU = "/sys/devices/system/cpu"
DEVFREQ = "/sys/class/devfreq"
HWMON = "/sys/class/hwmon"
THERMAL = "/sys/class/thermal"
DEBUG = "/sys/kernel/debug"
BPMP = f"{DEBUG}/bpmp/debug"
EMC = f"{BPMP}/clk/emc"

Files = Iterator[tuple[str, Node]]


class KernelTree:
    """The files and links of one machine.

    Attributes:
        files: Path -> file.
        links: Path -> target, as the kernel has it.
        machine: What is behind them.
    """

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.links = dict(_links(machine))
        self.files: Mapping[str, Node] = {
            path: node
            for part in (_about, _gpu, _cpu, _emc, _power, _thermal, _controls)
            for path, node in part(machine)
        }


def _about(m: Machine) -> Files:
    p = m.profile
    yield "/proc/device-tree/compatible", constant(f"nvidia,emulated\0nvidia,{p.soc}\0")
    yield "/proc/device-tree/model", constant(f"{p.model}\0")
    yield "/etc/nv_tegra_release", constant(p.release + "\n")
    yield "/etc/nvpmodel.conf", constant("< POWER_MODEL ID=0 NAME=MAXN >\n")
    yield "/var/lib/nvpmodel/status", constant("pmode:0000\n")
    yield "/proc/stat", Node(lambda: _stat(m), moves=True)


def _stat(m: Machine) -> str:
    """Jiffies so far; offline cores are not listed."""
    reading = m.reading()
    share = reading.utilisation.get("cpu") or 0.0
    ticks = int(reading.t_s * 100) + 1000
    busy = int(ticks * share)
    cores = [core for cores in m.profile.policies for core in cores if core not in m.offline]
    lines = [f"cpu{core} {busy} 0 0 {ticks - busy} 0 0 0 0 0 0" for core in sorted(cores)]
    n = len(cores)
    return "\n".join([f"cpu  {busy * n} 0 0 {(ticks - busy) * n} 0 0 0 0 0 0", *lines, "intr 1\n"])


def _links(m: Machine) -> Iterator[tuple[str, str]]:
    node = m.profile.gpu.rpartition("/")[2]
    up = "../../.."
    yield f"{DEVFREQ}/{node}", f"{up}{m.profile.gpu}"
    yield f"{m.profile.gpu}/device", "../.."


def _gpu(m: Machine) -> Files:
    p = m.profile
    yield from _under(p.gpu, m.gpu.nodes("min_freq", "max_freq", "available_frequencies"))
    yield f"{p.gpu}/cur_freq", live(m.gpu_hz)
    yield f"{p.gpu}/target_freq", live(m.gpu_hz)
    yield f"{p.gpu}/governor", constant("nvhost_podgov\n", 0o644)
    parent = p.gpu.rpartition("/devfreq/")[0]
    if p.gpu_name:
        yield f"{parent}/of_node/name", constant(f"{p.gpu_name}\0")
        yield f"{parent}/load", live(lambda: 1000 * (m.reading().utilisation.get("gpu") or 0.0))
    if p.scaling:
        yield f"{parent}/enable_3d_scaling", Number(1, (0, 1)).node()
    yield f"{parent}/railgate_enable", Number(1, (0, 1)).node()
    other, name = ("gpu-nvd-0", "") if not p.gpu_name else ("15340000.vic", "vic")
    media = FreqRange((115200000, 729600000), strict=p.strict)
    bounds = media.nodes("min_freq", "max_freq", "available_frequencies")
    yield from _under(f"{DEVFREQ}/{other}", bounds)
    if name:
        yield f"{DEVFREQ}/{other}/device/of_node/name", constant(f"{name}\0")


def _cpu(m: Machine) -> Files:
    p = m.profile
    for cores in p.policies:
        first, part = cores[0], m.cpus[cores[0]]
        folder = f"{CPU}/cpufreq/policy{first}"
        names = ("scaling_min_freq", "scaling_max_freq", "scaling_available_frequencies")
        yield from _under(folder, part.nodes(*names))
        for name, mode in (("scaling_cur_freq", 0o444), ("cpuinfo_cur_freq", 0o400)):
            clock = partial(_kilohertz, m, first)
            yield f"{folder}/{name}", Node(clock, mode=mode, present=part.present, moves=True)
        fixed = {
            "cpuinfo_min_freq": f"{p.cpu_khz[0]}\n",
            "cpuinfo_max_freq": f"{p.cpu_khz[-1]}\n",
            "scaling_governor": "schedutil\n",
            "related_cpus": " ".join(map(str, cores)) + "\n",
        }
        for name, text in fixed.items():
            yield f"{folder}/{name}", Node(partial(str, text), present=part.present)
        for core in cores:
            if core:  # the first core cannot go offline and has no such file
                yield f"{CPU}/cpu{core}/online", _online(m, core)


def _kilohertz(m: Machine, first: int) -> str:
    return f"{m.cpu_khz(first):.0f}\n"


def _online(m: Machine, core: int) -> Node:
    def store(text: str) -> None:
        value = whole(text)
        if value not in (0, 1):
            raise refusal(errno.EINVAL)
        (m.offline.discard if value else m.offline.add)(core)

    return Node(lambda: f"{int(core not in m.offline)}\n", store)


def _emc(m: Machine) -> Files:
    way, emc = m.profile.emc, m.emc
    if way == "bwmgr" and m.emc_range is not None:
        names = ("min_freq", "max_freq", "available_frequencies")
        yield from _under(f"{DEVFREQ}/bwmgr", m.emc_range.nodes(*names))
        yield f"{DEVFREQ}/bwmgr/cur_freq", live(partial(_bwmgr_hz, m))
    if way in ("bpmp", "cap", "bwmgr"):
        yield "/sys/kernel/nvpmodel_clk_cap/emc", emc.clk_cap_node()
    if way in ("bpmp_old", "override"):
        yield "/sys/kernel/nvpmodel_emc_cap/emc_iso_cap", emc.iso_cap_node()
        yield "/sys/kernel/actmon_avg_activity/mc_all", live(lambda: _activity(m))
    if way == "override":
        yield from _override(m)
    if way in ("bpmp", "bpmp_old"):
        yield from _bpmp(m)


def _bwmgr_hz(m: Machine) -> float:
    return m.emc_range_hz() or m.emc.clock_hz()


def _override(m: Machine) -> Files:
    folder = f"{DEBUG}/clk/override.emc"
    yield f"{folder}/clk_rate", m.emc.clock_node()
    yield f"{folder}/clk_update_rate", m.emc.request_node()
    yield f"{folder}/clk_state", m.emc.locked.node()
    for end, rate in (("min", m.emc.rates[0]), ("max", m.emc.rates[-1])):
        yield f"{DEBUG}/tegra_bwmgr/emc_{end}_rate", constant(f"{rate}\n")


def _bpmp(m: Machine) -> Files:
    emc = m.emc
    table = "".join(f"{i:3} {rate} 800\n" for i, rate in enumerate(emc.rates))
    yield f"{EMC}/rate", emc.rate_node()
    yield f"{EMC}/min_rate", constant(f"{emc.rates[0]}\n", 0o400)
    yield f"{EMC}/max_rate", constant(f"{emc.rates[-1]}\n", 0o400)
    yield f"{EMC}/dvfs", constant("idx  rate_hz mv\n" + table, 0o400)
    yield f"{EMC}/mrq_rate_locked", emc.locked.node(0o600)
    yield f"{EMC}/state", Number(1, (0, 1)).node(0o600)
    if m.profile.emc == "bpmp":
        yield f"{BPMP}/bwmgr/bwmgr_halt", Number(0, (0, 1)).node(0o600)
        yield f"{DEBUG}/cactmon/mc_all", live(lambda: _activity(m))


def _activity(m: Machine) -> float:
    """Busy clock of the memory in kHz."""
    share = m.reading().utilisation.get("emc") or 0.0
    return share * m.emc.clock_hz() / 1e3


def _power(m: Machine) -> Files:
    for chip in range(len(m.profile.chips)):
        if m.profile.strict:
            yield from _iio(m, chip)
        else:
            yield from _ina3221(m, chip)
    if not m.profile.gpu_name:
        folder = f"{HWMON}/hwmon5"
        yield f"{folder}/name", constant("ina238\n")
        yield f"{folder}/in1_label", constant("VIN\n")
        total = Rail("VIN", 20.0, {"total": 1.0})
        yield f"{folder}/power1_input", live(lambda: 1e6 * m.watts(total))


def _iio(m: Machine, chip: int) -> Files:
    folder = f"/sys/bus/i2c/drivers/ina3221x/1-004{chip}/iio:device{chip}"
    for n, rail in enumerate(m.profile.chips[chip]):
        yield f"{folder}/rail_name_{n}", constant(f"{rail.label}\n")
        yield f"{folder}/in_power{n}_input", live(partial(_milliwatts, m, rail))
        yield f"{folder}/in_voltage{n}_input", constant(f"{rail.volts * 1e3:.0f}\n")


def _ina3221(m: Machine, chip: int) -> Files:
    folder = f"{HWMON}/hwmon{chip + 2}"
    yield f"{folder}/name", constant("ina3221\n")
    yield f"{folder}/samples", constant("512\n")
    yield f"{folder}/update_interval", constant("1\n")
    for n, rail in enumerate(m.profile.chips[chip], 1):
        yield f"{folder}/in{n}_label", constant(f"{rail.label}\n")
        yield f"{folder}/in{n}_input", constant(f"{rail.volts * 1e3:.0f}\n")
        yield f"{folder}/curr{n}_input", live(partial(_milliamperes, m, rail))
    yield f"{folder}/in7_label", constant("sum of shunt voltages\n")
    yield f"{folder}/curr4_input", constant("99999\n")


def _milliwatts(m: Machine, rail: Rail) -> float:
    return 1e3 * m.watts(rail)


def _milliamperes(m: Machine, rail: Rail) -> float:
    """The monitor's steps are 8 mA."""
    return 8 * round(125 * m.watts(rail) / rail.volts) if rail.volts else 0.0


def _thermal(m: Machine) -> Files:
    def celsius(offset: float) -> Node:
        return live(lambda: 1000 * ((m.reading().temperature_c["tj"] or 0.0) + offset))

    zones = {"cpu-thermal": celsius(-2.0), "gpu-thermal": celsius(-1.0), "tj-thermal": celsius(0)}
    if not m.profile.gpu_name:
        zones["gpu-thermal"] = Node(lambda: _gated(m), moves=True)
    # An unused zone: an error since JetPack 6, absolute cold before.
    old = m.profile.jetpack < 6
    zones["cv0-thermal"] = constant("-256000\n") if old else Node(lambda: _fail(errno.EINVAL))
    zones["PMIC-Die"] = constant("100000\n")
    for n, (name, node) in enumerate(zones.items()):
        yield f"{THERMAL}/thermal_zone{n}/type", constant(f"{name}\n")
        yield f"{THERMAL}/thermal_zone{n}/temp", node
    yield f"{THERMAL}/cooling_device0/type", constant("17000000.gpu-devfreq\n")
    yield f"{THERMAL}/cooling_device0/cur_state", live(lambda: int(m.heat_hz.value > 0))
    if m.profile.jetpack > 5:
        yield f"{HWMON}/hwmon7/name", constant("soctherm_oc\n")
        for n in (1, 2, 3):
            yield f"{HWMON}/hwmon7/oc{n}_event_cnt", constant("0\n")


def _gated(m: Machine) -> str:
    """The GPU's zone of a board that powers it down."""
    if m.load.value == 0:
        _fail(errno.EAGAIN)
    return f"{1000 * (m.reading().temperature_c['tj'] or 0.0):.0f}\n"


def _fail(number: int) -> str:
    raise refusal(number)


def _controls(m: Machine) -> Files:
    """Not of any kernel: how a test turns the machine's own knobs."""
    yield "/rlgov/load_per_mille", m.load.node()
    yield "/rlgov/heat_gpu_hz", m.heat_hz.node()


def _under(folder: str, files: Mapping[str, Node]) -> Files:
    return ((f"{folder}/{name}", node) for name, node in files.items())
