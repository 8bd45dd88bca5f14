"""Settings that decide whether a measurement repeats, each judged: ok, bad for benchmarking, or unknown, with the value and why."""

import re
from collections.abc import Callable
from dataclasses import dataclass

from .tree import Tree

CPU = "sys/devices/system/cpu"
PERFORMANCE = "performance"


@dataclass(frozen=True)
class Setting:
    """state: "ok", "bad" (for benchmarking) or "unknown"; value: as the kernel shows it, None where it does not; why: one clause."""

    state: str
    value: str | None
    why: str


Judge = Callable[[Tree], Setting]


def ok(value: str, why: str) -> Setting:
    """What repeats best."""
    return Setting("ok", value, why)


def bad(value: str, why: str) -> Setting:
    """What makes timings vary."""
    return Setting("bad", value, why)


def unknown(why: str, value: str | None = None) -> Setting:
    """What the kernel does not tell, or what cannot be judged."""
    return Setting("unknown", value, why)


def judged(tree: Tree, judge: Judge) -> Setting:
    """A setting; unknown, with the file and its error, where a read fails."""
    try:
        return judge(tree)
    except (OSError, ValueError) as error:
        return unknown(tree.reason(error))


def policies(tree: Tree) -> list[str]:
    """The folders that hold frequency settings: one per policy, else one per CPU."""
    base = f"{CPU}/cpufreq"
    found = [f"{base}/{name}" for name in tree.names(base, r"policy\d+")]
    return found or [f"{CPU}/{name}/cpufreq" for name in tree.names(CPU, r"cpu\d+")]


def of_policies(tree: Tree, file: str) -> list[str]:
    """What a file says in each policy that has it."""
    return [text for policy in policies(tree) if (text := tree.optional(f"{policy}/{file}")) is not None]


def number(name: str, text: str) -> float:
    """The number in a file's text. ValueError that names the file."""
    if not re.fullmatch(r"-?\d{1,18}(\.\d+)?", text):
        raise ValueError(f"{name}: {text[:20]!r} is no number")
    return float(text)


NO_CPUFREQ = "the kernel scales no frequency here (no cpufreq)"


def governor(tree: Tree) -> Setting:
    """Who decides the frequency."""
    told = of_policies(tree, "scaling_governor")
    if not told:
        return unknown(NO_CPUFREQ)
    names = sorted(set(told))
    if "" in names:
        return unknown("scaling_governor is empty: the driver decides by itself")
    if names == [PERFORMANCE]:
        return ok(PERFORMANCE, "fixed high")
    return bad(",".join(names), "the clock follows the load")


TURBO = ((f"{CPU}/intel_pstate/no_turbo", "0"), (f"{CPU}/cpufreq/boost", "1"))


def turbo(tree: Tree) -> Setting:
    """Whether the clock may rise above its nominal value for a while."""
    for name, on in TURBO:
        text = tree.optional(name)
        if text is not None:
            return _turbo({_switch(name, text) == on})
    told = of_policies(tree, "boost")
    if told:
        return _turbo({_switch("cpufreq/policy*/boost", text) == "1" for text in told})
    return unknown("the kernel shows no switch for it")


def _turbo(on: set[bool]) -> Setting:
    if True in on:
        return bad("on", "the clock depends on heat and on the other cores")
    return ok("off", "the clock does not depend on the other cores")


def _switch(name: str, text: str) -> str:
    if text not in ("0", "1"):
        raise ValueError(f"{name}: {text[:20]!r} is neither 0 nor 1")
    return text


def smt(tree: Tree) -> Setting:
    """Whether cores run several threads at a time."""
    value = _switch(f"{CPU}/smt/active", tree.read(f"{CPU}/smt/active"))
    if value == "0":
        return ok("off", "no other thread shares a core, as far as this kernel sees")
    return bad("on", "another thread may share the core's caches and ports")


def thp(tree: Tree) -> Setting:
    """Transparent huge pages."""
    text = tree.read("sys/kernel/mm/transparent_hugepage/enabled")
    match = re.search(r"\[(\w+)\]", text)
    if match is None:
        return unknown(f"no choice is marked in {text[:40]!r}")
    if match[1] == "always":
        return bad("always", "page size depends on what memory is free")
    return ok(match[1], "pages are small, since the engine does not ask for huge ones")


def aslr(tree: Tree) -> Setting:
    """Whether addresses differ from run to run."""
    value = tree.read("proc/sys/kernel/randomize_va_space")
    if value not in ("0", "1", "2"):
        return unknown(f"{value[:20]!r} is none of 0, 1, 2")
    if value == "0":
        return ok(value, "the same addresses in every run")
    return bad(value, "other addresses in every run")


def driver(tree: Tree) -> Setting:
    """Who sets the frequency in hardware."""
    told = sorted(set(of_policies(tree, "scaling_driver")))
    if not told:
        return unknown(NO_CPUFREQ)
    names = ",".join(told)
    if set(told) & {"intel_pstate", "amd-pstate-epp"}:
        return ok(names, "the CPU chooses its clock itself, within the limits")
    return ok(names, "the kernel asks for each clock")


def limits(tree: Tree) -> Setting:
    """Between which frequencies the clock may move."""
    ranges = set()
    for policy in policies(tree):
        ends = tree.optional(f"{policy}/scaling_min_freq"), tree.optional(f"{policy}/scaling_max_freq")
        if None not in ends:
            ranges.add(tuple(number(f"{policy}/scaling_min_freq", text or "") for text in ends))
    if not ranges:
        return unknown(NO_CPUFREQ)
    value = "; ".join(_mhz(*ends) for ends in sorted(ranges))
    if all(low == high for low, high in ranges):
        return ok(value, "the lowest is the highest")
    return bad(value, "the clock may move between them")


def _mhz(low: float, high: float) -> str:
    """kHz, as the kernel counts, as MHz."""
    return f"{low / 1000:.0f} MHz" if low == high else f"{low / 1000:.0f}-{high / 1000:.0f} MHz"


def nmi_watchdog(tree: Tree) -> Setting:
    """The kernel's own use of a cycle counter."""
    name = "proc/sys/kernel/nmi_watchdog"
    if _switch(name, tree.read(name)) == "0":
        return ok("0", "no counter is taken")
    return bad("1", "it takes a counter and interrupts every CPU")


PARANOID = "proc/sys/kernel/perf_event_paranoid"


def perf_event_paranoid(tree: Tree) -> Setting:
    """Who may count events."""
    value = int(number(PARANOID, tree.read(PARANOID)))
    if value <= 2:
        return ok(str(value), "a process may count its own events")
    return bad(str(value), "only a privileged process may count events")
