"""Running the two-thread labs: which CPUs, how far they are apart, and what was refused. Studies put rounds together from it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from . import _engine
from .errors import Error, UsageError, explain

LEAST_CAPACITY = 2
TRIPS = 2000
RAPL = Path("/sys/class/powercap/intel-rapl:0/energy_uj")


def two_cpus(first: int | None = None) -> list[int]:
    """Two different allowed CPUs, the one asked for among them. UsageError when there is one only."""
    allowed = _engine.allowed_cpus()
    if len(allowed) < 2:
        raise UsageError(
            explain(
                "a hand-off needs two CPUs", "labs", "two allowed CPUs", f"CPU {allowed[0]} alone",
                "allow another one (taskset, cpuset): on one CPU the scheduler would be measured",
            )
        )  # fmt: skip
    chosen = allowed[-1] if first is None else first
    if chosen not in allowed:
        raise UsageError(explain("cannot pin there", "cpu", f"one of {', '.join(map(str, allowed))}", str(chosen)))
    return [next(c for c in allowed if c != chosen), chosen]


def thread_cpus(threads: int, oversubscribe: bool = False) -> list[int]:
    """One CPU for each thread. UsageError for more threads than CPUs unless that is asked for."""
    allowed = _engine.allowed_cpus()
    if threads < 1 or (threads > len(allowed) and not oversubscribe):
        raise UsageError(
            explain(
                "more threads than CPUs", "lock", f"1 to {len(allowed)}", str(threads), "--oversubscribe has them share"
            )
        )
    return [allowed[i % len(allowed)] for i in range(threads)]


def check_capacity(version: str, capacity: int) -> int:
    """The capacity, if the version can have it. UsageError for less than 2, no power of two from v6 on, more than memory."""
    masked = next((power for kind, name, _, power in _engine.lab_versions() if (kind, name) == ("ring", version)), None)
    if masked is None:
        known = [name for kind, name, _, _ in _engine.lab_versions() if kind == "ring"]
        raise UsageError(explain("no such ring", expected=", ".join(known), got=version))
    if capacity < LEAST_CAPACITY or (masked and capacity & (capacity - 1)):
        what = "a power of two, 2 or more" if masked else "2 or more"
        raise UsageError(explain("capacity cannot be used", f"ring {version}", what, str(capacity)))
    if capacity > (most := _memory() // 64):
        raise UsageError(explain("capacity is larger than memory", f"ring {version}", f"at most {most}", str(capacity)))
    return capacity


def _memory() -> int:
    import os

    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def roundtrip_ns(cpus: list[int], rate: float, trips: int = TRIPS) -> float:
    """ns that a cache line takes from one CPU to the other and back, mean of `trips`."""
    return _engine.lab_roundtrip(cpus, trips) / rate / trips


def keep_rounds(plan: Iterable[Callable[[], dict[str, Any]]]) -> tuple[list[dict[str, Any]], bool]:
    """Run rounds until all are done or somebody interrupts; (finished rounds, whether it was interrupted)."""
    done: list[dict[str, Any]] = []
    try:
        for one in plan:
            done.append(one())
    except KeyboardInterrupt:
        if not done:
            raise
        return done, True
    return done, False


def beside(cpus: list[int], rate: float, work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """The work's row, with the round trip before and after it."""
    before = roundtrip_ns(cpus, rate)
    row = work()
    return {**row, "before_ns": before, "after_ns": roundtrip_ns(cpus, rate)}


def unavailable() -> dict[str, str]:
    """Why cache misses and energy are not in the rows: the counters are of the calling thread, and the labs make others."""
    energy = "not available here: no RAPL (/sys/class/powercap is empty)"
    if RAPL.exists():
        energy = "not recorded: RAPL counts the whole package"
    return {"cache misses": "not recorded: the counters belong to the calling thread", "energy": energy}


def refuse(failures: list[str]) -> None:
    """Error with the first failure, if there is one: a lab whose checks fail has no numbers."""
    if failures:
        raise Error(explain("the lab's own check failed", got=failures[0], remedy="report this machine and compiler"))
