"""How a machine is built: which CPUs there are, and what they share: packages, NUMA nodes, cores and caches."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial

from .conditions import cpuinfo
from .cpulist import cpus_of, cpus_of_mask
from .settings import CPU, number
from .tree import Tree

Cpus = frozenset[int]
UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
KINDS = {"Data": "data", "Instruction": "instruction", "Unified": "unified"}


@dataclass(frozen=True)
class Cache:
    """One cache. kind: data, instruction or unified; size: bytes, None where the kernel does not tell; cpus: who shares it."""

    level: int
    kind: str
    size: int | None
    cpus: Cpus


def online(tree: Tree) -> Cpus:
    """The CPUs that run. LookupError where nothing tells them."""
    sources: tuple[Callable[[], Cpus], ...] = (
        lambda: cpus_of(tree.read(f"{CPU}/online")),
        lambda: frozenset(int(name[3:]) for name in tree.names(CPU, r"cpu\d+")),
        lambda: _processors(tree),
    )
    for source in sources:
        if found := tree.fact("online", source):
            tree.unread.pop("online", None)
            return found
    raise LookupError(f"not available here: no CPU in {CPU} and none in proc/cpuinfo")


def _processors(tree: Tree) -> Cpus:
    return frozenset(int(n) for entry in cpuinfo(tree) if (n := entry.get("processor", "")).isdigit())


def offline(tree: Tree, running: Cpus) -> Cpus:
    """The CPUs that are there and do not run. OSError, ValueError."""
    present = tree.optional(f"{CPU}/present")
    return (cpus_of(tree.read(f"{CPU}/offline")) if present is None else cpus_of(present)) - running


def packages(tree: Tree, running: Cpus) -> Mapping[int, Cpus]:
    """CPUs by physical package. LookupError where the kernel numbers none; OSError, ValueError."""
    found: dict[int, set[int]] = {}
    for cpu in sorted(running):
        name = f"{CPU}/cpu{cpu}/topology/physical_package_id"
        package = int(number(name, tree.read(name)))
        if package < 0:
            raise LookupError(f"the kernel knows no package of CPU {cpu}: {package}")
        found.setdefault(package, set()).add(cpu)
    return {package: frozenset(cpus) for package, cpus in sorted(found.items())}


def nodes(tree: Tree) -> Mapping[int, Cpus]:
    """CPUs by NUMA node; a node with memory only has none. LookupError where the kernel has no nodes; OSError, ValueError."""
    base = "sys/devices/system/node"
    names = tree.names(base, r"node\d+")
    if not names:
        raise LookupError(f"not available here: no node in {base}")
    return {int(name[4:]): cpu_set(tree, f"{base}/{name}", "cpulist", "cpumap") for name in names}


def cpu_set(tree: Tree, folder: str, listed: str, mask: str) -> Cpus:
    """CPUs out of a file that lists them, or out of the one with a mask where there is no list. OSError, ValueError."""
    text = tree.optional(f"{folder}/{listed}")
    return cpus_of_mask(tree.read(f"{folder}/{mask}")) if text is None else cpus_of(text)


def siblings(tree: Tree, cpu: int) -> Cpus:
    """The threads of a CPU's core, itself among them. OSError, ValueError."""
    folder = f"{CPU}/cpu{cpu}/topology"
    found = cpu_set(tree, folder, "thread_siblings_list", "thread_siblings")
    if cpu not in found:
        raise ValueError(f"{folder}/thread_siblings_list does not hold CPU {cpu}")
    return found


def cores(tree: Tree, wanted: Iterable[int]) -> tuple[Cpus, ...]:
    """The cores of these CPUs, each as its threads; a CPU that another one names as its sibling is not asked itself.
    LookupError, with the first reason, where a CPU's core is not known."""
    found: set[Cpus] = set()
    covered: set[int] = set()
    failed: dict[int, str] = {}
    for cpu in sorted(wanted):
        if cpu in covered:
            continue
        try:
            core = siblings(tree, cpu)
        except (OSError, ValueError) as error:
            failed[cpu] = tree.reason(error)
            continue
        found.add(core)
        covered |= core
    for cpu, why in failed.items():
        if cpu not in covered:
            raise LookupError(why)
    return tuple(sorted(found, key=min))


def caches(tree: Tree, wanted: Iterable[int]) -> tuple[Cache, ...]:
    """Every cache of these CPUs once, the smallest level first. What cannot be read is left out and stands in the tree's `unread`.
    LookupError where none is told."""
    found: dict[tuple[int, str, int], Cache] = {}
    for cpu in sorted(wanted):
        base = f"{CPU}/cpu{cpu}/cache"
        for index in tree.names(base, r"index\d+"):
            cache = tree.fact(f"caches/cpu{cpu}/{index}", partial(_cache, tree, f"{base}/{index}", cpu, found))
            if cache:
                found.update({(cache.level, cache.kind, member): cache for member in cache.cpus})
    if not found:
        raise LookupError(f"not available here: no cache in {CPU}/cpu*/cache")
    return tuple(sorted(set(found.values()), key=lambda c: (c.level, c.kind, min(c.cpus))))


def _cache(tree: Tree, entry: str, cpu: int, found: Mapping[tuple[int, str, int], Cache]) -> Cache | None:
    """One entry; None where another CPU has told this cache."""
    level, kind = int(number(f"{entry}/level", tree.read(f"{entry}/level"))), KINDS.get(tree.read(f"{entry}/type"))
    if kind is None:
        raise ValueError(f"{entry}/type: {tree.read(f'{entry}/type')[:20]!r} is no type of cache")
    if (level, kind, cpu) in found:
        return None
    size = tree.optional(f"{entry}/size")
    return Cache(level, kind, None if size is None else cache_size(entry, size), cpu_set(tree, entry, *SHARED) | {cpu})


SHARED = ("shared_cpu_list", "shared_cpu_map")


def cache_size(entry: str, text: str) -> int:
    """Bytes out of a text like 48K. ValueError."""
    size = re.fullmatch(r"(\d+)([KMG]?)", text)
    if size is None:
        raise ValueError(f"{entry}/size: {text[:20]!r} is no size")
    return int(size[1]) * UNITS[size[2]]


def outside_l3(tree: Tree, wanted: Iterable[int]) -> Cpus:
    """Those of these CPUs that have caches and no L3, where others have one; none where nobody has one. OSError, ValueError."""
    inside: set[int] = set()
    without = set()
    for cpu in sorted(wanted):
        base = f"{CPU}/cpu{cpu}/cache"
        entries = [] if cpu in inside else [f"{base}/{index}" for index in tree.names(base, r"index\d+")]
        third = [entry for entry in entries if tree.read(f"{entry}/level") == "3"]
        for entry in third:
            inside |= cpu_set(tree, entry, *SHARED) | {cpu}
        if entries and not third:
            without.add(cpu)
    return frozenset(without - inside) if inside else frozenset()
