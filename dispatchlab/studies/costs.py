"""Study `costs`: what single things cost on this machine, so that no table of latencies need be believed."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from .. import _engine
from ..between import keep_rounds, refuse
from ..handlers import handlers
from ..measure import LONG_BLOCK, Cell, measure_cells, record
from ..recording import Measurement, Recording
from ..traffic import uniform
from .options import Options

LINE = 64
PAGE = os.sysconf("SC_PAGE_SIZE")
LOADS = 1 << 14
MOST_WARM = 1 << 20
TIMES = 3
TARGETS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 100, 128, 256, 512, 1024)
COUNTS = {"branch": 1 << 16, "call": 1 << 14, "divide": 1 << 14, "add": 1 << 15, "syscall": 1 << 11, "fault": 1 << 9}
KINDS = {"branch": (0, 1, 2), "divide": (0, 1), "add": (0, 1), "syscall": (0,), "fault": (0,)}
HANDLERS = (10, 100)

Job = tuple[str, Callable[[], float]]


def run(options: Options) -> Recording:
    """Rounds in which everything is done once, in an order of its own; then the scan over 10 and 100 handlers.

    extra["costs"]: "rounds", a list of {job: ns per load, branch, call...}; the jobs are "chase small 4096" (page kind, bytes),
    "pages 64" and "lines 64" (how many, a page or a line apart), "branch 2" (kind), "call 1 16" (kind, targets), "divide 1", ...
    """
    pinned = options.pinned
    rate = _engine.clock_info()["ticks_per_ns"]
    rounds = options.rounds or (12 if options.quick else 24)
    rng = np.random.default_rng(options.seed)

    def one() -> dict[str, Any]:
        found = jobs(options.quick, rate, rng)
        ran = {name: _engine.pinned(pinned, job) for name, job in (found[i] for i in rng.permutation(len(found)))}
        return {**ran, **contended(pinned, rate)}

    _engine.pinned(pinned, partial(warm_up, rate))
    done, interrupted = keep_rounds([one] * rounds)
    facts = {"rounds": done, "interrupted": interrupted, "huge_kib": huge_kib(), "line": LINE, "page": PAGE}
    measurements = [] if interrupted else [scan(options)]
    return record("costs", measurements, seed=options.seed, cpu=pinned, costs=facts)


def sizes(quick: bool) -> list[int]:
    """Working sets in bytes, from 4 KiB past any cache: two per doubling, or one."""
    return [int(2 ** (k / 2)) // LINE * LINE for k in range(24, 55, 2 if quick else 1)]


def page_counts(quick: bool) -> list[int]:
    """How many pages are touched, 4 to 16384."""
    return [int(2 ** (k / 2)) for k in range(4, 29, 2 if quick else 1)]


def jobs(quick: bool, rate: float, rng: np.random.Generator) -> list[Job]:
    """Everything that one round does in one thread; seeds are drawn anew for each round."""
    seed = partial(rng.integers, 1 << 62)
    found: list[Job] = [
        (f"chase {'huge' if huge else 'small'} {size}", partial(chase, size // LINE, LINE, huge, int(seed()), rate))
        for huge in (True, False)
        for size in sizes(quick or not huge)
    ]
    for n in page_counts(quick):
        found.append((f"pages {n}", partial(chase, n, PAGE, False, int(seed()), rate)))
        found.append((f"lines {n}", partial(chase, n, LINE, False, int(seed()), rate)))
    for what, kinds in KINDS.items():
        found += [(f"{what} {kind}", partial(thing, what, kind, 1, int(seed()), rate)) for kind in kinds]
    found.append(("call 0 1", partial(thing, "call", 0, 1, int(seed()), rate)))
    found += [(f"call {kind} {n}", partial(thing, "call", kind, n, int(seed()), rate)) for kind in (1, 2) for n in TARGETS]
    return found


def chase(lines: int, stride: int, huge: bool, seed: int, rate: float) -> float:
    """ns per load, each needing the one before, over a fresh random cycle."""
    chain = _engine.cost_chain(lines, stride, huge, seed)
    return checked(f"chase over {lines} lines", _engine.cost_chase(chain, min(max(lines, 64), MOST_WARM), LOADS), rate)


def thing(what: str, kind: int, targets: int, seed: int, rate: float) -> float:
    """ns per branch, call, division...: the middle one of three runs, each with a seed of its own."""
    runs = (_engine.cost_run(what, kind, COUNTS[what], targets, seed + i) for i in range(TIMES))
    return sorted(checked(f"{what} {kind}", run, rate) for run in runs)[TIMES // 2]


def contended(cpu: int, rate: float) -> dict[str, float]:
    """ns per atomic add of either of two threads: on one counter, and on one each; nothing where one CPU is allowed."""
    other = next((c for c in _engine.allowed_cpus() if c != cpu), None)
    if other is None:
        return {}
    each = COUNTS["add"]
    return {
        name: sorted(checked(name, _engine.cost_adds(other, cpu, each, apart), rate) for _ in range(TIMES))[TIMES // 2]
        for name, apart in (("add together", False), ("add apart", True))
    }


def checked(name: str, cost: _engine.Cost, rate: float) -> float:
    """ns of one, if the run computed what it should have. Error otherwise."""
    refuse([] if cost["checksum"] == cost["expected"] else [f"{name}: checksum {cost['checksum']}, not {cost['expected']}"])
    return cost["ticks"] / rate / cost["count"]


def warm_up(rate: float) -> None:
    """Code and clock of the CPU are warm before the first round."""
    for _ in range(20):
        for what, kinds in KINDS.items():
            thing(what, kinds[-1], 1, 1, rate)


def huge_kib() -> int | None:
    """KiB of huge pages that a piece of 64 MiB is given when it asks for them; None where the kernel does not tell."""
    chain = _engine.cost_chain(1 << 20, LINE, True, 1)
    try:
        with open("/proc/self/smaps_rollup", encoding="ascii") as file:
            words = next(line.split() for line in file if line.startswith("AnonHugePages:"))
    except (OSError, StopIteration):
        return None
    del chain
    return int(words[1])


def scan(options: Options) -> Measurement:
    """The rise that the prices are to explain."""
    cells = []
    for count in HANDLERS:
        hs = handlers(count)
        tr = uniform(hs, seed=options.seed)
        cells += [Cell(arm, hs, tr, f"{arm} {count}") for arm in ("direct-call", "scan")]
    with options.progress("costs") as progress:
        return measure_cells(
            "costs", cells, budget=options.seconds(8, 2), cpu=options.pinned, seed=options.seed, block=LONG_BLOCK,
            progress=progress,
        )  # fmt: skip
