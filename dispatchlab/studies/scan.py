"""Study `scan`: what finding a handler costs as the list grows, asked one by one and looked up."""

from __future__ import annotations

from ..handlers import handlers
from ..measure import LONG_BLOCK, Cell, measure_cells, record
from ..recording import Measurement, Recording
from ..traffic import uniform
from .options import Options

COUNTS = (10, 25, 50, 100, 200, 500)
ARMS = ("direct-call", "scan", "table-compact")


def run(options: Options) -> Recording:
    """All counts and arms under uniform traffic."""
    return record("scan", [measure(options)], seed=options.seed, cpu=options.pinned)


def measure(options: Options) -> Measurement:
    """One interleaved set, so that every count sees the same machine."""
    cells = []
    for count in COUNTS:
        hs = handlers(count)
        tr = uniform(hs, seed=options.seed)
        cells += [Cell(arm, hs, tr, f"{arm} {count}") for arm in ARMS]
    with options.progress("scan") as progress:
        return measure_cells(
            "scan",
            cells,
            budget=options.seconds(30, 3),
            cpu=options.pinned,
            seed=options.seed,
            block=LONG_BLOCK,
            reference=cells.index(next(c for c in cells if c.label == "table-compact 100")),
            progress=progress,
        )
