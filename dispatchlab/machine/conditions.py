"""What a machine has for measuring and what it runs on: clock, hypervisor, steal, counters of events and energy."""

from collections.abc import Mapping

from .settings import Setting, bad, number, ok, unknown
from .tree import Tree

CLOCK = "sys/devices/system/clocksource/clocksource0"
GUEST_CLOCKS = (("kvm-clock", "kvm"), ("hyperv_clocksource", "hyper-v"), ("xen", "xen"))
FAST_CLOCKS = ("tsc", "arch_sys_counter", "riscv_clocksource", "timebase", "tod", "kvm-clock", "hyperv_clocksource_tsc_page")
SLOW_CLOCKS = ("hpet", "acpi_pm", "jiffies", "refined-jiffies", "pit", "hyperv_clocksource_msr")
MOST_STEAL = 0.001
"""Share of the time since boot. Less is what starting a guest costs."""
CPUINFO = (
    "processor", "vendor_id", "model name", "microcode", "flags", "CPU implementer", "CPU part", "cpu", "platform", "uarch",
)  # fmt: skip
"""Lines of /proc/cpuinfo that are looked at. Others hold serial numbers on some machines."""
VIRTUAL_VENDORS = {
    "QEMU": "kvm or qemu", "Amazon EC2": "nitro", "Google": "kvm", "Microsoft Corporation": "hyper-v", "VMware, Inc.": "vmware",
    "Xen": "xen", "KVM": "kvm",
}  # fmt: skip
PMU = r"cpu|cpu_core|cpu_atom|cpu_lowpower|cpum_.*|power_pmu|armv[78].*|apple_.*_pmu|riscv-pmu"


def cpuinfo(tree: Tree) -> list[dict[str, str]]:
    """The "key : value" lines of /proc/cpuinfo that are looked at, a mapping per processor. OSError."""
    blocks = tree.read("proc/cpuinfo").split("\n\n")
    return [found for block in blocks if (found := _pairs(block))]


def about(tree: Tree) -> dict[str, str]:
    """The lines of the first processor, and those after the last one, where POWER tells of the whole machine. OSError."""
    found = cpuinfo(tree)
    return {**found[-1], **found[0]} if found else {}


def _pairs(block: str) -> dict[str, str]:
    parted = (line.partition(":") for line in block.splitlines())
    return {key.strip(): value.strip() for key, _, value in parted if key.strip() in CPUINFO}



def model(info: Mapping[str, str]) -> str:
    """The CPU's name: x86 and POWER say one; arm says who designed the core and which part it is. LookupError."""
    if "CPU part" in info:
        return f"implementer {known(info, 'CPU implementer')} part {info['CPU part']}"
    for key in ("model name", "cpu", "uarch", "vendor_id"):
        if info.get(key):
            return info[key]
    raise LookupError("proc/cpuinfo has no model name")


def known(info: Mapping[str, str], key: str) -> str:
    if not info.get(key):
        raise LookupError(f"proc/cpuinfo has no {key}")
    return info[key]


def hypervisor(tree: Tree, info: Mapping[str, str]) -> str | None:
    """Which hypervisor this runs on, None on bare metal. LookupError where that cannot be told; OSError."""
    if not info:
        raise LookupError("proc/cpuinfo tells nothing")
    for name in ("sys/hypervisor/type", "proc/device-tree/hypervisor/compatible"):
        if found := (tree.optional(name) or "").rstrip("\0"):
            return found
    if "microsoft" in (tree.optional("proc/sys/kernel/osrelease") or "").lower():
        return "hyper-v (WSL2)"
    clocks = tree.optional(f"{CLOCK}/available_clocksource") or ""
    for clock, kind in GUEST_CLOCKS:
        if clock in clocks:
            return kind
    if "flags" in info:
        return _of_flags(tree, info["flags"].split())
    if platform := info.get("platform"):  # POWER
        return None if platform == "PowerNV" else platform
    if info.get("vendor_id") == "IBM/S390":
        return "a partition, as always on this architecture"
    vendor = tree.optional("sys/class/dmi/id/sys_vendor") or ""
    if vendor in VIRTUAL_VENDORS and "metal" not in (tree.optional("sys/class/dmi/id/product_name") or ""):
        return VIRTUAL_VENDORS[vendor]
    raise LookupError("this architecture has no sign by which a guest knows that it is none")


def _of_flags(tree: Tree, flags: list[str]) -> str | None:
    if "hypervisor" not in flags:
        return None
    return tree.optional("sys/class/dmi/id/sys_vendor") or "of unknown kind"



def virtual(tree: Tree) -> Setting:
    """Whether something below the kernel shares the CPU."""
    try:
        kind = hypervisor(tree, about(tree))
    except LookupError as error:
        return unknown(tree.reason(error))
    if kind is None:
        return ok("none", "nothing below the kernel shares the CPU")
    return bad(kind, "its host may take the CPU, and it hides parts of the hardware")


def clock_source(tree: Tree) -> Setting:
    """What the kernel tells the time by."""
    name = tree.read(f"{CLOCK}/current_clocksource")
    if name in FAST_CLOCKS:
        return ok(name, "read without a system call")
    if name in SLOW_CLOCKS:
        return bad(name, "each reading is a system call and a slow device")
    return unknown("it is not known how this one is read", name or None)


def steal(tree: Tree) -> Setting:
    """How much of the time the host ran something else."""
    fields = [number("proc/stat", f) for f in _line(tree, "cpu").split()[1:]]
    if len(fields) < 8:
        return unknown("proc/stat has no column for it")
    if not (whole := sum(fields[:8])):
        return unknown("proc/stat counts no time")
    share = fields[7] / whole
    value = f"{share:.2%} of the time since boot".replace("%", " %")
    if share > MOST_STEAL:
        return bad(value, "the host ran others while this one wanted to run")
    return ok(value, "the host let this one run" if fields[7] else "the kernel counts none")


def _line(tree: Tree, name: str) -> str:
    for line in tree.read("proc/stat").splitlines():
        if line.split()[:1] == [name]:
            return line
    raise ValueError(f"proc/stat has no line {name}")



def energy(tree: Tree) -> Setting:
    """The CPU's energy counters (RAPL)."""
    base = "sys/class/powercap"
    named = [tree.optional(f"{base}/{entry}/name") for entry in tree.names(base, r"(intel|amd)-rapl(-mmio)?:\d+")]
    found = sorted({name for name in named if name})
    if not found:
        return unknown(f"not available here: no zone below {base}")
    return ok(",".join(found), "energy can be counted, by root")


def event_counters(tree: Tree) -> Setting:
    """The CPU's counters of events (PMU)."""
    base = "sys/bus/event_source/devices"
    found = [entry for entry in tree.names(base, PMU) if tree.optional(f"{base}/{entry}/type") is not None]
    if not found:
        return unknown(f"not available here: no counters of a CPU in {base}")
    return ok(",".join(found), "events can be counted")


def msr(tree: Tree) -> Setting:
    """The model specific registers."""
    if tree.optional("sys/class/msr/msr0/dev") is None:
        return unknown("not available here: no sys/class/msr/msr0 (no such registers, or module msr is not loaded)")
    return ok("there", "root can read them")
