"""Study `instrument`: what the measuring itself costs, before anything is believed."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _engine
from ..counters import count
from ..design import placements, schedule
from ..handlers import MAX_HANDLERS, HandlerSet, bodies, compute, handlers
from ..measure import BLOCK, Cell, measure_cells, record
from ..recording import Measurement, Recording
from ..traffic import from_packets, uniform
from ..traffic.packets import PACKET
from .options import Options

ARMS = ("null", "null-serial", "direct-call", "table-compact")
WARM_UP_BLOCKS = 200
COUNTED_PASSES = 8


def run(options: Options) -> Recording:
    """The loop floor, the serial checksum beside it, the clock, the warm-up, and whether 512 bodies are 512 bodies."""
    facts = {
        "warm_up_ns": warm_up(options),
        "bodies": distinct_bodies(),
        "clock": dict(_engine.clock_info()),
        "counters": counted(options),
    }
    return record("instrument", [measure(options)], seed=options.seed, cpu=options.pinned, instrument=facts)


def measure(options: Options) -> Measurement:
    """The controls in one interleaved set."""
    hs = handlers(options.handlers)
    tr = uniform(hs, seed=options.seed)
    with options.progress("instrument") as progress:
        return measure_cells(
            "instrument",
            [Cell(arm, hs, tr) for arm in ARMS],
            budget=options.seconds(4, 1),
            cpu=options.pinned,
            seed=options.seed,
            progress=progress,
        )


def warm_up(options: Options) -> list[float]:
    """ns/packet of the first blocks that this process runs over these handlers, in the order they ran."""
    hs = handlers(options.handlers, order="reverse")
    tr = uniform(hs, seed=options.seed)
    slot = _engine.slot("table-compact", hs.engine, tr.packets)
    rate = _engine.clock_info()["ticks_per_ns"]
    count = WARM_UP_BLOCKS
    out = _engine.measure(
        (slot,),
        BLOCK,
        count,
        schedule(1, count, options.seed),
        placements(count, options.seed, 1),
        np.arange(count, dtype=np.int32),
        np.zeros(1, np.int32),
        0,
        options.pinned,
        rate,
    )
    return [round(float(t), 4) for t in np.frombuffer(out["ticks"], np.int64) / rate / BLOCK]


def counted(options: Options) -> dict[str, dict[str, Any]]:
    """What the counters of the CPU and the kernel make of table-compact: per counter the events per packet, or why there are
    none."""
    hs = handlers(options.handlers)
    tr = uniform(hs, seed=options.seed)
    slot = _engine.slot("table-compact", hs.engine, tr.packets)

    def work() -> None:
        for _ in range(COUNTED_PASSES):
            slot.run(0)

    packets = COUNTED_PASSES * len(tr)
    seen = count(work, options.pinned)
    return {
        name: {"per_packet": None if c.value is None else c.value / packets, "source": c.source, "reason": c.reason}
        for name, c in seen.items()
    }


def distinct_bodies() -> list[dict[str, Any]]:
    """Per body and size: how many different answers all handlers give for one payload, and whether all are the formula's.

    Behaviour and not addresses: a linker that folds equal code would leave as many names and fewer answers.
    """
    rows = []
    for body, size, rounds in bodies():
        hs = handlers(MAX_HANDLERS, body=body, size=size, residual=0)
        answers = one_packet_each(hs)
        formula = [compute(hs, i, bytes(range(1, 25))) for i in range(hs.count)]
        rows.append(
            {
                "body": body,
                "size": size,
                "rounds": rounds,
                "handlers": hs.count,
                "distinct": len(set(answers)),
                "as_documented": answers == formula,
            }
        )
    return rows


def one_packet_each(hs: HandlerSet) -> list[int]:
    """What each handler of the set answers for the payload 1, 2, ... 24."""
    packets = np.zeros(hs.count, PACKET)
    packets["key"] = hs.keys
    packets["payload"] = np.arange(1, 25)
    slot = _engine.slot("scan", hs.engine, from_packets(packets).packets)
    return [int(r) for r in np.frombuffer(slot.results(), np.uint32)]
