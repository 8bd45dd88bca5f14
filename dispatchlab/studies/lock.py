"""Study `lock`: a counter under every version of the lock, from one thread to more than there are CPUs."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from .. import _engine
from ..between import beside, keep_rounds, refuse, thread_cpus, two_cpus, unavailable
from ..labs import jain
from ..measure import record
from ..recording import Recording
from .options import Options

VERSIONS = ("v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7")
HOLDS = (0, 10, 100, 1000)
FAIR_NS = 5e6
ROUNDS = 60


def run(options: Options) -> Recording:
    """Interleaved rounds: every version, 1, 2, 4... threads, critical sections of 0 to 1000 ns; and one labelled row with
    twice as many threads as CPUs."""
    pair = two_cpus(options.cpu)
    rate = _engine.clock_info()["ticks_per_ns"]
    cpus = len(_engine.allowed_cpus())
    counts = [n for n in (1, 2, 4, 8, 16, 32, 64) if n <= cpus]
    if options.threads is not None:
        counts = [len(thread_cpus(options.threads, options.oversubscribe))]
    holds = HOLDS[:1] if options.quick else HOLDS
    cells = [(v, n, hold, n > cpus) for v in VERSIONS for n in counts for hold in holds]
    cells += [] if options.quick or options.threads is not None else [(v, 2 * cpus, 0, True) for v in VERSIONS]
    rng = np.random.default_rng(options.seed)
    plan: list[Callable[[], dict[str, Any]]] = []
    for _ in range(options.rounds or (10 if options.quick else ROUNDS)):
        for i in rng.permutation(len(cells)):
            version, threads, hold, over = cells[i]
            plan.append(partial(beside, pair, rate, partial(contest, version, threads, hold, over, options.quick, rate)))
    done, interrupted = keep_rounds(plan)
    facts = {"rounds": done, "interrupted": interrupted, "counters": unavailable()}
    return record("lock", [], seed=options.seed, cpu=options.pinned, lock=facts)


def contest(version: str, threads: int, hold_ns: int, over: bool, quick: bool, rate: float) -> dict[str, Any]:
    """One round: fixed work for the time, then a fixed time for the fairness. Error when the counter is not exact."""
    cpus = thread_cpus(threads, over)
    total = 20_000 if over or quick else min(250_000, int(2e7 / (hold_ns + 20)))
    each = total // threads
    hold = int(hold_ns * rate)
    work = _engine.lab_lock(version, cpus, each, 0, hold)
    fair = _engine.lab_lock(version, cpus, 0, int(FAIR_NS * rate), hold, True)
    acquired = np.frombuffer(fair["acquired"], np.int64)
    refuse(failures(version, each * threads, work["counter"]) + failures(version, int(acquired.sum()), fair["counter"]))
    return {
        "version": version,
        "threads": threads,
        "hold_ns": hold_ns,
        "oversubscribed": over,
        "ns_per_acquisition": work["ticks"] / rate / (each * threads),
        "with_threads_made_ns": work["whole_ticks"] / rate / (each * threads),
        "acquired": acquired.tolist(),
        "jain": jain(acquired.tolist()),
        "longest_us": float(np.frombuffer(fair["longest"], np.int64).max()) / rate / 1e3,
        "handoff_share": work["handoffs"] / (each * threads),
    }


def failures(version: str, expected: int, counter: int) -> list[str]:
    """Exclusion failed when the plain counter under the lock lost an increment."""
    return [] if counter == expected else [f"lock {version}: the counter says {counter} after {expected} acquisitions"]
