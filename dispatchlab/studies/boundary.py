"""Study `boundary`: what it costs that a handler lives in a plugin, packet by packet and in batches.

The handler is number 0 of body chain, inside the engine and once more in a plugin that is compiled here from
dispatchlab/plugins/crossing.c: same work, same packets, so all slots of one body size must give one checksum. Selection is the
same for all. Filling in the view that a plugin is lent, and bringing results of a batch back, are inside of what is timed.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..handlers import HandlerSet, bodies, handlers
from ..measure import LONG_BLOCK, Cell, measure_cells, record
from ..plugins import Plugin, load
from ..plugins.building import build
from ..recording import Measurement, Recording
from ..traffic import Traffic, from_packets, uniform
from .options import Options

NAME = "boundary"
KEY, OTHER = 257, 4000
SIZES = ("tiny", "fat")
EACH = "erasure"
BATCHES = ("batch-1", "batch-8", "batch-64", "batch-256")
SOURCE = Path(__file__).parent.parent / "plugins" / "crossing.c"


def run(options: Options) -> Recording:
    """Tiny and fat bodies: inside, through the boundary for each packet, and in batches of 1, 8, 64 and 256."""
    with compiled() as plugins:
        described = [plugin.described() for plugin in plugins.values()]
        measurement = measure(options, plugins)
    return record(NAME, [measurement], seed=options.seed, cpu=options.pinned, plugins=described)


def measure(options: Options, plugins: dict[str, Plugin]) -> Measurement:
    """One interleaved set."""
    cells = []
    for size, plugin in plugins.items():
        inside, outside = sets(size, plugin)
        tr = traffic(inside, options.seed)
        cells.append(Cell(EACH, inside, tr, f"inside {size}"))
        cells.append(Cell(EACH, outside, tr, f"plugin {size}"))
        cells += [Cell(arm, outside, tr, f"plugin {size} {arm}") for arm in BATCHES]
    with options.progress(NAME) as progress:
        return measure_cells(
            NAME,
            cells,
            budget=options.seconds(30, 3),
            cpu=options.pinned,
            seed=options.seed,
            block=LONG_BLOCK,
            reference=0,
            progress=progress,
        )


@contextmanager
def compiled() -> Iterator[dict[str, Plugin]]:
    """The plugin of each body size, built and loaded; the files are gone afterwards, their code stays mapped."""
    rounds = {size: n for body, size, n in bodies() if body == "chain"}
    with tempfile.TemporaryDirectory(prefix="dispatchlab-") as folder:
        flags = {s: ("-O3", f"-DROUNDS={rounds[s]}", f"-DKEY={KEY}") for s in SIZES}
        files = {s: build(SOURCE, Path(folder) / f"crossing-{s}.so", flags[s]) for s in SIZES}
        yield {size: load(file) for size, file in files.items()}


def sets(size: str, plugin: Plugin) -> tuple[HandlerSet, HandlerSet]:
    """Two handlers each, of one body size: the busy one inside, and in the plugin."""
    inside = handlers(2, size=size, residual=0, keys=[KEY, OTHER])
    return inside, handlers(1, size=size, residual=0, keys=[OTHER], plugins=[plugin])


def traffic(hs: HandlerSet, seed: int) -> Traffic:
    """Every packet for the busy handler."""
    packets = uniform(hs, seed=seed).packets.copy()
    packets["key"] = KEY
    return from_packets(packets, hs, name="hot")
