"""Study `ring`: items through every version of the ring between two CPUs, the round trip beside each round."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from .. import _engine
from ..between import beside, check_capacity, keep_rounds, refuse, two_cpus, unavailable
from ..measure import record
from ..recording import Recording
from .options import Options

VERSIONS = ("v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9")
CAPACITIES = (64, 1024, 65536, 1 << 20)
GAP_NS = 500
ROUNDS = 60


def run(options: Options) -> Recording:
    """Interleaved rounds of every version at every capacity; then the one-way latency of each at the second capacity."""
    cpus = two_cpus(options.cpu)
    rate = _engine.clock_info()["ticks_per_ns"]
    capacities = CAPACITIES[1:2] if options.quick else CAPACITIES
    items = 50_000 if options.quick else 1_000_000
    expected = reference(items)
    rng = np.random.default_rng(options.seed)
    cells = [(v, check_capacity(v, c)) for c in capacities for v in VERSIONS]
    plan: list[Callable[[], dict[str, Any]]] = []
    for _ in range(options.rounds or (10 if options.quick else ROUNDS)):
        for i in rng.permutation(len(cells)):
            version, capacity = cells[i]
            plan.append(partial(beside, cpus, rate, partial(transfer, version, capacity, cpus, items, expected, rate)))
    done, interrupted = keep_rounds(plan)
    facts: dict[str, Any] = {"items": items, "rounds": done, "interrupted": interrupted, "counters": unavailable()}
    if not interrupted:
        facts |= {"gap_ns": GAP_NS, "latency": {v: latency(v, cpus, rate, options.quick) for v in VERSIONS}}
    return record("ring", [], seed=options.seed, cpu=options.pinned, ring=facts)


def reference(items: int) -> int:
    """The checksum that every version must give: v1's in one thread, held against the plain sum."""
    out = _engine.lab_ring("v1", _engine.allowed_cpus()[:1], 64, items)
    refuse(failures("v1", items, out, _engine.lab_transfer_expected(items)))
    return out["checksum"]


def failures(version: str, items: int, out: _engine.Transfer, expected: int) -> list[str]:
    """What is wrong with a transfer: items lost, out of order, or other than those that were sent."""
    found = []
    if out["received"] != items:
        found.append(f"ring {version}: {out['received']} of {items} items arrived")
    if out["wrong"]:
        found.append(f"ring {version}: {out['wrong']} items out of order, lost or twice")
    if out["checksum"] != expected:
        found.append(f"ring {version}: checksum {out['checksum']:016x}, expected {expected:016x}")
    return found


def transfer(version: str, capacity: int, cpus: list[int], items: int, expected: int, rate: float) -> dict[str, Any]:
    """One round of one version. Error when an item is lost, twice, or out of order."""
    out = _engine.lab_ring(version, cpus, capacity, items)
    refuse(failures(version, items, out, expected))
    return {"version": version, "capacity": capacity, "million_per_s": items / out["ticks"] * rate * 1e3}


def latency(version: str, cpus: list[int], rate: float, quick: bool) -> list[float]:
    """ns from push to pop of items that come one by one, in the order they came."""
    out = _engine.lab_ring(version, cpus, 1024, 2000 if quick else 20_000, int(GAP_NS * rate), True)
    return [round(float(t) / rate, 1) for t in np.frombuffer(out["latency"], np.int64)]
