"""Study `pipeline`: generator, ring and dispatching thread as one system, against the budget of 333 ns per packet."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _engine
from ..arms import prepare
from ..between import keep_rounds, refuse, roundtrip_ns, two_cpus
from ..handlers import handlers
from ..measure import record
from ..recording import Recording
from ..traffic import zipf
from ..wording import BUDGET_NS
from .options import Options

ARMS = ("scan", "scan-ordered", "table-compact")
CAPACITY = 1024
ROUNDS = 60
QUANTILES = (0.5, 0.9, 0.99, 0.999, 1.0)
"""Of a round's latencies, those that are kept."""


def run(options: Options) -> Recording:
    """Rounds of every arm, as fast as it goes and at one packet per budget; answers checked against the reference scan."""
    cpus = two_cpus(options.cpu)
    rate = _engine.clock_info()["ticks_per_ns"]
    hs = handlers(options.handlers)
    tr = zipf(hs, seed=options.seed)
    slots = {arm: prepare(arm, hs, tr, 0, None) for arm in ARMS}
    count = len(tr) // (8 if options.quick else 1)
    count = 1 << (count.bit_length() - 1)
    expected = {arm: int(np.frombuffer(slot.expected(count), np.uint64)[0]) for arm, slot in slots.items()}
    trips: list[float] = []
    rng = np.random.default_rng(options.seed)

    def once(arm: str) -> dict[str, Any]:
        trips.append(roundtrip_ns(cpus, rate))
        fast = _engine.lab_pipeline(slots[arm], cpus, CAPACITY, count, 0)
        paced = _engine.lab_pipeline(slots[arm], cpus, CAPACITY, count, int(BUDGET_NS * rate))
        for out in (fast, paced):
            if out["received"] != count or out["checksum"] != expected[arm]:
                refuse([f"pipeline {arm}: checksum {out['checksum']:016x}, expected {expected[arm]:016x}"])
        latency = np.quantile(np.frombuffer(paced["latency"], np.int64), QUANTILES, method="higher") / rate
        return {"arm": arm, "million_per_s": count / fast["ticks"] * rate * 1e3, "ns": latency.round(1).tolist()}

    turns = options.rounds or (10 if options.quick else ROUNDS)
    plan = [(lambda a=ARMS[i]: once(a)) for _ in range(turns) for i in rng.permutation(len(ARMS))]
    done, interrupted = keep_rounds(plan)
    arms = {
        arm: {
            "million_per_s": [row["million_per_s"] for row in done if row["arm"] == arm],
            "latency_ns": {
                f"{q:g}": [row["ns"][n] for row in done if row["arm"] == arm] for n, q in enumerate(QUANTILES)
            },
        }
        for arm in ARMS
        if any(row["arm"] == arm for row in done)
    }
    facts = {"arms": arms, "packets": count, "handlers": hs.count, "gap_ns": BUDGET_NS}
    facts |= {"roundtrip_ns": trips, "interrupted": interrupted}
    return record("pipeline", [], seed=options.seed, cpu=options.pinned, pipeline=facts)
