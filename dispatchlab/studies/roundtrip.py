"""Study `roundtrip`: how long a cache line takes between every two allowed CPUs, and whether that stays the same."""

from __future__ import annotations

from itertools import combinations
from typing import Any

from .. import _engine
from ..between import keep_rounds, roundtrip_ns, two_cpus
from ..measure import record
from ..recording import Recording
from .options import Options


def run(options: Options) -> Recording:
    """Rounds over all pairs of allowed CPUs, interleaved."""
    two_cpus(options.cpu)
    rate = _engine.clock_info()["ticks_per_ns"]
    pairs = list(combinations(_engine.allowed_cpus(), 2))
    rounds = 40 if options.quick else 400

    def once() -> dict[str, Any]:
        return {"ns": [roundtrip_ns(list(pair), rate) for pair in pairs]}

    done, interrupted = keep_rounds(once for _ in range(rounds))
    facts = {
        "interrupted": interrupted,
        "pairs": [{"cpus": list(p), "ns": [row["ns"][i] for row in done]} for i, p in enumerate(pairs)],
    }
    return record("roundtrip", [], seed=options.seed, cpu=options.pinned, roundtrip=facts)
