"""Study `pool`: from which number of packets on a benchmark measures memory instead of dispatch."""

from __future__ import annotations

from ..handlers import handlers
from ..measure import Cell, measure_cells, record
from ..recording import Measurement, Recording
from ..traffic import from_packets, uniform
from .options import Options

PACKETS = tuple(512 << i for i in range(13))
"""512 packets are 16 KiB, 2 Mi packets 64 MiB."""

ARMS = ("null", "table-compact")
BLOCK = 1 << 18
"""Packets per block, 8 MiB: the slots between two blocks of one slot push its pool out of the near caches, so a block has to
pass over the pool often enough to bring it back. Larger pools than this do not fit there anyway."""


def run(options: Options) -> Recording:
    """Growing pools of packets, tiny handlers."""
    return record("pool", [measure(options)], seed=options.seed, cpu=options.pinned)


def measure(options: Options) -> Measurement:
    """The loop floor and the table over every size, tiny bodies so that memory shows."""
    hs = handlers(options.handlers, size="tiny")
    largest = uniform(hs, seed=options.seed, pool=PACKETS[-1])
    cells = []
    for packets in PACKETS:
        tr = from_packets(largest.packets[:packets], hs, name="uniform")
        cells += [Cell(arm, hs, tr, f"{arm} pool {packets}") for arm in ARMS]
    with options.progress("pool") as progress:
        return measure_cells(
            "pool",
            cells,
            budget=options.seconds(12, 2),
            cpu=options.pinned,
            seed=options.seed,
            block=BLOCK,
            reference=cells.index(next(c for c in cells if c.label == "table-compact pool 32768")),
            progress=progress,
        )
