"""Study `mechanism`: what calling a handler costs, once it is found, and what reaching its code costs.

Every arm selects in the same way. `hot` sends every packet to handler 0, `mixed` the same payloads to all handlers by a Zipf law,
so that mixed - hot is what changing targets costs. Handlers are numbered by how likely they are: the profile that the guarded arms
were compiled with is the right one.
"""

from __future__ import annotations

from typing import Any

from ..counting import count as simulate
from ..counting import document
from ..errors import ToolError
from ..handlers import HandlerSet, handlers
from ..measure import LONG_BLOCK, Cell, measure_cells, record
from ..recording import Measurement, Recording
from ..traffic import Traffic, from_packets, zipf
from ..traffic.packets import together
from .options import Options

BODIES = ("chain", "wide", "branchy")
SIZES = ("tiny", "fat")
ARMS = (
    "direct-call", "virtual", "erasure", "erasure-inline", "variant", "static", "guarded-1", "guarded-2", "guarded-4",
    "computed-goto",
)  # fmt: skip
OTHER_BODIES = ("direct-call", "virtual", "erasure", "variant", "static")
COUNTED = ("direct-call", "virtual", "erasure", "static")


def run(options: Options) -> Recording:
    """All mechanisms over chain bodies, five of them over wide and branchy ones, tiny and fat, hot and mixed."""
    measurement = measure(options)
    counts = {} if options.quick else counted(options)
    return record("mechanism", [measurement], seed=options.seed, cpu=options.pinned, **counts)


def measure(options: Options) -> Measurement:
    """One interleaved set."""
    every = sets(options)
    both = traffics(every[0], options.seed)  # all sets have the same keys: the packets lie in the same memory for every cell
    cells = [
        Cell(arm, hs, tr, f"{arm} {hs.body} {hs.size} {tr.name}")
        for hs in every
        for tr in both
        for arm in (ARMS if hs.body == "chain" else OTHER_BODIES)
    ]
    with options.progress("mechanism") as progress:
        return measure_cells(
            "mechanism",
            cells,
            budget=options.seconds(60, 6),
            rounds=options.rounds,
            cpu=options.pinned,
            seed=options.seed,
            block=LONG_BLOCK,
            reference=cells.index(next(c for c in cells if c.arm == "virtual")),
            progress=progress,
        )


def sets(options: Options) -> list[HandlerSet]:
    """Every body, tiny and fat, without residual predicates."""
    return [handlers(options.handlers, body=body, size=size, residual=0) for body in BODIES for size in SIZES]


def traffics(hs: HandlerSet, seed: int) -> tuple[Traffic, Traffic]:
    """`hot` and `mixed`: the same payloads, all of them somebody's. One block each: a slot and its twin run the very same packets,
    and both pools stay near, so that what ran before a slot does not decide how far its packets have to come."""
    mixed = zipf(hs, seed=seed, shuffle=False, unmatched=0, pool=LONG_BLOCK)
    hot = mixed.packets.copy()
    hot["key"] = hs.keys[0]
    one, other = together(from_packets(hot, hs, name="hot"), from_packets(mixed.packets, hs, name="mixed"))
    return one, other


def counted(options: Options) -> dict[str, Any]:
    """The same cells on a simulated CPU, for four of the arms; why not, where there is no simulator."""
    cells = []
    try:
        for hs in sets(options):
            for tr in traffics(hs, options.seed):
                cells += simulate(COUNTED, hs, tr)
    except ToolError as error:
        return {"counts_missing": str(error)}
    return {"counts": document(cells)}
