"""Study `traffic`: the same arms under different traffic, generated and captured."""

from __future__ import annotations

from pathlib import Path

from ..handlers import handlers
from ..measure import Cell, measure_cells, record
from ..recording import Measurement, Recording
from ..traffic import NAMES, make
from .options import Options

ARMS = ("scan", "scan-ordered", "scan-mtf", "table-direct16", "table-compact")


def run(options: Options) -> Recording:
    """The generated kinds of traffic, or those asked for: names, captures or counts files, one measurement for each file."""
    return record("traffic", measure_all(options), seed=options.seed, cpu=options.pinned)


def measure_all(options: Options) -> list[Measurement]:
    """Generated traffic in one interleaved set; each file in a set of its own."""
    wanted = options.traffic or NAMES
    files = [name for name in wanted if Path(name).suffix]
    generated = [name for name in wanted if not Path(name).suffix]
    done = [measure_generated(options, generated)] if generated else []
    return done + [measure_file(options, file) for file in files]


def measure_generated(options: Options, names: tuple[str, ...] | list[str] = NAMES) -> Measurement:
    """Every arm under every named traffic, and the control, in one set."""
    hs = handlers(options.handlers)
    cells = []
    for name in names:
        tr = make(name, hs, seed=options.seed)
        cells += [Cell(arm, hs, tr, f"{arm} {tr.name}") for arm in ARMS]
    cells.append(Cell("direct-call", hs, cells[0].traffic, "direct-call"))
    return _measure(options, "traffic", cells, options.seconds(30, 3))


def measure_file(options: Options, file: str) -> Measurement:
    """Every arm under the traffic of one capture or counts file."""
    hs = handlers(options.handlers)
    tr = make(file, hs, seed=options.seed)
    cells = [Cell(arm, hs, tr) for arm in (*ARMS, "direct-call")]
    return _measure(options, f"traffic {tr.name}", cells, options.seconds(5, 1))


def _measure(options: Options, name: str, cells: list[Cell], seconds: float) -> Measurement:
    with options.progress(name) as progress:
        return measure_cells(
            name, cells, budget=seconds, cpu=options.pinned, seed=options.seed, progress=progress
        )
