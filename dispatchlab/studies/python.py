"""Study `python`: the list asked one by one and a dict, in pure Python, and the engine's scan and table on the same packets."""

from __future__ import annotations

import gc
import platform
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from .. import _engine, interpreted, oracle
from ..arms import results
from ..between import keep_rounds, refuse
from ..handlers import HandlerSet, handlers
from ..interpreted import Dispatch, Packet, Who
from ..measure import record
from ..recording import Recording
from ..traffic import Traffic, uniform
from .lessons import Timed
from .options import Options

SIZES = ("tiny", "fat")
WAYS = {"loop": interpreted.loop, "dict": interpreted.look_up}
ARMS = ("scan", "table-compact")
POOL = 8192
CALLS = 1 << 14

Job = Callable[[], float]


def run(options: Options) -> Recording:
    """Rounds in which everything is timed once, in an order drawn anew.

    extra["python"]: "rounds", a list of {job: ns}; a job is "loop SIZE" or "dict SIZE" (Python) or "ARM SIZE" (the engine), in
    ns/packet, or "call", ns of one call from Python into the engine that finds no packet there.
    """
    cpu, rate = options.pinned, _engine.clock_info()["ticks_per_ns"]
    pool = POOL // 4 if options.quick else POOL
    plan = jobs(options, rate, pool)
    rng = np.random.default_rng(options.seed)
    names = list(plan)

    def one() -> dict[str, Any]:
        return {names[i]: _engine.pinned(cpu, plan[names[i]]) for i in rng.permutation(len(names))}

    _engine.pinned(cpu, lambda: [job() for job in plan.values()])  # warm
    done, interrupted = keep_rounds([one] * (options.rounds or (10 if options.quick else 20)))
    facts = {
        "rounds": done,
        "interrupted": interrupted,
        "sizes": list(SIZES),
        "handlers": options.handlers,
        "packets": pool,
        "python": f"{platform.python_implementation()} {platform.python_version()}",
    }
    return record("python", [], seed=options.seed, cpu=cpu, python=facts)


def jobs(options: Options, rate: float, pool: int) -> dict[str, Job]:
    """Everything that is timed, its answers already held against the oracle and the engine."""
    plan: dict[str, Job] = {}
    for size in SIZES:
        hs = handlers(options.handlers, size=size)
        tr = uniform(hs, seed=options.seed, pool=pool)
        packets = interpreted.packets_of(tr.packets)
        right = results("scan", hs, tr).tolist()
        for name, make in WAYS.items():
            dispatch, who = make(hs)
            refuse([f"{name}, {size}: {line}" for line in differences(hs, tr, packets, dispatch, who)])
            plan[f"{name} {size}"] = partial(timed, dispatch, packets, right, rate)
        for arm in ARMS:
            plan[f"{arm} {size}"] = Timed(hs, tr, arm, rate).several
    empty = _engine.slot("table-compact", hs.engine, b"")
    plan["call"] = partial(calls, lambda: empty.run(0), rate)
    return plan


def differences(hs: HandlerSet, tr: Traffic, packets: list[Packet], dispatch: Dispatch, who: Who) -> list[str]:
    """One line for each check that fails: handlers against the oracle's, answers against the oracle's and the engine's."""
    chosen, answers = list(map(who, packets)), list(map(dispatch, packets))
    checks = {
        "handlers differ from the oracle's": chosen != hs.select(tr.packets).tolist(),
        "answers differ from the oracle's": answers != oracle.answers(hs, tr.packets).tolist(),
        **{f"answers differ from {arm}'s": answers != results(arm, hs, tr).tolist() for arm in ARMS},
    }
    return [says for says, wrong in checks.items() if wrong]


def timed(dispatch: Dispatch, packets: list[Packet], right: list[int], rate: float) -> float:
    """ns/packet of one pass, the garbage collector off as in timeit; Error when an answer is not the right one."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        begin = _engine.clock_reading()
        answers = [dispatch(packet) for packet in packets]
        ticks = _engine.clock_reading() - begin
    finally:
        if collecting:
            gc.enable()
    refuse([] if answers == right else ["a timed pass in Python gave other answers"])
    return ticks / rate / len(packets)


def calls(call: Callable[[], object], rate: float) -> float:
    """ns of one call out of Python, the loop around it included."""
    begin = _engine.clock_reading()
    for _ in range(CALLS):
        call()
    return (_engine.clock_reading() - begin) / rate / CALLS
