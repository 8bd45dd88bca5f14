"""Machines as the kernel's small files: name -> {path: text}. Written after real ones, with only the files that the report reads, and
those that it must not read."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

from dispatchlab.machine.cpulist import cpus_of, list_of

Files = dict[str, str]
CPU = "sys/devices/system/cpu"
CLOCK = "sys/devices/system/clocksource/clocksource0"
TYPES = {"d": "Data", "i": "Instruction", "": "Unified"}


def plant(root: Path, files: Mapping[str, str]) -> Path:
    """The files below a folder, which is made."""
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def pairs(first: int, count: int, step: int) -> str:
    """Cores of two threads, numbered n and n + step."""
    return " ".join(f"{n},{n + step}" for n in range(first, first + count))


def singles(cpus: str) -> str:
    return " ".join(str(cpu) for cpu in sorted(cpus_of(cpus)))


def built(
    online: str, cores: str = "", packages: str = "", nodes: str = "", caches: Iterable[str] = (), present: str = ""
) -> Files:
    """sysfs of a machine. cores, packages, nodes: sets of CPUs, a word each; caches: "L2 2M core", or who shares them."""
    files = {f"{CPU}/online": online, f"{CPU}/present": present or online, f"{CPU}/isolated": ""}
    for core in cores.split():
        for cpu in cpus_of(core):
            files[f"{CPU}/cpu{cpu}/topology/thread_siblings_list"] = core
    for number, package in enumerate(packages.split()):
        for cpu in cpus_of(package):
            files[f"{CPU}/cpu{cpu}/topology/physical_package_id"] = str(number)
    for number, node in enumerate(nodes.split()):
        files[f"sys/devices/system/node/node{number}/cpulist"] = node.strip("-")
    told: Counter[int] = Counter()
    for line in caches:
        name, size, *sharing = line.split()
        for shared in cores.split() if sharing == ["core"] else sharing:
            for cpu in cpus_of(shared):
                entry = f"{CPU}/cpu{cpu}/cache/index{told[cpu]}"
                told[cpu] += 1
                files |= {
                    f"{entry}/level": name[1], f"{entry}/type": TYPES[name[2:]], f"{entry}/size": size,
                    f"{entry}/shared_cpu_list": shared,
                }  # fmt: skip
    return files


def running(cpus: str, allowed: str = "", counts: Iterable[int] = (), group: str = "0::/init.scope", steal: int = 0) -> Files:
    """procfs. cpus: that run; counts: device interrupts of each, the lowest CPU first; the timer's are many and do not count."""
    each = sorted(cpus_of(cpus))
    device = list(counts) or [100] * len(each)
    row = " ".join(map(str, device))
    busy = "".join(f"cpu{cpu} 100 0 100 9800 0 0 0 {steal} 0 0\n" for cpu in each)
    return {
        "proc/self/status": f"Name:\tpython\nCpus_allowed:\tff\nCpus_allowed_list:\t{allowed or cpus}\n",
        "proc/self/cgroup": group + "\n",
        "proc/interrupts": "      " + " ".join(f"CPU{cpu}" for cpu in each)
        + f"\n  24: {row} PCI-MSI 524288-edge nvme0q0\nLOC: {' '.join('99999' for _ in each)} Local timer interrupts\nERR: 0\n",
        "proc/stat": f"cpu  100 0 100 9800 0 0 0 {steal} 0 0\n{busy}intr 1\nctxt 2\n",
        "proc/uptime": "1000.00 900.00",
        "proc/sys/kernel/randomize_va_space": "2",
        "proc/sys/kernel/nmi_watchdog": "1",
        "proc/sys/kernel/perf_event_paranoid": "2",
        "proc/sys/kernel/osrelease": "6.8.0-generic",
        "sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never",
    }  # fmt: skip


def x86(
    model: str, cpus: str, clock: str = "tsc", clocks: str = "tsc hpet acpi_pm", flags: str = "", smt: str = "1", pmu: str = "cpu"
) -> Files:
    """What an x86 machine tells beside its topology."""
    block = "processor\t: {}\nvendor_id\t: x\nmodel name\t: {}\nmicrocode\t: 0x1\nflags\t\t: fpu tsc {}\n"
    files = {
        "proc/cpuinfo": "\n".join(block.format(cpu, model, flags) for cpu in sorted(cpus_of(cpus))),
        f"{CLOCK}/current_clocksource": clock,
        f"{CLOCK}/available_clocksource": clocks,
        f"{CPU}/smt/active": smt,
    }
    return files | {f"sys/bus/event_source/devices/{unit}/type": "4" for unit in pmu.split()}


