"""A machine as a JSON document: sets of CPUs are written as the kernel does, what is not told is null, and why is in "unread"."""

from collections.abc import Iterable, Mapping
from typing import Any

from .cpulist import list_of
from .report import FORMAT, Machine
from .topology import Cache, Cpus


def document(m: Machine) -> dict[str, Any]:
    """The document, out of JSON's own types."""
    return {
        "format": FORMAT,
        "cpu_model": m.cpu_model,
        "online": _set(m.online),
        "offline": _set(m.offline),
        "packages": _numbered(m.packages),
        "nodes": _numbered(m.nodes),
        "cores": None if m.cores is None else {"count": len(m.cores), "threads": [list_of(core) for core in m.cores]},
        "kinds": None if m.kinds is None else [{"kind": k.name, "cpus": list_of(k.cpus), "why": k.why} for k in m.kinds],
        "caches": None if m.caches is None else [_caches(*key, same) for key, same in grouped(m.caches).items()],
        "allowed": {
            "cpus": _set(m.allowed.cpus or None),
            "affinity": _set(m.allowed.affinity),
            "cpuset": _set(m.allowed.group),
            "cpuset_of": m.allowed.version,
        },
        "isolated": _set(m.isolated),
        "nohz_full": _set(m.nohz_full),
        "interrupts": None if m.interrupts is None else {str(cpu): count for cpu, count in sorted(m.interrupts.items())},
        "recommended": {"cpu": m.choice.cpu, "why": list(m.choice.why)},
        "settings": {name: vars(setting) for name, setting in m.settings.items()},
        "unread": dict(m.unread),
    }


def grouped(found: Iterable[Cache]) -> dict[tuple[int, str, int | None], list[Cpus]]:
    """Caches that are alike, by level, kind and size: who shares each of them."""
    groups: dict[tuple[int, str, int | None], list[Cpus]] = {}
    for cache in found:
        groups.setdefault((cache.level, cache.kind, cache.size), []).append(cache.cpus)
    return groups


def _caches(level: int, kind: str, size: int | None, shared: list[Cpus]) -> dict[str, Any]:
    return {"level": level, "type": kind, "bytes": size, "count": len(shared), "shared_by": [list_of(cpus) for cpus in shared]}


def _set(cpus: Cpus | None) -> str | None:
    return None if cpus is None else list_of(cpus)


def _numbered(sets: Mapping[int, Cpus] | None) -> list[dict[str, Any]] | None:
    return None if sets is None else [{"number": number, "cpus": list_of(cpus)} for number, cpus in sets.items()]
