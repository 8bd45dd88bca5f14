"""A machine looked at from one root: how it is built, how it is set, and which CPU to pin to. Nothing is measured or changed."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from ..errors import UsageError, explain
from .allowed import Allowed, allowed, isolated, nohz_full
from .conditions import about, clock_source, energy, event_counters, model, msr, steal, virtual
from .cpulist import list_of
from .interrupts import interrupts, uptime
from .kinds import Kind, kinds, split
from .recommend import Choice, recommend
from .settings import (
    Setting,
    aslr,
    bad,
    driver,
    governor,
    judged,
    limits,
    nmi_watchdog,
    ok,
    perf_event_paranoid,
    smt,
    thp,
    turbo,
    unknown,
)
from .topology import Cache, Cpus, caches, cores, nodes, offline, online, outside_l3, packages
from .tree import Tree

FORMAT = "dispatchlab machine 1"
QUIET = 10.0
"""Interrupts of devices per second; each takes some microseconds, so this is a share of about 1 in 20 000."""


@dataclass(frozen=True)
class Machine:
    """What is known. None: not told, with the reason in `unread`. choice: the CPU to pin to; settings: each judged."""

    cpu_model: str | None
    online: Cpus | None
    offline: Cpus | None
    packages: Mapping[int, Cpus] | None
    nodes: Mapping[int, Cpus] | None
    cores: tuple[Cpus, ...] | None
    caches: tuple[Cache, ...] | None
    kinds: tuple[Kind, ...] | None
    allowed: Allowed
    isolated: Cpus | None
    nohz_full: Cpus | None
    interrupts: Mapping[int, int] | None
    choice: Choice
    settings: Mapping[str, Setting]
    unread: Mapping[str, str] = field(default_factory=dict)


def tree_of(root: str | os.PathLike[str] = "/") -> Tree:
    """The files below a root, none read yet. UsageError where it is no folder."""
    folder = Path(root)
    try:
        there = folder.is_dir()
    except (OSError, ValueError):  # a name too long, or with a null character
        there = False
    if not there:
        raise UsageError(explain("is not a folder", str(root), "/ or a recorded tree"))
    return Tree(folder.resolve())


def machine(tree: Tree) -> Machine:
    """Everything that the tree tells."""
    info = tree.fact("cpu_model", lambda: model(about(tree)))
    running = tree.fact("online", lambda: online(tree))
    off = tree.fact("offline", lambda: offline(tree, running or frozenset()))
    mine = allowed(tree, running or frozenset())
    if running is not None and not mine.cpus <= running:
        running = mine.cpus  # a container's file of running CPUs that is made up: the mask is the kernel's
    found = _sets(tree, running or frozenset())
    choice = recommend(tree, mine.cpus)
    m = Machine(cpu_model=info, online=running, offline=off, allowed=mine, choice=choice, settings={}, **found)
    settings = {**{name: judged(tree, judge) for name, judge in JUDGES.items()}, **_of_cpus(tree, m)}
    if settings["smt"].state == "unknown" and m.cores:
        settings["smt"] = _smt_of_cores(m.cores)
    return Machine(**{**vars(m), "settings": settings, "unread": dict(sorted(tree.unread.items()))})


JUDGES: Mapping[str, Callable[[Tree], Setting]] = {
    "governor": governor,
    "frequency driver": driver,
    "frequency limits": limits,
    "turbo": turbo,
    "smt": smt,
    "aslr": aslr,
    "thp": thp,
    "nmi watchdog": nmi_watchdog,
    "perf_event_paranoid": perf_event_paranoid,
    "clock source": clock_source,
    "hypervisor": virtual,
    "steal": steal,
    "event counters": event_counters,
    "energy counters": energy,
    "msr": msr,
}


def _sets(tree: Tree, running: Cpus) -> dict[str, Any]:
    """What is a set of CPUs, or several."""

    def told(name: str, read: Callable[[Tree, Cpus], Any]) -> Any:
        if not running:
            tree.unread[name] = "no CPU is known"
            return None
        return tree.fact(name, lambda: read(tree, running))

    beyond = told("outside the L3", outside_l3) or frozenset()
    of_kind = told("kinds", kinds)
    return {
        "packages": told("packages", packages),
        "nodes": tree.fact("nodes", lambda: nodes(tree)),
        "cores": told("cores", cores),
        "caches": told("caches", caches),
        "kinds": of_kind and split(of_kind, beyond),
        "isolated": tree.fact("isolated", lambda: isolated(tree)),
        "nohz_full": tree.fact("nohz_full", lambda: nohz_full(tree)),
        "interrupts": tree.fact("interrupts", lambda: interrupts(tree)),
    }


def _smt_of_cores(found: tuple[Cpus, ...]) -> Setting:
    """Kernels without a switch for it still tell the threads of each core."""
    most = max(len(core) for core in found)
    if most == 1:
        return ok("off", "no core shows a second thread")
    return bad("on", f"{most} threads share a core's caches and ports")


def _of_cpus(tree: Tree, m: Machine) -> dict[str, Setting]:
    """Settings that depend on the chosen CPU."""
    return {
        "allowed": _allowed(tree, m),
        "isolated": _kept_alone(tree, m, "isolated", m.isolated, "no other work is put there", "other work may run there"),
        "nohz_full": _kept_alone(tree, m, "nohz_full", m.nohz_full, "no timer tick there", "the timer ticks there"),
        "offline": _offline(tree, m),
        "interrupts": judged(tree, partial(_interrupts, m)),
    }


def _allowed(tree: Tree, m: Machine) -> Setting:
    if not m.allowed.cpus:
        return unknown("no CPU is known here")
    value = list_of(m.allowed.cpus)
    if m.allowed.affinity is None and m.allowed.group is None:
        return unknown(f"neither mask nor cpuset is told ({tree.unread['affinity']}); online: {value}")
    if len(m.allowed.cpus) == 1:
        return bad(value, "the only one: whatever else is started here runs there too")
    return ok(value, "other work can be kept off the chosen one")


def _kept_alone(tree: Tree, m: Machine, name: str, cpus: Cpus | None, good: str, poor: str) -> Setting:
    chosen = m.choice.cpu
    if cpus is None:
        return unknown(f"not available here: {tree.unread[name]}")
    if chosen is None:
        return unknown("no CPU is known here", list_of(cpus) or None)
    value = list_of(cpus) or "none"
    if chosen in cpus:
        return ok(value, f"CPU {chosen} is one: {good}")
    if cpus and not cpus & m.allowed.cpus:  # a kernel starts every process outside of the isolated ones
        return bad(value, f"none of them is allowed to this process: start it with taskset -c {min(cpus)}")
    return bad(value, f"CPU {chosen} is none: {poor}")


def _offline(tree: Tree, m: Machine) -> Setting:
    if m.offline is None:
        return unknown(tree.unread["offline"])
    return ok(list_of(m.offline) or "none", "they take no work" if m.offline else "every CPU runs")


def _interrupts(m: Machine, tree: Tree) -> Setting:
    if m.interrupts is None:
        return unknown(tree.unread["interrupts"])
    if m.choice.cpu is None or m.choice.cpu not in m.interrupts:
        return unknown("not told for the chosen CPU")
    count = m.interrupts[m.choice.cpu]
    rate = count / uptime(tree)
    value = f"{count} of {sum(m.interrupts.values())}"
    why = f"CPU {m.choice.cpu} took {rate:.1f} a second from devices since boot"
    return bad(value, f"{why}: dispatchlab tune moves those that can be moved") if rate > QUIET else ok(value, why)