def pstate(
    cpus: str, driver: str = "intel_pstate", governor: str = "powersave", low: int = 400000, high: int = 4700000, no_turbo: str = "0"
) -> Files:
    """cpufreq of x86, a policy for each CPU."""
    switch = {f"{CPU}/intel_pstate/no_turbo": no_turbo} if "intel" in driver else {f"{CPU}/cpufreq/boost": str(1 - int(no_turbo))}
    for cpu in cpus_of(cpus):
        policy = f"{CPU}/cpufreq/policy{cpu}"
        switch |= {
            f"{policy}/scaling_governor": governor, f"{policy}/scaling_driver": driver,
            f"{policy}/scaling_min_freq": str(low), f"{policy}/scaling_max_freq": str(high),
        }  # fmt: skip
    return switch


RAPL = {"sys/class/powercap/intel-rapl:0/name": "package-0", "sys/class/powercap/intel-rapl:0/energy_uj": "123456"}
PRIVATE = ("L1d 48K core", "L1i 32K core", "L2 2M core")


def arm(parts: Mapping[str, str], capacity: Mapping[str, int] | None = None, clock: str = "arch_sys_counter") -> Files:
    """What an ARM machine tells: parts and capacities by set of CPUs. The serial number is there to be left alone."""
    part_of = {cpu: part for cpus, part in parts.items() for cpu in cpus_of(cpus)}
    block = "processor\t: {}\nCPU implementer\t: 0x41\nCPU part\t: {}\n"
    files = {
        "proc/cpuinfo": "\n".join(block.format(*item) for item in sorted(part_of.items())) + "\nSerial\t\t: 10000000deadbeef\n",
        f"{CLOCK}/current_clocksource": clock,
        f"{CLOCK}/available_clocksource": clock,
        "sys/bus/event_source/devices/armv8_pmuv3_0/type": "8",
    }
    return files | {f"{CPU}/cpu{cpu}/cpu_capacity": str(value) for cpus, value in (capacity or {}).items() for cpu in cpus_of(cpus)}


def hybrid(p: str, e: str) -> Files:
    return {"sys/devices/cpu_core/cpus": p, "sys/devices/cpu_atom/cpus": e}


def _alder_lake() -> Files:
    cores = "0-1 2-3 4-5 6-7 " + singles("8-15")
    caches = ["L1d 48K core", "L1i 32K core", "L2 1280K 0-1 2-3 4-5 6-7", "L2 2M 8-11 12-15", "L3 18M 0-15"]
    return {
        **built("0-15", cores, "0-15", "0-15", caches), **running("0-15", counts=[900, 5, 300, 4, 200, 3, 250, 2, *[1] * 8]),
        **x86("12th Gen Intel Core i7-1260P", "0-15", pmu="cpu_core cpu_atom"), **pstate("0-15"), **hybrid("0-7", "8-15"), **RAPL,
    }  # fmt: skip


def _meteor_lake() -> Files:
    cores = "0-1 2-3 " + singles("4-13")
    caches = ["L1d 48K core", "L1i 64K core", "L2 2M 0-1 2-3 4-7 8-11 12-13", "L3 12M 0-11"]
    return {
        **built("0-13", cores, "0-13", "0-13", caches), **running("0-13"),
        **x86("Intel Core Ultra 5 135U", "0-13", pmu="cpu_core cpu_atom"), **pstate("0-13"), **hybrid("0-3", "4-13"), **RAPL,
    }  # fmt: skip


def _server(online: str = "0-31", smt: str = "1", cores: str = "", **settings: str) -> Files:
    cores = cores or pairs(0, 16, 16)
    l3 = "L3 32M 0-7,16-23 8-15,24-31" if smt == "1" else "L3 32M 0-7 8-15"
    return {
        **built(online, cores, online, online, ["L1d 32K core", "L1i 32K core", "L2 1M core", l3], present="0-31"),
        **running(online, counts=[1000 + (cpu * 37) % 53 for cpu in sorted(cpus_of(online))]),
        **x86("AMD EPYC 9124 16-Core Processor", online, smt=smt), **settings,
    }  # fmt: skip


