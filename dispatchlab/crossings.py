"""What a recording of the study `boundary` says: what crossing into a plugin costs, and what of it batches recover. Pure.

    crossing   plugin, packet by packet - the same handler inside
    batched    plugin, in batches - the same handler inside
    recovered  packet by packet - in batches

All from slots of one interleaved set, paired by round.
"""

from __future__ import annotations

from dataclasses import dataclass

from . import wording
from .intervals import Estimate
from .recording import Measurement, Recording
from .summary import CONFIDENCE, contrast
from .tables import Table, intervals_note, measurement_notes

NAME = "boundary"
EACH = "erasure"


@dataclass(frozen=True)
class Crossing:
    """One way across with bodies of one size, "ns/packet"; batch 0: packet by packet, and nothing to recover."""

    size: str
    batch: int
    inside: Estimate
    here: Estimate
    more: Estimate
    recovered: Estimate | None

    @property
    def way(self) -> str:
        """In words."""
        return f"batches of {self.batch}" if self.batch else "packet by packet"


def find(recording: Recording) -> Measurement | None:
    """The measurement, where there is one."""
    return next((m for m in recording.measurements if m.name == NAME), None)


def crossings(m: Measurement) -> list[Crossing]:
    """Every way across that was measured beside the inside; the confidence of all intervals together is 95 %."""
    at = {(s.size, s.arm, s.plugins > 0): i for i, s in enumerate(m.slots) if s.role != "twin"}
    ways = [key for key in at if key[2] and (key[0], EACH, False) in at and (key[0], EACH, True) in at]
    sure = each(len(ways))
    found = []
    for size, arm, _ in ways:
        inside, single, way = at[size, EACH, False], at[size, EACH, True], at[size, arm, True]
        batch = 0 if arm == EACH else int(arm.removeprefix("batch-"))
        found.append(
            Crossing(
                size,
                batch,
                contrast(m, [(inside, 1.0)], confidence=sure),
                contrast(m, [(way, 1.0)], confidence=sure),
                contrast(m, [(way, 1.0), (inside, -1.0)], confidence=sure),
                contrast(m, [(single, 1.0), (way, -1.0)], confidence=sure) if batch else None,
            )
        )
    return found


def estimates(ways: int) -> int:
    """Intervals for so many ways across."""
    return 4 * max(ways, 1)


def each(ways: int) -> float:
    """Confidence of one of them."""
    return 1 - (1 - CONFIDENCE) / estimates(ways)


def crossing_tables(recording: Recording) -> list[Table]:
    """One row for each way across and body size."""
    m = find(recording)
    found = crossings(m) if m is not None else []
    if m is None or not found:
        return []
    rows = tuple(
        (c.size, c.way, wording.measured(c.inside), wording.measured(c.here), wording.measured(c.more),
         "" if c.recovered is None else wording.measured(c.recovered), f"{100 * wording.budget_share(c.more.value):.2f} %")
        for c in found
    )  # fmt: skip
    heads = ("bodies", "crossing", "inside", "plugin", "costs more", "batching recovers", "of the budget")
    notes = (
        intervals_note(estimates(len(found)), each(len(found))),
        "ns/packet. One handler, inside the engine and in a plugin; filling in views and bringing results back are timed.",
        *measurement_notes(m),
    )
    return [Table("crossings", "What the plugin boundary costs", heads, rows, notes)]


def sentence(found: list[Crossing]) -> str:
    """What the tiny bodies show, decided by the intervals."""
    tiny = [c for c in found if c.size == "tiny"]
    single = next((c for c in tiny if not c.batch), None)
    if single is None:
        return "The plugin boundary"
    cost = f"costs {wording.measured(single.more)} ns" if single.more.low > 0 else "has a price that is not told from nothing"
    batched = [(c, c.recovered) for c in tiny if c.recovered is not None]
    if not batched:
        return f"Crossing into a plugin {cost}"
    best, gain = max(batched, key=lambda pair: pair[1].value)
    if gain.low > 0:
        return f"Crossing into a plugin {cost}; {best.way} recover {wording.measured(gain)}"
    return f"Crossing into a plugin {cost}; no batch is seen to recover any of it"
