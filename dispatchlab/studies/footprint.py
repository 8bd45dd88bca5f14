"""Study `footprint`: what code costs to reach as there is more of it: handlers x size x body."""

from __future__ import annotations

from .. import _engine
from ..handlers import HandlerSet, bodies, handlers
from ..machinecode import code_sizes
from ..measure import LONG_BLOCK, Cell, measure_cells, record
from ..recording import Measurement, Recording
from ..traffic import Traffic, uniform
from .options import Options

COUNTS = (1, 8, 16, 32, 64, 128, 256, 512)
BODIES = ("chain", "wide", "branchy")
ARM = "erasure"
PAGE = 4096


def run(options: Options) -> Recording:
    """One arm, one selection; only how many handlers there are, what they do and how large they are differ."""
    facts = {"code": code_sizes(), "itlb_reach": itlb_reach()}
    return record("footprint", [measure(options)], seed=options.seed, cpu=options.pinned, **facts)


def itlb_reach() -> int | None:
    """Bytes of code whose pages the first instruction TLB remembers; None where the CPU does not tell."""
    entries = _engine.itlb_entries()
    return PAGE * entries if entries > 0 else None


def measure(options: Options) -> Measurement:
    """One interleaved set. A set of one handler is the bottom of its row: the same code, always near. The control calls one handler
    by name while the packets go to 512."""
    cells = []
    traffic: dict[int, Traffic] = {}  # one for each count: sets of a count have the same keys
    for hs in sets():
        if hs.count not in traffic:
            traffic[hs.count] = uniform(hs, seed=options.seed, unmatched=0, pool=LONG_BLOCK)
        arms = (ARM, "direct-call") if hs.size == "fat" and hs.count in (COUNTS[0], COUNTS[-1]) else (ARM,)
        cells += [Cell(arm, hs, traffic[hs.count], f"{arm} {hs.body} {hs.size} {hs.count}") for arm in arms]
    with options.progress("footprint") as progress:
        return measure_cells(
            "footprint",
            cells,
            budget=options.seconds(60, 6),
            rounds=options.rounds,
            cpu=options.pinned,
            seed=options.seed,
            block=LONG_BLOCK,
            reference=0,
            progress=progress,
        )


def sets() -> list[HandlerSet]:
    """Every body at every size and count."""
    built = [(body, size) for body, size, _ in bodies() if body in BODIES]
    return [handlers(count, body=body, size=size, residual=0) for body, size in built for count in COUNTS]
