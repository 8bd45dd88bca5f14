"""Two recordings side by side: which cells got slower or faster, beyond what their intervals allow."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from . import summary
from .errors import UsageError, explain
from .intervals import Estimate
from .recording import Measurement, Recording, Slot
from .strictjson import short
from .verdicts import twin_check

# What moves nanoseconds without being the code under test. Python and NumPy stay outside of the timed loop.
ENVIRONMENT = (
    "cpu_model",
    "microcode",
    "caches",
    "kernel",
    "machine",
    "hypervisor",
    "clocksource",
    "governor",
    "turbo",
    "smt",
    "thp",
    "aslr",
    "compiler",
    "flags",
)


@dataclass(frozen=True)
class Row:
    """One cell in both recordings. ratio is new over old: above 1 is slower."""

    measurement: str
    slot: Slot
    old: Estimate
    new: Estimate
    ratio: Estimate
    doubt: str  # why the cell cannot be believed, or empty

    @property
    def verdict(self) -> str:
        """slower or faster when the ratio's interval leaves out 1 and there is no doubt, else unresolved."""
        if self.doubt:
            return "unresolved"
        if self.ratio.low > 1.0:
            return "slower"
        return "faster" if self.ratio.high < 1.0 else "unresolved"


@dataclass(frozen=True)
class Comparison:
    """All cells that both recordings have; `alone` counts those that only one has (old, new)."""

    rows: tuple[Row, ...]
    alone: tuple[int, int]
    relative: bool
    confidence: float  # of all rows together

    @property
    def each(self) -> float:
        """Confidence of one row's interval: Bonferroni's bound over all rows."""
        return _each(self.confidence, len(self.rows))

    @property
    def slower(self) -> tuple[Row, ...]:
        """The rows that got slower."""
        return tuple(row for row in self.rows if row.verdict == "slower")


def compare(old: Recording, new: Recording, relative: bool = False, confidence: float = 0.95) -> Comparison:
    """Pair the cells of two recordings (same measurement name, same slot; no twins) and estimate new / old.

    The runs are independent, so nothing is paired by round (summary.change). relative=True compares each
    cell's ratio to its own run's reference slot instead, which cancels what slows a whole run down.
    UsageError when there is no common cell.
    """
    before, after = dict(_cells(old, relative)), dict(_cells(new, relative))
    common = [cell for cell in before if cell in after]
    if not common:
        raise UsageError(
            explain(
                "the recordings have no cell in common",
                expected=f"one of the first: {_named(before)}",
                got=_named(after),
                remedy="compare two recordings of the same study",
            )
        )
    each = _each(confidence, len(common))

    rows = tuple(_row(cell, before[cell], after[cell], relative, each) for cell in common)
    return Comparison(rows, (len(before) - len(rows), len(after) - len(rows)), relative, confidence)


def differences(old: Recording, new: Recording) -> list[str]:
    """What makes the two runs unlike besides the package itself, one short text each."""
    facts = ((name, _value(old.environment, name), _value(new.environment, name)) for name in ENVIRONMENT)
    found = [(name, a, b) for name, a, b in facts if a != b]
    if old.seed != new.seed:
        found.append(("seed", old.seed, new.seed))
    blocks = {m.name: m.block for m in old.measurements}
    for m in new.measurements:
        if blocks.get(m.name, m.block) != m.block:
            found.append((f"block of {m.name}", blocks[m.name], m.block))
    return [f"{name} {short(a)} and {short(b)}" for name, a, b in found]


Cell = tuple[str, Slot]
Place = tuple[Measurement, int]


def _cells(recording: Recording, relative: bool) -> Iterator[tuple[Cell, Place]]:
    for m in recording.measurements:
        for index, slot in enumerate(m.slots):
            if slot.role != "twin" and not (relative and index == m.reference):
                yield (m.name, slot), (m, index)


def _row(cell: Cell, old: Place, new: Place, relative: bool, confidence: float) -> Row:
    (m, i), (n, j) = old, new
    if not relative:
        a, b = summary.ns(m, i, confidence=confidence), summary.ns(n, j, confidence=confidence)
        return Row(*cell, a, b, summary.change(n, m, cell[1].label, confidence=confidence), _twins(m, n))
    reference = m.slots[m.reference]
    if n.slots[n.reference] != reference:
        raise UsageError(
            explain(
                "the runs have other reference slots",
                m.name,
                reference.label,
                n.slots[n.reference].label,
                "compare without --relative",
            )
        )
    a, b = (summary.ratio(x, k, x.reference, confidence=confidence) for x, k in (old, new))
    ratio = summary.change(n, m, cell[1].label, reference.label, confidence=confidence)
    return Row(*cell, a, b, ratio, _twins(m, n))


def _twins(old: Measurement, new: Measurement) -> str:
    """Which run's null control failed: what that run says of any of its slots is not to be believed."""
    failed = [
        name for name, m in (("A", old), ("B", new)) if (check := twin_check(m)).resolved and not check.ok
    ]
    return f"the twin failed in {' and '.join(failed)}" if failed else ""


def _each(confidence: float, rows: int) -> float:
    return 1.0 - (1.0 - confidence) / rows


def _named(cells: dict[Cell, Place]) -> str:
    name, slot = next(iter(cells), ("", None))
    return f"{name} / {slot.label}" if slot else "nothing measured"


def _value(environment: Mapping[str, Any], name: str) -> object:
    """A fact, or the value of a judged setting: its reason may read differently and mean the same."""
    fact = environment.get(name)
    return fact.get("value") if isinstance(fact, dict) and "state" in fact else fact
