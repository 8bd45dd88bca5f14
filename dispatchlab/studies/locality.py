"""Study `locality`: where the data of a handler lie: no state, a cache line, a page; side by side or scattered over the heap."""

from __future__ import annotations

from ..handlers import Objects, handlers
from ..measure import LONG_BLOCK, Cell, measure_cells, record
from ..recording import Measurement, Recording
from ..traffic import uniform
from .options import Options

COUNTS = (100, 512)
STATES = (0, 64, 4096)
OBJECTS: tuple[Objects, ...] = ("packed", "scattered")
ARMS = ("virtual", "erasure", "erasure-inline")


def run(options: Options) -> Recording:
    """Three arms that differ in what they load before the handler, over handlers that change one word of their state."""
    return record("locality", [measure(options)], seed=options.seed, cpu=options.pinned)


def measure(options: Options) -> Measurement:
    """One interleaved set. The control calls one handler by name: where the others lie must make no difference to it."""
    cells = []
    for count in COUNTS:
        tr = uniform(handlers(count, residual=0), seed=options.seed, unmatched=0, pool=LONG_BLOCK)  # the keys of every set below
        for state in STATES:
            for objects in OBJECTS:
                hs = handlers(count, body="tally", size="tiny", residual=0, state=state, objects=objects)
                arms = (*ARMS, "direct-call") if count == COUNTS[0] else ARMS
                cells += [Cell(arm, hs, tr, f"{arm} {count} {state} {objects}") for arm in arms]
    with options.progress("locality") as progress:
        return measure_cells(
            "locality",
            cells,
            budget=options.seconds(40, 4),
            rounds=options.rounds,
            cpu=options.pinned,
            seed=options.seed,
            block=LONG_BLOCK,
            reference=0,
            progress=progress,
        )