def _sockets(count: int, each: int, nodes: int, private: tuple[str, ...] = PRIVATE) -> Files:
    """count packages of `each` cores and two threads, in so many nodes a package, an L3 for each node."""
    whole = count * each
    threads = f"0-{2 * whole - 1}"

    def both(size: int) -> list[str]:
        return [f"{n}-{n + size - 1},{n + whole}-{n + whole + size - 1}" for n in range(0, whole, size)]

    of_node = both(each // nodes)
    caches = [*private, "L3 32M " + " ".join(of_node)]
    return {
        **built(threads, pairs(0, whole, whole), " ".join(both(each)), " ".join(of_node), caches),
        **running(threads), **x86("AMD EPYC 7763 64-Core Processor", threads),
    }  # fmt: skip


def _biggest() -> Files:
    """1280 CPUs: masks of forty words, and a set that no cpu_set_t of the usual size holds."""
    return {**_sockets(8, 80, 1, ("L2 2M core",)), f"{CPU}/nohz_full": " (null)", "proc/self/cgroup": "0::/"}


def _phone() -> Files:
    caches = ["L1d 32K 0 1 2 3", "L1d 64K 4 5 6 7", "L2 512K 4 5 6", "L2 1M 7", "L3 4M 0-7"]
    capacity = {"0-3": 250, "4-6": 760, "7": 1024}
    return {
        **built("0-7", singles("0-7"), "0-7", "", caches), **running("0-7"),
        **arm({"0-3": "0xd05", "4-6": "0xd0d", "7": "0xd44"}, capacity), **pstate("0-7", "cpufreq-dt", "schedutil", 300000, 2840000),
    }  # fmt: skip


def _graviton() -> Files:
    caches = ["L1d 64K core", "L1i 64K core", "L2 1M core", "L3 32M 0-15"]
    return {
        **built("0-15", singles("0-15"), "0-15", "0-15", caches),
        **running("0-15", counts=[5] * 15 + [900]), **arm({"0-15": "0xd40"}, {"0-15": 1024}),
        "sys/class/dmi/id/sys_vendor": "Amazon EC2", "sys/class/dmi/id/product_name": "m7g.4xlarge",
        "sys/class/dmi/id/product_serial": "ec2deadbeef",
    }  # fmt: skip


def _raspberry() -> Files:
    """No caches, no nodes, no switch for SMT, a name without a package; the timer's interrupts are numbered like a device's."""
    files = built("0-3", singles("0-3"), "0-3") | running("0-3", counts=[5000, 9, 9, 9]) | arm({"0-3": "0xd08"})
    files |= pstate("0-3", "cpufreq-dt", "ondemand", 600000, 1500000)
    files["proc/interrupts"] += "  11: 50 1 2 88888 GICv2 30 Level arch_timer\n"
    del files[f"{CPU}/cpufreq/boost"]
    return files | {"proc/device-tree/serial-number": "10000000deadbeef", "proc/device-tree/model": "Raspberry Pi 4"}


def _apple() -> Files:
    caches = ["L1d 64K 0 1 2 3", "L1i 128K 0 1 2 3", "L1d 128K 4 5 6 7", "L1i 192K 4 5 6 7", "L2 4M 0-3", "L2 12M 4-7"]
    files = {
        **built("0-7", singles("0-7"), "0-7", "", caches), **running("0-7", counts=[9, 8, 7, 6, 3, 2, 1, 4]),
        **arm({"0-3": "0x022", "4-7": "0x023"}, {"0-3": 459, "4-7": 1024}),
        **pstate("0-7", "apple-cpufreq", "schedutil", 600000, 3204000),
        "sys/bus/event_source/devices/apple_firestorm_pmu/type": "9",
    }  # fmt: skip
    del files[f"{CPU}/cpufreq/boost"], files["sys/bus/event_source/devices/armv8_pmuv3_0/type"]
    return files


def _guest(vendor: str = "", clock: str = "kvm-clock", steal: int = 0, **more: str) -> Files:
    files = {
        **built("0-3", singles("0-3"), "0-3", "0-3", ["L1d 32K core", "L1i 32K core", "L2 4M core", "L3 16M 0-3"]),
        **running("0-3", steal=steal),
        **x86("Intel Xeon Processor", "0-3", clock, f"{clock} tsc", "hypervisor", smt="0", pmu=""), **more,
    }  # fmt: skip
    return files | ({"sys/class/dmi/id/sys_vendor": vendor} if vendor else {})


def _wsl() -> Files:
    files = {
        **built("0-7", "0-1 2-3 4-5 6-7", "0-7", "0-7", ["L1d 32K core", "L1i 32K core", "L2 512K core", "L3 16M 0-7"]),
        **running("0-7"),
        **x86("AMD Ryzen 7 5800U", "0-7", "hyperv_clocksource_tsc_page", "hyperv_clocksource_tsc_page acpi_pm", "hypervisor", pmu=""),
        "proc/sys/kernel/osrelease": "5.15.153.1-microsoft-standard-WSL2",
    }  # fmt: skip
    del files["proc/sys/kernel/nmi_watchdog"]
    return files


def _container(allowed: str, group: str, **files: str) -> Files:
    """A server's sysfs, seen from within."""
    return _server() | running("0-31", allowed, group=group) | files


def _gvisor() -> Files:
    return {
        "proc/cpuinfo": x86("unknown", "0-1")["proc/cpuinfo"], "proc/self/status": "Name:\tpython\nThreads:\t1\n",
        "proc/uptime": "12.3 0.0", "proc/stat": "cpu  0 0 0 0 0 0 0 0 0 0\n", "proc/sys/kernel/osrelease": "4.4.0",
    }  # fmt: skip


def _offline() -> Files:
    caches = ["L1d 32K core", "L1i 32K core", "L2 256K core", "L3 8M 0,2,4-7"]
    return {
        **built("0,2,4-7", "0 2 4 5 6 7", "0,2,4-7", "0,2,4-7", caches, present="0-7"),
        **running("0,2,4-7", counts=[9, 1, 2, 3, 4, 5]),
        **x86("Intel Core i7-6700", "0,2,4-7", smt="0"), **pstate("0,2,4-7"), **RAPL,
    }  # fmt: skip


def _tuned() -> Files:
    """A server that its owner set up for measuring."""
    files = _server("0-15", "0", singles("0-15")) | pstate("0-15", governor="performance", low=2400000, high=2400000, no_turbo="1")
    return files | {
        f"{CPU}/isolated": "managed_irq,domain,2-7", f"{CPU}/nohz_full": "4-7", "proc/sys/kernel/nmi_watchdog": "0",
        "proc/sys/kernel/randomize_va_space": "0", "sys/class/msr/msr0/dev": "202:0", **RAPL,
    }  # fmt: skip


def _riscv() -> Files:
    block = "processor\t: {}\nhart\t\t: {}\nisa\t\t: rv64imafdc\nuarch\t\t: sifive,u74-mc\n"
    return {
        **built("0-3", singles("0-3"), "0-3", "", ["L1d 32K core", "L1i 32K core", "L2 2M 0-3"]), **running("0-3"),
        "proc/cpuinfo": "\n".join(block.format(cpu, cpu + 1) for cpu in range(4)),
        f"{CLOCK}/current_clocksource": "riscv_clocksource", f"{CLOCK}/available_clocksource": "riscv_clocksource",
        **pstate("0-3", "cpufreq-dt", "performance", 375000, 1500000),
    }  # fmt: skip


def _mainframe() -> Files:
    """s390x: every processor's line holds the machine's serial number."""
    info = "vendor_id       : IBM/S390\n# processors    : 8\nprocessor 0: version = FF,  identification = 0ABCDE,  machine = 8561\n"
    return {
        **built("0-7", "0-1 2-3 4-5 6-7", "0-7", "0-7", ["L1d 128K core", "L1i 128K core", "L2 4M core", "L3 256M 0-7"]),
        **running("0-7", steal=500), "proc/cpuinfo": info, f"{CPU}/smt/active": "1",
        f"{CLOCK}/current_clocksource": "tod", f"{CLOCK}/available_clocksource": "tod",
        "sys/bus/event_source/devices/cpum_cf/type": "10",
    }  # fmt: skip


def _power9() -> Files:
    """Four threads a core, and nodes numbered 0 and 8."""
    block = "processor\t: {}\ncpu\t\t: POWER9, altivec supported\nrevision\t: 2.2\n"
    cores = " ".join(f"{n}-{n + 3}" for n in range(0, 32, 4))
    files = {
        **built("0-31", cores, "0-15 16-31", "0-15 16-31", ["L1d 32K core", "L1i 32K core", "L2 512K core", "L3 10M core"]),
        **running("0-31"),
        "proc/cpuinfo": "\n".join(map(block.format, range(32))) + "\nplatform\t: PowerNV\nmachine\t\t: 8335-GTH\n",
        f"{CPU}/smt/active": "1", f"{CLOCK}/current_clocksource": "timebase", f"{CLOCK}/available_clocksource": "timebase",
        **pstate("0-31", "powernv-cpufreq", "performance", 2300000, 3800000), "sys/bus/event_source/devices/cpu/type": "4",
    }  # fmt: skip
    files["sys/devices/system/node/node8/cpulist"] = files.pop("sys/devices/system/node/node1/cpulist")
    return files


def _memory_node() -> Files:
    """A node of memory without a CPU, as CXL cards are."""
    return _server() | {"sys/devices/system/node/node1/cpulist": ""}


LXC = {"sys/fs/cgroup/cpuset/lxc/alices-box/cpuset.cpus": "2-3,6-7", "sys/fs/cgroup/cpuset/cpuset.cpus": "0-31"}
MACHINES: dict[str, Files] = {
    "alder-lake": _alder_lake(),
    "meteor-lake": _meteor_lake(),
    "smt-server": _server(),
    "two-sockets": _sockets(2, 8, 1),
    "four-nodes-a-socket": _sockets(2, 16, 4),
    "1280-cpus": _biggest(),
    "phone-three-kinds": _phone(),
    "graviton": _graviton(),
    "raspberry-pi": _raspberry(),
    "apple-m1": _apple(),
    "wsl2": _wsl(),
    "docker-v2": _container("4-7", "0::/", **{"sys/fs/cgroup/cpuset.cpus.effective": "4-7"}),
    "lxc-v1": _container("2-3,6-7", "5:cpuset:/lxc/alices-box\n0::/", **LXC),
    "lxcfs": _container("4-7", "0::/") | {f"{CPU}/online": "0-3", f"{CPU}/present": "0-3"},
    "gvisor": _gvisor(),
    "kvm": _guest("QEMU", steal=300),
    "xen": _guest("Xen", "xen", **{"sys/hypervisor/type": "xen", "sys/hypervisor/uuid": "ec2d-beef"}),
    "hyper-v": _guest("Microsoft Corporation", "hyperv_clocksource_tsc_page"),
    "offline": _offline(),
    "isolated-server": _tuned(),
    "isolated-outside": _tuned() | running("0-15", "0-1,8-15"),
    "smt-off": _server("0-15", "0", singles("0-15")),
    "amd-pstate": _server() | pstate("0-31", "amd-pstate-epp"),
    "turbo-off": _server() | pstate("0-31", "intel_pstate", "performance", no_turbo="1"),
    "governor-empty": _server() | pstate("0-31", "acpi-cpufreq", ""),
    "step-isolated": _server() | {f"{CPU}/isolated": "0-31:1/2", f"{CPU}/nohz_full": ""},
    "risc-v": _riscv(),
    "s390x": _mainframe(),
    "power9": _power9(),
    "single-cpu": built("0", "0", "0", "0", PRIVATE) | running("0") | x86("Intel Celeron G1101", "0", smt="0"),
    "memory-node": _memory_node(),
}
MACHINES |= {file.stem: json.loads(file.read_text()) for file in sorted((Path(__file__).parent / "machines").glob("*.json"))}
"""Those with a file of their own were recorded with dispatchlab machine --record."""


def masks(cpus: str, words: int) -> str:
    """A set as the kernel's mask of so many words of 32 bits."""
    bits = sum(1 << cpu for cpu in cpus_of(cpus))
    return ",".join(f"{bits >> 32 * word & 0xFFFFFFFF:08x}" for word in range(words - 1, -1, -1))


def with_masks(files: Files, words: int) -> Files:
    """The same machine, with masks instead of lists wherever the kernel has both."""
    names = {"thread_siblings_list": "thread_siblings", "shared_cpu_list": "shared_cpu_map", "cpulist": "cpumap"}
    out = {}
    for name, text in files.items():
        folder, _, last = name.rpartition("/")
        out[f"{folder}/{names[last]}" if last in names else name] = masks(text, words) if last in names else text
    allowed = list_of(cpus_of(files["proc/self/status"].split("Cpus_allowed_list:")[1]))
    return out | {"proc/self/status": f"Cpus_allowed:\t{masks(allowed, words)}\n"}
