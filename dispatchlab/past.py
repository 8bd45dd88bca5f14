"""What a recording of the study `past-the-table` says: batches and other selections against the compact table. Pure.

All ratios are arm / table-compact under the same traffic over the same handlers, paired by round: below 1, the arm is faster.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from . import wording
from .intervals import Estimate
from .recording import Measurement, Recording
from .scenes import Scene, scenes
from .summary import CONFIDENCE, ns, ratio
from .tables import Table, intervals_note, measurement_notes

STUDY = "past-the-table"
BASE = "table-compact"
KINDS = ("table-grouped", "table-runs")
LIMIT = 1.05
"""A batch arm may take so much longer than the table, and no more: it is to fall back."""
QUANTILES = (0.5, 0.99)


@dataclass(frozen=True)
class Cell:
    """One arm under one traffic over one body; batch 0: packet by packet. `kind` is the arm's name without its batch size."""

    body: str
    traffic: str
    arm: str
    kind: str
    batch: int
    base: Estimate
    ratio: Estimate

    @property
    def limit(self) -> str:
        """Whether it keeps the limit: "kept", "BROKEN", or "undecided" where the interval holds it."""
        if not self.ratio.bounded:
            return "undecided"
        return "kept" if self.ratio.high <= LIMIT else "BROKEN" if self.ratio.low > LIMIT else "undecided"


def measurements(recording: Recording) -> list[Measurement]:
    """Those over bodies, one for each."""
    return [m for m in recording.measurements if m.name.startswith(f"{STUDY} ") and not m.name.endswith(" scans")]


def cells(recording: Recording) -> list[Cell]:
    """Every arm that was measured beside the table; the confidence of all intervals together is 95 %."""
    found = [(s, arm) for m in measurements(recording) for s in scenes(m) if s.has(BASE) for arm in s.arms if arm != BASE]
    sure = 1 - (1 - CONFIDENCE) / max(len(found), 1)
    return [_cell(scene, arm, sure) for scene, arm in found]


def _cell(scene: Scene, arm: str, sure: float) -> Cell:
    m, slot, kind = scene.measurement, scene.slot, next((k for k in KINDS if arm.startswith(f"{k}-")), arm)
    batch = int(arm.removeprefix(f"{kind}-")) if kind != arm else 0
    base = ns(m, scene.arms[BASE], confidence=sure)
    return Cell(slot.body, slot.traffic, arm, kind, batch, base, ratio(m, scene.arms[arm], scene.arms[BASE], confidence=sure))


def past_tables(recording: Recording) -> list[Table]:
    """Batches, single packets, scans, and what batches add to latency; nothing for another study."""
    found = cells(recording)
    if not found:
        return []
    tables = [_batches(recording, found), _single(recording, found), _scans(recording), _delays(recording)]
    return [t for t in tables if t is not None]


def _sure(recording: Recording, found: list[Cell]) -> tuple[str, ...]:
    notes = [intervals_note(len(found), 1 - (1 - CONFIDENCE) / len(found))]
    for m in measurements(recording):
        notes += [f"{m.name}: {note}" for note in measurement_notes(m)]
    return tuple(notes)


def _batches(recording: Recording, found: list[Cell]) -> Table | None:
    """One row for each body, traffic and batch size."""
    batched = [c for c in found if c.batch]
    if not batched:
        return None
    rows = []
    for key in dict.fromkeys((c.body, c.traffic, c.batch) for c in batched):
        row = {c.kind: c for c in batched if (c.body, c.traffic, c.batch) == key}
        some = next(iter(row.values()))
        words = [w for kind in KINDS for w in ((wording.ratio(row[kind].ratio), row[kind].limit) if kind in row else ("", ""))]
        rows.append((some.body, some.traffic, str(some.batch), f"{some.base.value:.1f}", *words))
    limits = [c.limit for c in batched]
    said = ", ".join(f"{limits.count(word)} {word}" for word in ("kept", "undecided", "BROKEN"))
    notes = (f"Limit: at most {LIMIT:g} times the table's time. Of {len(limits)} cells: {said}.", *_sure(recording, found))
    heads = ("body", "traffic", "B", "table, ns", "grouped / table", "limit", "runs / table", "limit")
    return Table("past-batches", "What batches of B add to the compact table", heads, tuple(rows), notes)


