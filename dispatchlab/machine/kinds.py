"""Kinds of cores: fast and thrifty ones side by side, as the kernel tells them on x86 and on ARM."""

from dataclasses import dataclass

from .conditions import cpuinfo
from .cpulist import cpus_of
from .settings import CPU, number
from .topology import Cpus
from .tree import Tree

X86 = (("cpu_core", "performance"), ("cpu_atom", "efficiency"), ("cpu_lowpower", "low-power efficiency"))
ALIKE = "all alike"


@dataclass(frozen=True)
class Kind:
    """Cores that are alike. name: what they are for; why: what tells it."""

    name: str
    cpus: Cpus
    why: str


def kinds(tree: Tree, running: Cpus) -> tuple[Kind, ...]:
    """The kinds of these CPUs, the fastest first. OSError, ValueError."""
    for read in (_of_counters, _of_capacity, _of_parts):
        if found := read(tree, running):
            return found
    return (Kind(ALIKE, running, "nothing tells several kinds"),)


def split(found: tuple[Kind, ...], outside: Cpus) -> tuple[Kind, ...]:
    """The kinds with the cores outside the L3 told apart, those after all others."""
    within = [Kind(k.name, k.cpus - outside, k.why) for k in found if k.cpus - outside]
    beyond = [
        Kind(f"{k.name}, outside the L3", k.cpus & outside, f"{k.why}; no L3 in its caches") for k in found if k.cpus & outside
    ]
    return (*within, *beyond)


def _of_counters(tree: Tree, running: Cpus) -> tuple[Kind, ...]:
    """x86 has an event counter unit for each kind, with its CPUs."""
    found = []
    for unit, name in X86:
        cpus = cpus_of(tree.optional(f"sys/devices/{unit}/cpus") or "") & running
        if cpus:
            found.append(Kind(name, cpus, f"in /sys/devices/{unit}/cpus"))
    rest = running.difference(*(kind.cpus for kind in found))
    if found and rest:
        found.append(Kind("of unknown kind", rest, "in no cpus file of an event counter unit"))
    return tuple(found)


def _of_capacity(tree: Tree, running: Cpus) -> tuple[Kind, ...]:
    """ARM tells each CPU's speed beside the fastest one's, which is 1024."""
    told: dict[int, set[int]] = {}
    for cpu in sorted(running):
        text = tree.optional(f"{CPU}/cpu{cpu}/cpu_capacity")
        if text is None:
            return ()
        told.setdefault(int(number("cpu_capacity", text)), set()).add(cpu)
    levels = sorted(told, reverse=True)
    if len(levels) < 2:
        return ()
    named = zip(_ranked(len(levels)), levels, strict=True)
    return tuple(Kind(name, frozenset(told[level]), f"cpu_capacity {level}") for name, level in named)


def _of_parts(tree: Tree, running: Cpus) -> tuple[Kind, ...]:
    """Without a capacity, ARM tells the part of each core; the highest clock says which is the fastest, where it is told."""
    told: dict[str, set[int]] = {}
    for entry in cpuinfo(tree) if tree.optional("proc/cpuinfo") is not None else ():
        cpu, part = entry.get("processor", ""), entry.get("CPU part", "")
        if cpu.isdigit() and part and int(cpu) in running:
            told.setdefault(part, set()).add(int(cpu))
    if len(told) < 2 or set().union(*told.values()) != running:
        return ()
    clocks = {}
    for part, cpus in told.items():
        text = tree.optional(f"{CPU}/cpu{min(cpus)}/cpufreq/cpuinfo_max_freq")
        if text is None:
            return tuple(Kind(f"part {p}", frozenset(told[p]), "CPU part in /proc/cpuinfo") for p in sorted(told))
        clocks[part] = number("cpuinfo_max_freq", text)
    named = zip(_ranked(len(told)), sorted(told, key=lambda p: -clocks[p]), strict=True)
    return tuple(Kind(n, frozenset(told[p]), f"CPU part {p}, up to {clocks[p] / 1000:.0f} MHz") for n, p in named)


def _ranked(count: int) -> list[str]:
    """Names of so many kinds, the fastest first."""
    between = ["middle"] if count == 3 else [f"middle {i + 1}" for i in range(count - 2)]
    return ["performance", *between, "efficiency"]
