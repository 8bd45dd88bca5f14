"""Study `tail`: the table's bound against the sorted scan's worst case, on ordinary days and on bad ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _engine
from ..arms import prepare
from ..design import permutation, schedule
from ..handlers import HandlerSet, handlers
from ..measure import LONG_BLOCK, Cell, measure_cells, record
from ..probes import sorted_order
from ..recording import Measurement, Recording
from ..traffic import Traffic, from_packets, zipf
from ..traffic.packets import fill, fit
from .options import Options

ARMS = ("scan", "scan-ordered", "table-compact")
STRIDE = 17
"""Every 17th packet is timed: often enough to be quick, rarely enough that the clock's fences do not serialise the rest."""


@dataclass(frozen=True)
class Day:
    """A traffic, and the traffic that the sorted list was sorted for."""

    traffic: Traffic
    trained: Traffic


def run(options: Options) -> Recording:
    """Mean cost, probes packet by packet, and sampled latencies, of three arms under five kinds of traffic."""
    hs = handlers(options.handlers)
    cells = [
        Cell(arm, hs, day.traffic, f"{arm} {name}", trained=day.trained)
        for name, day in days(hs, zipf(hs, seed=options.seed), options.seed).items()
        for arm in ARMS
    ]
    facts = {"probes": probes(cells), **latencies(options, cells)}
    return record("tail", [measure(options, cells)], seed=options.seed, cpu=options.pinned, tail=facts)


def days(hs: HandlerSet, usual: Traffic, seed: int) -> Mapping[str, Day]:
    """The list is sorted for `usual`. What then comes: that; the same packets in number, each handler's for another; and what
    somebody who knows the list would send."""
    last = int(sorted_order(hs, hs.frequency(usual.packets))[-1])
    pool = len(usual)
    made = {
        "shifted": _shifted(hs, usual, seed),
        "attack-last": np.full(pool, last),
        "attack-unmatched": _unmatched_but_one(hs, pool),
        "attack-alternating": _alternating(hs, usual),
    }
    return {usual.name: Day(usual, usual), **{name: Day(_made(hs, ids, seed, name), usual) for name, ids in made.items()}}


def measure(options: Options, cells: list[Cell]) -> Measurement:
    """ns/packet of every cell."""
    with options.progress("tail") as progress:
        return measure_cells(
            "tail", cells, budget=options.seconds(15, 2.5), cpu=options.pinned, seed=options.seed, block=LONG_BLOCK, progress=progress
        )


def probes(cells: list[Cell]) -> dict[str, list[list[int]]]:
    """Per label: [probes, packets] pairs, an exact distribution."""
    return {c.label: histogram(np.frombuffer(_slot(c).count()[1], np.uint32)) for c in cells}


def latencies(options: Options, cells: list[Cell]) -> dict[str, Any]:
    """Sampled ticks per dispatch, per label, in the order they were taken; and the median of an empty one, to subtract."""
    null = Cell("null", cells[0].handlers, cells[0].traffic, "null")
    every = [*cells, null]
    slots = [_slot(c) for c in every]
    found: list[list[NDArray[np.int64]]] = [[] for _ in every]
    passes = 8 if options.quick else 24

    def sample() -> None:
        for number, row in enumerate(schedule(len(slots), passes, options.seed)):
            for i in row:
                found[i].append(np.frombuffer(slots[i].sample(STRIDE, number % STRIDE)[1], np.int64))

    _engine.pinned(options.pinned, sample)
    ticks = {c.label: np.concatenate(f) for c, f in zip(every, found, strict=True)}
    return {
        "ticks_per_ns": _engine.clock_info()["ticks_per_ns"],
        "overhead_ticks": int(np.median(ticks.pop("null"))),
        "latency_ticks": {label: values.tolist() for label, values in ticks.items()},
        "stride": STRIDE,
    }


def histogram(values: NDArray[Any]) -> list[list[int]]:
    """[value, how often] pairs, sorted by value."""
    found, counts = np.unique(values, return_counts=True)
    return [[int(v), int(n)] for v, n in zip(found, counts, strict=True)]


def _slot(cell: Cell) -> Any:
    return prepare(cell.arm, cell.handlers, cell.traffic, trained=cell.trained)


def _made(hs: HandlerSet, ids: NDArray[np.int64], seed: int, name: str) -> Traffic:
    """Packets that really belong to these handlers; -1: to none."""
    packets = fill(hs, ids, seed)
    fit(hs, ids, packets)
    return from_packets(packets, hs, name=name)


def _shifted(hs: HandlerSet, usual: Traffic, seed: int) -> NDArray[np.int64]:
    """The handlers of the usual packets, dealt anew: what was frequent is so no longer."""
    ids = hs.select(usual.packets).astype(np.int64)
    return np.where(ids < 0, -1, permutation(seed + 1, hs.count)[ids])


def _unmatched_but_one(hs: HandlerSet, pool: int) -> NDArray[np.int64]:
    """Only packets that nobody takes, but for one: a traffic without a match measures no handler and is refused."""
    ids = np.full(pool, -1)
    ids[0] = hs.order[0]
    return ids


def _alternating(hs: HandlerSet, usual: Traffic) -> NDArray[np.int64]:
    """The first and the last of the sorted list in turn: no list order serves both, and no predictor a mean."""
    order = sorted_order(hs, hs.frequency(usual.packets))
    turn = np.arange(len(usual)) % 2
    return order[[0, -1]].astype(np.int64)[turn]