def _single(recording: Recording, found: list[Cell]) -> Table | None:
    """One row for each body and traffic, a column for each arm."""
    single = [c for c in found if not c.batch]
    if not single:
        return None
    arms = list(dict.fromkeys(c.arm for c in single))
    rows = []
    for body, traffic in dict.fromkeys((c.body, c.traffic) for c in single):
        row = {c.arm: c for c in single if (c.body, c.traffic) == (body, traffic)}
        base = next(iter(row.values())).base.value
        rows.append((body, traffic, f"{base:.1f}", *(wording.ratio(row[a].ratio) if a in row else "" for a in arms)))
    heads = ("body", "traffic", "table, ns", *arms)
    title = "Other ways to select, packet by packet: times of table-compact"
    return Table("past-single", title, heads, tuple(rows), _sure(recording, found))


def _scans(recording: Recording) -> Table | None:
    """How much faster comparing keys in vectors is than asking predicates."""
    found = [(m, s) for m in recording.measurements if m.name == f"{STUDY} scans" for s in scenes(m) if s.has("scan", "scan-simd")]
    if not found:
        return None
    each = 1 - (1 - CONFIDENCE) / len(found)
    rows = tuple(
        (
            s.slot.size,
            *(f"{ns(m, s.arms[a]).value:.1f}" if a in s.arms else "" for a in ("scan", "scan-simd", BASE)),
            wording.ratio(ratio(m, s.arms["scan"], s.arms["scan-simd"], confidence=each)),
        )
        for m, s in found
    )
    heads = ("bodies", "scan, ns", "scan-simd, ns", "table, ns", "scan / scan-simd")
    notes = (intervals_note(len(found), each), *measurement_notes(found[0][0]))
    return Table("past-scans", "The scan over keys in vectors", heads, rows, notes)


def quantile(pairs: list[list[int]], share: float) -> int:
    """The smallest value that this share of packets keeps, of [value, packets] pairs sorted by value."""
    values, packets = np.array(pairs).T
    reached = np.cumsum(packets)
    return int(values[np.searchsorted(reached, share * reached[-1])])


def _delays(recording: Recording) -> Table | None:
    """From handing a batch over to its results; and how long a batch takes to fill."""
    facts = recording.extra.get("past_the_table")
    if not facts or not facts["delays"]:
        return None
    slots = {s.label: s for m in measurements(recording) for s in m.slots if s.role == "arm"}
    rows = []
    for label, pairs in facts["delays"].items():
        slot = slots[label]
        batch = next((int(slot.arm.removeprefix(f"{k}-")) for k in KINDS if slot.arm.startswith(f"{k}-")), 1)
        waits = [quantile(pairs, q) / facts["ticks_per_ns"] for q in QUANTILES]
        fill = (batch - 1) / wording.RATE * 1e6
        rows.append((slot.body, slot.traffic, slot.arm, *(f"{w:.0f}" for w in waits), f"{fill:.2f}"))
    notes = (
        "From the moment that the packets were handed over to the results, ns, sampled; reading the clock taken off. An arm that has "
        "fallen back runs packet by packet and adds nothing here.",
        f"To fill: how long the first packet of a whole batch waits for the last at {wording.RATE / 1e6:g} million packets per "
        "second, computed. An arm that has fallen back need not wait.",
    )
    heads = ("body", "traffic", "arm", *(f"p{100 * q:g}, ns" for q in QUANTILES), "to fill, µs")
    return Table("past-latency", "What batches add to latency", heads, tuple(rows), notes)


def sentence(found: list[Cell]) -> str:
    """What the best batch does where most is to be gained, and how the worst cell fares; decided by the intervals."""
    grouped = [c for c in found if c.kind == "table-grouped" and c.ratio.bounded]
    if not grouped:
        return "Past the table"
    best, worst = min(grouped, key=lambda c: c.ratio.high), max(grouped, key=lambda c: c.ratio.value)
    said = "Grouping packets by handler is nowhere seen to pay"
    if best.ratio.high < 1:
        won = 1 / best.ratio.value
        said = f"Grouping {best.batch} packets by handler is up to {won:.2f} times as fast as the table ({best.body}, {best.traffic})"
    broken = sum(c.limit == "BROKEN" for c in grouped)
    if broken:
        return f"{said}; {broken} of {len(grouped)} cells are more than 5 % SLOWER"
    return f"{said}; at worst it takes {worst.ratio.value:.2f} times as long"
