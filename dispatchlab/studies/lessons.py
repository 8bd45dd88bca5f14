"""Study `lessons`: seven ways to measure wrongly, each beside the right way, and what it does to the answer here."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from .. import _engine
from ..between import keep_rounds, refuse
from ..errors import ToolError, explain
from ..handlers import HandlerSet, handlers
from ..measure import record
from ..recording import Recording
from ..traffic import Traffic, from_packets, uniform
from .noise import PACKAGE_ROOT
from .options import Options

POOL = 8192
BEYOND = 1 << 20
PASSES = 8
EMPTY = 1 << 14
FIRST = """
import json, sys
from dispatchlab import _engine
from dispatchlab.studies.lessons import first_pass
print(json.dumps(_engine.pinned(int(sys.argv[1]), first_pass)))
"""

Pair = Callable[[], tuple[float, float]]


def run(options: Options) -> Recording:
    """Rounds in which every lesson is taken once, both ways.

    extra["lessons"]: "rounds", a list of {lesson: [right, wrong]}; the values are ns/packet, but of "order" the ratio of two equal
    arms.
    """
    cpu = options.pinned
    rate = _engine.clock_info()["ticks_per_ns"]
    plan = lessons(options, rate, cpu)
    rng = np.random.default_rng(options.seed)

    def one() -> dict[str, Any]:
        return {names[i]: list(plan[names[i]]()) for i in rng.permutation(len(names))}

    names = list(plan)
    done, interrupted = keep_rounds([one] * (options.rounds or (12 if options.quick else 24)))
    return record("lessons", [], seed=options.seed, cpu=cpu, lessons={"rounds": done, "interrupted": interrupted})


def lessons(options: Options, rate: float, cpu: int) -> dict[str, Pair]:
    """Name -> one round of it, right and wrong."""
    hs = handlers(options.handlers)
    tr = uniform(hs, seed=options.seed, pool=POOL)
    table, twin = (Timed(hs, tr, "table-compact", rate) for _ in range(2))
    far = Timed(hs, uniform(hs, seed=options.seed, pool=1 << 16 if options.quick else BEYOND), "table-compact", rate)
    scan = Timed(hs, tr, "scan", rate)
    sorted_by_key = from_packets(np.sort(tr.packets, order="key"))
    in_order, scan_in_order = (Timed(hs, sorted_by_key, arm, rate) for arm in ("table-compact", "scan"))
    alone = partial(_engine.pinned, cpu)
    return {
        "unpinned": lambda: (alone(table.several), table.several()),
        "order": lambda: alone(partial(orders, table, twin)),
        "pool": lambda: alone(lambda: (table.several(), far.once())),
        "no shuffle": lambda: alone(lambda: (table.several(), in_order.several())),
        "no shuffle, scan": lambda: alone(lambda: (scan.several(), scan_in_order.several())),
        "no checksum": lambda: alone(lambda: (empty(0, rate), empty(1, rate))),
        "first pass": partial(first_and_later, cpu),
    }


class Timed:
    """A slot whose passes over its pool are timed; every checksum must be that of the first."""

    def __init__(self, hs: HandlerSet, tr: Traffic, arm: str, rate: float) -> None:
        self.slot, self.packets, self.rate = _engine.slot(arm, hs.engine, tr.packets), len(tr.packets), rate
        self.right = self.slot.run(0)

    def once(self) -> float:
        """ns/packet of one pass."""
        begin = _engine.clock_reading()
        checksum = self.slot.run(0)
        ns = (_engine.clock_reading() - begin) / self.rate / self.packets
        refuse([] if checksum == self.right else [f"checksum {checksum:x}, not {self.right:x}"])
        return ns

    def several(self) -> float:
        """The mean of PASSES of them."""
        return sum(self.once() for _ in range(PASSES)) / PASSES


def orders(a: Timed, b: Timed) -> tuple[float, float]:
    """b over a, two equal arms: in alternation, and all of a before all of b."""
    pairs = [(a.once(), b.once()) for _ in range(PASSES)]
    first = a.several()
    return sum(p[1] for p in pairs) / sum(p[0] for p in pairs), b.several() / first


def empty(kind: int, rate: float) -> float:
    """ns per turn of an empty loop whose result is kept (0) or is nobody's (1)."""
    cost = _engine.cost_run("empty", kind, EMPTY, 1, 0)
    refuse([] if cost["checksum"] == cost["expected"] else ["empty loop: wrong checksum"])
    return cost["ticks"] / rate / EMPTY


def first_pass() -> tuple[float, float]:
    """ns/packet of a late pass and of the first that this process makes."""
    hs = handlers(100)
    tr = uniform(hs, pool=POOL)
    rate = _engine.clock_info()["ticks_per_ns"]
    slot = _engine.slot("table-compact", hs.engine, tr.packets)
    begin = _engine.clock_reading()
    slot.run(0)
    first = (_engine.clock_reading() - begin) / rate / POOL
    return Timed(hs, tr, "table-compact", rate).several(), first


def first_and_later(cpu: int) -> tuple[float, float]:
    """`first_pass` in a fresh process. ToolError when that fails."""
    path = os.pathsep.join(filter(None, (str(PACKAGE_ROOT), os.environ.get("PYTHONPATH", ""))))
    done = subprocess.run(
        [sys.executable, "-P", "-c", FIRST, str(cpu)], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": path},
        timeout=60,
    )  # fmt: skip
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise ToolError(explain("a fresh process failed", "lessons", "exit code 0", f"{done.returncode}: {last}"))
    right, wrong = json.loads(done.stdout)
    return right, wrong
