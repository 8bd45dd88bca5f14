"""Study `placement`: what the linker's layout alone does to an arm, the predicates side by side or each beside its body."""

from __future__ import annotations

from ..handlers import Placement, handlers
from ..measure import LONG_BLOCK, Cell, measure_cells, record
from ..recording import Measurement, Recording
from ..traffic import uniform
from .options import Options

ARMS = ("scan", "scan-ordered", "table-compact", "table-compact-copy")
LAYOUTS: tuple[Placement, ...] = ("packed", "spread")
COUNTS = (10, 100, 500)


def run(options: Options) -> Recording:
    """The same arms over the same handlers and packets; only the addresses of the predicates and of the loops differ."""
    return record("placement", [measure(options)], seed=options.seed, cpu=options.pinned)


def measure(options: Options) -> Measurement:
    """One interleaved set: counts x layouts x arms. table-compact-copy is table-compact compiled a second time."""
    cells = []
    for count in COUNTS:
        for layout in LAYOUTS:
            hs = handlers(count, placement=layout)
            tr = uniform(hs, seed=options.seed)
            cells += [Cell(arm, hs, tr, f"{arm} {count} {layout}") for arm in ARMS]
    with options.progress("placement") as progress:
        return measure_cells(
            "placement",
            cells,
            budget=options.seconds(20, 3),
            cpu=options.pinned,
            seed=options.seed,
            block=LONG_BLOCK,
            progress=progress,
        )
