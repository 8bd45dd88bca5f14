"""Tails out of a recording of the study `tail`: how many probes and how many ns the slowest packets take. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from . import wording
from .intervals import Estimate, Refused, quantile_interval
from .recording import Recording, Slot
from .tables import Table

QUANTILES = (0.5, 0.9, 0.99, 0.999, 1.0)
HEADS = ("p50", "p90", "p99", "p99.9", "max")


@dataclass(frozen=True)
class Tail:
    """One arm under one traffic. probes: exact quantiles, as QUANTILES. latency: ns per dispatch, less what reading the
    clock takes; each with its interval, or why there is none. samples: dispatches that were timed."""

    slot: Slot
    probes: tuple[int, ...]
    latency: tuple[Estimate | Refused, ...]
    samples: int


def tails(recording: Recording) -> list[Tail]:
    """One per slot of the study; none when the recording holds no tails."""
    facts = recording.extra.get("tail")
    if not facts:
        return []
    slots = {s.label: s for m in recording.measurements if m.name == "tail" for s in m.slots if s.role == "arm"}
    family = len(facts["latency_ticks"]) * len(QUANTILES)
    return [
        Tail(
            slot,
            probe_quantiles(facts["probes"][label]),
            tuple(_latency(facts, label, q, family) for q in QUANTILES),
            len(facts["latency_ticks"][label]),
        )
        for label, slot in slots.items()
    ]


def probe_quantiles(histogram: list[list[int]]) -> tuple[int, ...]:
    """Exact quantiles of [probes, packets] pairs sorted by probes: the smallest number that this share of packets keeps."""
    probes, packets = np.array(histogram).T
    reached = np.cumsum(packets)
    return tuple(int(probes[np.searchsorted(reached, q * reached[-1])]) for q in QUANTILES)


def _latency(facts: dict[str, object], label: str, q: float, family: int) -> Estimate | Refused:
    ticks = np.array(facts["latency_ticks"][label], np.float64)  # type: ignore[index]
    rate, overhead = float(facts["ticks_per_ns"]), float(facts["overhead_ticks"])  # type: ignore[arg-type]
    found = quantile_interval(ticks, q, 1 - 0.05 / family)
    if isinstance(found, Refused):
        return found
    value, low, high = (max(x - overhead, 0.0) / rate for x in (found.value, found.low, found.high))
    return Estimate(value, low, high, "ns", found.n, found.confidence)


def tail_tables(recording: Recording) -> Iterator[Table]:
    """Probes and latencies; empty when the recording holds no tails."""
    found = tails(recording)
    if not found:
        return
    facts = recording.extra["tail"]
    table = max((t.probes[-1] for t in found if t.slot.arm == "table-compact"), default=0)
    yield Table(
        "tail-probes",
        f"probes of the slowest packets, {found[0].slot.handlers} handlers; the list was sorted for {found[0].slot.traffic}",
        ("traffic", "arm", *HEADS),
        tuple((t.slot.traffic, t.slot.arm, *(str(p) for p in t.probes)) for t in found),
        (
            "Exact: every packet of the pool was counted.",
            f"The table's bound is its longest list of candidates, {table} probes here, whoever sends the packets.",
        ),
    )
    family = len(found) * len(QUANTILES)
    yield Table(
        "tail-latency",
        "ns per dispatch of the slowest packets, one in "
        f"{facts['stride']} timed by itself; {facts['overhead_ticks'] / facts['ticks_per_ns']:.1f} ns of clock subtracted",
        ("traffic", "arm", *HEADS),
        tuple((t.slot.traffic, t.slot.arm, *(_cell(e) for e in t.latency)) for t in found),
        (
            f"Order-statistic intervals, 95 % for all {family} together (Bonferroni); {found[0].samples} samples each.",
            "A maximum is the largest seen: nothing bounds it from above, and interrupts are part of it.",
            "A dispatch timed by itself cannot overlap with its neighbours, so it takes longer than ns/packet says.",
        ),
    )


def _cell(e: Estimate | Refused) -> str:
    if isinstance(e, Refused):
        return f"refused: {e.needed} samples needed"
    return f"{e.value:.0f} and more" if not np.isfinite(e.high) else wording.measured(e)
