"""Study `traffic`: the same arms under different traffic, generated and captured."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..handlers import handlers
from ..measure import LONG_BLOCK, Cell, measure_cells, record
from ..recording import Measurement, Recording
from ..traffic import NAMES, Traffic, make
from .options import Options

ARMS = ("scan", "scan-ordered", "scan-mtf", "table-direct16", "table-compact")


def run(options: Options) -> Recording:
    """The generated kinds of traffic, or those asked for: names, captures or counts files, one measurement for each file."""
    wanted = options.traffic or NAMES
    files = [name for name in wanted if Path(name).suffix or Path(name).is_file()]
    generated = [name for name in wanted if name not in files]
    done = [measure_generated(options, generated)] if generated else []
    read = [measure_file(options, file) for file in files]
    sources = {m.name: source for m, source in read}
    return record("traffic", [*done, *(m for m, _ in read)], seed=options.seed, cpu=options.pinned, sources=sources)


def measure_generated(options: Options, names: tuple[str, ...] | list[str] = NAMES) -> Measurement:
    """Every arm under every named traffic, and the control, in one set."""
    hs = handlers(options.handlers)
    cells = []
    for name in names:
        tr = make(name, hs, seed=options.seed)
        cells += [Cell(arm, hs, tr, f"{arm} {tr.name}") for arm in ARMS]
    cells.append(Cell("direct-call", hs, cells[0].traffic, "direct-call"))
    return _measure(options, "traffic", cells, options.seconds(30, 3))


def measure_file(options: Options, file: str) -> tuple[Measurement, dict[str, Any]]:
    """Every arm under the traffic of one capture or counts file; and what that file held."""
    hs = handlers(options.handlers)
    tr = make(file, hs, seed=options.seed)
    cells = [Cell(arm, hs, tr) for arm in (*ARMS, "direct-call")]
    return _measure(options, f"traffic {tr.name}", cells, options.seconds(5, 1)), source(tr)


def source(tr: Traffic) -> dict[str, Any]:
    """What a capture or a counts table held."""
    return {
        "keys": len(tr.counts),
        "keyed": sum(tr.counts.values()),
        "unkeyed": tr.unkeyed,
        "lost": tr.lost,
        "without_handler": len(tr.counts) - len(tr.assigned),
        "sha256": tr.digest,
    }


def _measure(options: Options, name: str, cells: list[Cell], seconds: float) -> Measurement:
    with options.progress(name) as progress:
        return measure_cells(
            name,
            cells,
            budget=seconds,
            cpu=options.pinned,
            seed=options.seed,
            block=LONG_BLOCK,
            progress=progress,
        )
