"""Study `past-the-table`: what other ways to select, and batches, add to the compact table, over three bodies and four traffics.

One interleaved set for each body, all of it fat; then the scan against its vector form, tiny and fat. Afterwards the batch arms have
learned which way pays, and packets are sampled for what a batch adds to their latency.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _engine
from ..arms import BATCHES, prepare
from ..design import schedule
from ..handlers import HandlerSet, handlers
from ..measure import LONG_BLOCK, Cell, measure_cells, record
from ..recording import Measurement, Recording
from ..traffic import Traffic, make
from .options import Options

NAME = "past-the-table"
BASE = "table-compact"
BODIES = ("chain", "wide", "branchy")
TRAFFICS = ("uniform", "zipf", "hot", "bursts")
SINGLE = ("scan-simd", "hash", "hash-chained", "binary-search", "perfect-hash", "cache-last", "top-n", "switch")
SCANS = ("scan", "scan-simd", BASE)
SIZES = ("tiny", "fat")
LEARNING = 24
"""Passes over the pool before sampling: the longest trial and its rest are over."""


def run(options: Options) -> Recording:
    """Every batch size and every way to select, against the compact table; and what batches add to latency."""
    measurements: list[Measurement] = []
    delays: dict[str, Any] = {}
    for body in BODIES:
        cells = body_cells(options, body)
        measurements.append(measure(options, f"{NAME} {body}", cells, options.seconds(40, 4)))
        delays |= latencies(options, [c for c in cells if c.arm == BASE or c.arm in BATCHES])
    measurements.append(measure(options, f"{NAME} scans", scan_cells(options), options.seconds(10, 1)))
    facts = {"ticks_per_ns": _engine.clock_info()["ticks_per_ns"], "delays": delays}
    return record(NAME, measurements, seed=options.seed, cpu=options.pinned, past_the_table=facts)


def body_cells(options: Options, body: str) -> list[Cell]:
    """Table, batches and single packets under every traffic."""
    hs = handlers(options.handlers, body=body)
    arms = (BASE, *BATCHES, *SINGLE)
    return [Cell(arm, hs, tr, f"{arm} {body} {tr.name}") for tr in traffics(hs, options.seed) for arm in arms]


def scan_cells(options: Options) -> list[Cell]:
    """The brief's loop, its vector form and the table, under uniform traffic."""
    sets = [handlers(options.handlers, size=size) for size in SIZES]
    tr = make("uniform", sets[0], seed=options.seed)
    return [Cell(arm, hs, tr, f"{arm} {hs.size}") for hs in sets for arm in SCANS]


def traffics(hs: HandlerSet, seed: int) -> list[Traffic]:
    """The four kinds of arrival."""
    return [make(name, hs, seed=seed) for name in TRAFFICS]


def measure(options: Options, name: str, cells: list[Cell], seconds: float) -> Measurement:
    """One interleaved set."""
    with options.progress(name) as progress:
        return measure_cells(
            name,
            cells,
            budget=seconds,
            rounds=options.rounds,
            cpu=options.pinned,
            seed=options.seed,
            block=LONG_BLOCK,
            reference=[c.arm for c in cells].index(BASE),
            progress=progress,
        )


def latencies(options: Options, cells: list[Cell]) -> dict[str, Any]:
    """Per label: [ticks, packets] pairs of what sampled packets waited for their results, from the moment that the batch which held
    them was handed over; less what reading the clock takes. One packet in 17 is sampled."""
    slots = [prepare(c.arm, c.handlers, c.traffic) for c in cells]
    empty = prepare("null", cells[0].handlers, cells[0].traffic)
    found: list[list[NDArray[np.int64]]] = [[] for _ in slots]
    nothing: list[NDArray[np.int64]] = []
    learning, passes = (2, 2) if options.rounds else (LEARNING, 4 if options.quick else 12)

    def sample() -> None:
        for slot in slots:
            for turn in range(learning):
                slot.run(turn % 4)
        for number, row in enumerate(schedule(len(slots), passes, options.seed)):
            nothing.append(np.frombuffer(empty.sample(17, number % 17)[1], np.int64))
            for i in row:
                found[i].append(np.frombuffer(slots[i].sample(17, number % 17)[1], np.int64))

    _engine.pinned(options.pinned, sample)
    overhead = int(np.median(np.concatenate(nothing)))
    return {c.label: histogram(np.maximum(np.concatenate(f) - overhead, 0)) for c, f in zip(cells, found, strict=True)}


def histogram(ticks: NDArray[np.int64]) -> list[list[int]]:
    """[ticks, packets] pairs, ticks rounded to 1 %: enough for quantiles, and small."""
    step = np.maximum(1, 10 ** np.floor(np.log10(np.maximum(ticks, 1))) // 100).astype(np.int64)
    values, counts = np.unique(ticks // step * step, return_counts=True)
    return [[int(v), int(n)] for v, n in zip(values, counts, strict=True)]
