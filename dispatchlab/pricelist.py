"""Tables of study `costs`. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from . import wording
from .prices import CACHES, Analysis, analysed, within
from .recording import Recording
from .tables import Table


def price_tables(recording: Recording) -> Iterator[Table]:
    """Steps, prices, and what they explain; nothing when the recording has none."""
    if not recording.extra.get("costs"):
        return
    found = analysed(recording)
    yield _steps(found)
    yield _prices(found)
    yield _explained(found)


def _steps(found: Analysis) -> Table:
    rows = []
    for name, step in zip(CACHES, found.memory.capacities, strict=True):
        reported = found.reported[name]
        seen = f"{wording.size(step.value)} [{wording.size(step.low)}, {wording.size(step.high)}]"
        rows.append((name, seen, wording.size(reported) if reported else "not told", within(step, reported)))
    for name, step in zip(("first TLB", "last TLB"), found.tlb.capacities, strict=True):
        rows.append((name, f"{step.value:.0f} pages [{step.low:.0f}, {step.high:.0f}]", "not told", ""))
    huge = found.facts["huge_kib"]
    told = "not known" if huge is None else f"{huge / 1024:.0f} of 64 MiB given"
    notes = (
        "Found in the latencies alone; a shared machine may leave a guest less of a cache than there is.",
        f"Caches: chase with huge pages asked for ({told}); TLB: a line in each page less as many lines side by side.",
    )
    return Table(
        "cost-steps", "Where the memory's steps are", ("step", "found", "the kernel says", "found / said"), tuple(rows), notes
    )


def _prices(found: Analysis) -> Table:
    rows = tuple(
        (p.what, wording.measured(p.estimate), f"{100 * wording.budget_share(p.estimate.value):.2f} %", p.how) for p in found.prices
    )
    n = found.gives_out()
    out = "not given out by 1024 targets" if n is None else f"given out at {n} targets"
    notes = (
        f"Intervals: 95 % for all {len(rows)} together; {len(found.facts['rounds'])} rounds, each thing once in each.",
        f"Prediction of indirect calls to targets in turn: {out}.",
        f"Budget: {wording.BUDGET_NS:.1f} ns a packet.",
    )
    return Table("costs", "The price list of this machine, ns", ("what", "ns", "of the budget", "measured as"), rows, notes)


def _explained(found: Analysis) -> Table:
    it = found.explained()
    rows: tuple[tuple[str, ...], ...] = ()
    notes: tuple[str, ...] = ("The scan was not measured.",)
    if it is not None:
        rows = (
            ("the scan's rise from 10 to 100 handlers", wording.measured(it.rise)),
            (f"{it.asked:.1f} more calls, priced as calls to 100 targets in turn", wording.measured(it.priced)),
            ("the same calls, were each foreseen", wording.measured(it.foreseen)),
            ("priced / rise", wording.ratio(it.share)),
        )
        notes = (f"Answer: {it.answer} (within a quarter).", "A branch that misses at the list's end misses in both, once a packet.")
    return Table("cost-explains", "Does it explain the scan, ns per packet", ("", "here"), rows, notes)
