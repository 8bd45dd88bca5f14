"""What a recording of the study `mechanism` says: the cost of a changing target, split into the mispredicted target and the fetch of
the code behind it, by measurement. Pure.

    target = (mixed - hot) of tiny bodies           a call that goes elsewhere, to code that is always near
    fetch  = (mixed - hot) of fat bodies - target   what more it costs when the code behind is large

All from slots of one interleaved set, paired by round.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from . import wording
from .intervals import Estimate
from .recording import Measurement, Recording
from .shares import Weights
from .summary import CONFIDENCE, contrast
from .tables import Table, intervals_note, measurement_notes

NAME = "mechanism"
CONTROL = "direct-call"
ESTIMATES = 6  # intervals for each body and arm
Counts = Mapping[tuple[str, str, str, str], Mapping[str, Any]]


@dataclass(frozen=True)
class Contrast:
    """One arm over one body, "ns/packet". call: tiny bodies, less direct-call: the mechanism alone, its target the same or mixed."""

    body: str
    arm: str
    hot: Estimate
    mixed: Estimate
    change: Estimate  # mixed - hot, fat bodies
    target: Estimate
    fetch: Estimate
    call: Estimate | None
    call_mixed: Estimate | None

    @property
    def control_ok(self) -> bool:
        """Whether both differences that are zero for a handler known beforehand hold zero."""
        return all(e.low <= 0 <= e.high for e in (self.target, self.change))


def find(recording: Recording) -> Measurement | None:
    """The measurement, where there is one."""
    return next((m for m in recording.measurements if m.name == NAME), None)


def contrasts(m: Measurement) -> list[Contrast]:
    """One for every body and arm that ran tiny and fat, hot and mixed; the confidence of all intervals together is 95 %."""
    at = {(s.body, s.arm, s.size, s.traffic): i for i, s in enumerate(m.slots) if s.role != "twin"}
    whole = [
        (body, arm)
        for body, arm in dict.fromkeys((s.body, s.arm) for s in m.slots)
        if all((body, arm, size, traffic) in at for size in ("tiny", "fat") for traffic in ("hot", "mixed"))
    ]
    sure = each(len(whole))

    def estimate(weights: Weights) -> Estimate:
        return contrast(m, weights, confidence=sure)

    found = []
    for body, arm in whole:
        fat_hot, fat, tiny_hot, tiny = (
            at[body, arm, size, t] for size in ("fat", "tiny") for t in ("hot", "mixed")
        )
        beside = [(i, at.get((body, CONTROL, "tiny", t))) for i, t in ((tiny_hot, "hot"), (tiny, "mixed"))]
        found.append(
            Contrast(
                body,
                arm,
                estimate([(fat_hot, 1.0)]),
                estimate([(fat, 1.0)]),
                estimate([(fat, 1.0), (fat_hot, -1.0)]),
                estimate([(tiny, 1.0), (tiny_hot, -1.0)]),
                estimate([(fat, 1.0), (fat_hot, -1.0), (tiny, -1.0), (tiny_hot, 1.0)]),
                *(None if arm == CONTROL or c is None else estimate([(i, 1.0), (c, -1.0)]) for i, c in beside),
            )
        )
    return found


def each(cells: int) -> float:
    """Confidence of one interval of so many bodies and arms."""
    return 1 - (1 - CONFIDENCE) / (ESTIMATES * max(cells, 1))


def counts_of(recording: Recording) -> Counts:
    """(body, arm, size, traffic) -> simulated events per packet; empty where nothing was counted."""
    cells = (recording.extra.get("counts") or {}).get("cells", ())
    return {(c["body"], c["arm"], c["size"], c["traffic"]): c for c in cells}


def more(counts: Counts, body: str, arm: str, size: str, event: str) -> float | None:
    """How many more of an event a mixed packet costs than a hot one; None where that was not counted."""
    pair = [counts.get((body, arm, size, traffic)) for traffic in ("mixed", "hot")]
    if pair[0] is None or pair[1] is None:
        return None
    return float(pair[0][event]) - float(pair[1][event])


def mechanism_tables(recording: Recording) -> list[Table]:
    """The contrasts, and beside each what a simulated CPU does."""
    m = find(recording)
    found = contrasts(m) if m is not None else []
    if m is None or not found:
        return []
    counts = counts_of(recording)
    rows = tuple((c.body, c.arm, *_times(c), *_counted(c, counts)) for c in found)
    heads = (
        *("body", "arm", "hot", "mixed", "mixed - hot", "target", "fetch", "call, hot", "call, mixed"),
        *("mispredicted", "L1i misses", "instructions"),
    )
    missing = recording.extra.get("counts_missing")
    notes = (
        intervals_note(ESTIMATES * len(found), each(len(found))),
        "ns/packet. hot, mixed: fat bodies. target: mixed - hot of tiny bodies. fetch: mixed - hot less target. call: tiny bodies, "
        "less direct-call.",
        "Simulated, per packet: indirect branches mispredicted more when mixed (tiny), L1i misses more when mixed (fat less tiny), "
        "instructions (fat, mixed)."
        if counts
        else f"No simulated counts: {missing or 'a quick run makes none'}.",
        control_note(found),
        *agreement(found, counts),
        *explanation(found, counts),
        *measurement_notes(m),
    )
    return [Table("mechanism-contrasts", "A changing target: the mispredicted call and the code behind it", heads, rows, notes)]


def control_note(found: list[Contrast]) -> str:
    """Whether what must be zero is."""
    controls = [c for c in found if c.arm == CONTROL]
    wrong = [
        f"{c.body} {size} {wording.measured(e)}"
        for c in controls
        for size, e in (("fat", c.change), ("tiny", c.target))
        if not e.low <= 0 <= e.high
    ]
    if not controls:
        return "No control was measured."
    if wrong:
        return f"CONTROL FAILED: direct-call calls one handler whatever comes, and mixed - hot is not zero for {', '.join(wrong)}."
    values = ", ".join(f"{c.body} {wording.measured(c.change)}" for c in controls)
    return f"Control: mixed - hot of direct-call, which must be zero: {values} ns/packet: ok."


def agreement(found: list[Contrast], counts: Counts) -> list[str]:
    """A line for each resolved timed contrast whose simulated event says the opposite, or that they all agree."""
    lines, compared = [], 0
    for c in found:
        tiny = more(counts, c.body, c.arm, "tiny", "indirect_mispredicted")
        l1i = [more(counts, c.body, c.arm, size, "l1i_misses") for size in ("fat", "tiny")]
        if tiny is None or l1i[0] is None or l1i[1] is None or c.arm == CONTROL:
            continue
        for what, timed, simulated, event in (
            ("target", c.target, tiny, "mispredicted indirect branches"),
            ("fetch", c.fetch, l1i[0] - l1i[1], "L1i misses"),
        ):
            compared += 1
            if not _agree(timed, simulated):
                cost = "no cost" if timed.low <= 0 <= timed.high else f"{wording.measured(timed)} ns"
                lines.append(f"{c.body} {c.arm}, {what}: {simulated:.2f} more {event} simulated, {cost} timed: they do NOT agree.")
    if compared and not lines:
        return [f"Simulated counts and timed contrasts agree in sign, all {compared}."]
    return lines


NOTHING = 0.05
"""Simulated events per packet that are none: fewer than one in twenty packets."""


def _agree(timed: Estimate, simulated: float) -> bool:
    if abs(simulated) < NOTHING:
        return timed.low <= 0 <= timed.high
    return timed.low > 0 if simulated > 0 else timed.high < 0


def explanation(found: list[Contrast], counts: Counts, arm: str = "virtual") -> list[str]:
    """Why bodies of one size differ in what fetching them costs, as far as the counts tell: misses, and how fast each body runs when
    nothing is missing. Nothing where the counts do not point there."""
    told = []
    for c in found:
        fat, tiny = (more(counts, c.body, arm, size, "l1i_misses") for size in ("fat", "tiny"))
        hot = counts.get((c.body, arm, "fat", "hot"))
        if c.arm == arm and fat is not None and tiny is not None and hot is not None:
            told.append((c, fat - tiny, float(hot["instructions"]) / c.hot.value))
    if len(told) < 2:
        return []
    lines = [
        f"Behind the fetch, {arm}, simulated: "
        + ", ".join(f"{c.body} misses L1i {misses:.1f} times more and pays {wording.measured(c.fetch)} ns" for c, misses, _ in told)
        + "; while hot, "
        + ", ".join(f"{c.body} runs {speed:.1f} instructions/ns" for c, _, speed in told)
        + "."
    ]
    slowest, cheapest = min(told, key=lambda t: t[2])[0], min(told, key=lambda t: t[0].fetch.value / t[1] if t[1] else 0.0)[0]
    alike = max(t[1] for t in told) < 1.5 * min(t[1] for t in told)
    if alike and slowest is cheapest and all(c.fetch.low > slowest.fetch.high for c, _, _ in told if c is not slowest):
        lines.append(
            f"So the misses do not differ, the bodies do: {slowest.body} waits for its own results, and its code arrives meanwhile; "
            "the others run as fast as their instructions come, and wait for them."
        )
    return lines


def _times(c: Contrast) -> tuple[str, ...]:
    calls = ("" if e is None else wording.measured(e) for e in (c.call, c.call_mixed))
    return (*(wording.measured(e) for e in (c.hot, c.mixed, c.change, c.target, c.fetch)), *calls)


def _counted(c: Contrast, counts: Counts) -> tuple[str, str, str]:
    missed = more(counts, c.body, c.arm, "tiny", "indirect_mispredicted")
    l1i = [more(counts, c.body, c.arm, size, "l1i_misses") for size in ("fat", "tiny")]
    mixed = counts.get((c.body, c.arm, "fat", "mixed"))
    if missed is None or l1i[0] is None or l1i[1] is None or mixed is None:
        return "", "", ""
    return f"{missed:.2f}", f"{l1i[0] - l1i[1]:.2f}", f"{mixed['instructions']:.0f}"
