"""Study `when`: is the loop ever right? Loops and the table over the number of handlers and the skew of the traffic."""

from __future__ import annotations

from ..handlers import handlers
from ..measure import LONG_BLOCK, Cell, measure_cells, record
from ..recording import Measurement, Recording
from ..traffic import uniform, zipf
from .options import Options

COUNTS = (4, 10, 25, 50, 100, 250)
EXPONENTS = (0.0, 0.8, 1.1, 1.5, 2.0)
QUICK_COUNTS, QUICK_EXPONENTS = (4, 25, 100), (0.0, 1.1, 2.0)
ARMS = ("scan", "scan-ordered", "scan-simd", "table-compact")
BASE = "table-compact"


def run(options: Options) -> Recording:
    """One measurement for each number of handlers; in it every arm under every exponent, interleaved."""
    counts = QUICK_COUNTS if options.quick else COUNTS
    done = [measure(options, count) for count in counts]
    return record("when", done, seed=options.seed, cpu=options.pinned)


def measure(options: Options, count: int) -> Measurement:
    """All exponents over one handler set; exponent 0 is uniform traffic."""
    hs = handlers(count)
    exponents = QUICK_EXPONENTS if options.quick else EXPONENTS
    traffics = [zipf(hs, s, options.seed) if s else uniform(hs, seed=options.seed) for s in exponents]
    cells = [Cell(arm, hs, tr, f"{arm} {tr.name}") for tr in traffics for arm in ARMS]
    with options.progress(f"when {count}") as progress:
        return measure_cells(
            f"when {count}",
            cells,
            budget=options.seconds(14, 1.2),
            rounds=options.rounds,
            cpu=options.pinned,
            seed=options.seed,
            block=LONG_BLOCK,
            reference=ARMS.index(BASE),
            progress=progress,
        )
