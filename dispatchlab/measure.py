"""Measuring: slots, an untimed pass that checks and counts, then interleaved rounds in the engine.

This module only drives: cells.py builds and checks the slots, runner.py runs them. The loop that is timed is csrc/core/measure.c;
what the numbers mean is summary.py's affair.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from . import _engine
from .cells import PLACEMENTS, Cell, prepare_cells
from .environment import environment, package
from .errors import UsageError, explain
from .handlers import HandlerSet
from .machine.cpulist import list_of
from .machine.recommend import best_of
from .recording import Measurement, Recording
from .runner import MOST_ROUNDS, Progress, Rounds, Runner, as_measurement, flag, shortest_block
from .traffic import Traffic

__all__ = [
    "BLOCK",
    "LONG_BLOCK",
    "PLACEMENTS",
    "Cell",
    "Progress",
    "Rounds",
    "Runner",
    "as_measurement",
    "choose_cpu",
    "flag",
    "measure",
    "measure_cells",
    "parse_budget",
    "prepare_cells",
    "record",
    "shortest_block",
]

BLOCK = 2048
"""Packets per block unless the clock needs more. Short blocks make more rounds out of a second, and what strikes a round (a
timer, a neighbour) strikes fewer packets: the interval is a third of that of blocks of 16384."""
LONG_BLOCK = 8192
"""For studies of many slots whose differences are many times their intervals: a quarter of the rounds to keep."""
LEAST_ROUNDS = 8


def measure(
    arm_names: str | Sequence[str],
    handlers: HandlerSet | Sequence[HandlerSet],
    traffic: Traffic | Sequence[Traffic],
    *,
    budget: str | float = "2s",
    rounds: int | None = None,
    cpu: int | None = None,
    seed: int = 0,
    block: int | None = None,
    progress: Progress | None = None,
) -> Recording:
    """Measure arms over one handler set and traffic, or over several given pairwise.

    budget   seconds of measuring ("2s", "500ms", 1.5), or rounds= to say how many
    cpu      the CPU to pin to; the one that `dispatchlab machine` recommends unless given
    block    packets that each slot runs in a round; 2048, or as many as the clock needs, unless given

    Returns a Recording with one measurement, every slot in every round. An interrupt keeps the rounds that are whole.
    Raises UsageError, and TrafficError from the traffic.
    """
    names = [arm_names] if isinstance(arm_names, str) else list(arm_names)
    sets = [handlers] if isinstance(handlers, HandlerSet) else list(handlers)
    traffics = [traffic] if isinstance(traffic, Traffic) else list(traffic)
    if len(sets) != len(traffics):
        raise UsageError(explain("handler sets and traffics go in pairs", "measure", str(len(sets)), str(len(traffics))))
    cells = [Cell(name, hs, tr) for hs, tr in zip(sets, traffics, strict=True) for name in names]
    chosen = choose_cpu(cpu)
    measurement = measure_cells(
        "measure", cells, budget=budget, rounds=rounds, cpu=chosen, seed=seed, block=block, progress=progress
    )
    used = {p.path: p for hs in sets for p in hs.foreign.plugins}
    extra = {"plugins": [p.described() for p in used.values()]} if used else {}
    return record("measure", [measurement], seed=seed, cpu=chosen, **extra)


def record(study: str, measurements: Iterable[Measurement], *, seed: int, cpu: int, **extra: Any) -> Recording:
    """A Recording of these measurements, made here and now."""
    return Recording(
        study=study,
        seed=seed,
        package=package(),
        environment=environment(cpu=cpu),
        measurements=tuple(measurements),
        extra=extra,
    )


def measure_cells(
    name: str,
    cells: Sequence[Cell],
    *,
    budget: str | float = "2s",
    rounds: int | None = None,
    cpu: int | None = None,
    seed: int = 0,
    block: int | None = None,
    reference: int | None = None,
    progress: Progress | None = None,
) -> Measurement:
    """One measurement: every cell, and a twin of the reference cell, interleaved. See `measure`."""
    if not cells:
        raise UsageError(explain("nothing to measure", name, "one arm or more", "none"))
    seconds = parse_budget(budget)
    chosen = choose_cpu(cpu)
    reference = _reference(cells) if reference is None else reference
    prepared = prepare_cells(cells, reference, BLOCK if block is None else block)
    clock = _engine.clock_info()
    run = Runner(prepared, BLOCK if block is None else block, chosen, seed, clock["ticks_per_ns"])
    if block is None:
        run.lengthen(shortest_block(clock))
    per_round = run.pilot(shortest_block(clock), name)
    if rounds is None:
        rounds = _rounds_for(seconds, per_round / clock["ticks_per_ns"] / 1e9, len(prepared.slots), name)
    elif not isinstance(rounds, int) or isinstance(rounds, bool) or not 1 <= rounds <= MOST_ROUNDS:
        raise UsageError(explain("number of rounds out of range", name, f"1..{MOST_ROUNDS}", repr(rounds)))
    done = run.rounds(rounds, progress)
    return as_measurement(name, prepared, run, done, reference, dict(clock))


def parse_budget(budget: str | float) -> float:
    """Seconds out of "2s", "500ms", "1m" or a number; UsageError unless it is above 0."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*(ms|s|m|min)?\s*", str(budget))
    seconds = float(match[1]) * {"ms": 1e-3, "m": 60, "min": 60}.get(match[2] or "s", 1) if match else 0.0
    if isinstance(budget, int | float) and not isinstance(budget, bool):  # which str() may write with an exponent
        seconds = float(budget)
    if not 0 < seconds <= 86400:
        raise UsageError(explain("budget cannot be used", expected='a time such as "2s" or "500ms"', got=repr(budget)))
    return seconds


def choose_cpu(cpu: int | None) -> int:
    """The CPU to pin to: the one asked for, or the one that `dispatchlab machine` recommends; always an allowed one. UsageError."""
    allowed = _engine.allowed_cpus()
    if cpu is None:
        return best_of(tuple(allowed))
    if isinstance(cpu, bool) or not isinstance(cpu, int) or cpu not in allowed:
        raise UsageError(
            explain("cannot pin there", "cpu", f"one of the allowed CPUs {list_of(allowed)}", repr(cpu))
        )
    return cpu


def _rounds_for(seconds: float, per_round: float, slots: int, name: str) -> int:
    """Rounds that fit the budget, in whole cycles of the design where one fits."""
    rounds = min(int(seconds / per_round), MOST_ROUNDS)
    if rounds < LEAST_ROUNDS:
        raise UsageError(
            explain(
                f"the budget is too small for {LEAST_ROUNDS} rounds of {slots} slots",
                name,
                f"{np.ceil(LEAST_ROUNDS * per_round * 1e4) / 1e4:g} s or more",
                f"{seconds:g} s",
            )
        )
    cycle = slots if slots % 2 == 0 else 2 * slots
    return rounds if rounds < cycle else rounds - rounds % cycle


def _reference(cells: Sequence[Cell]) -> int:
    """Ratios are against the compact table where it is measured, else against the first arm."""
    for i, cell in enumerate(cells):
        if cell.arm == "table-compact" and not cell.delay_ppm:
            return i
    return 0
