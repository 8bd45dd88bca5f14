"""Two recordings side by side: which cells got slower or faster, beyond what their intervals allow."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from . import summary
from .errors import UsageError, explain
from .intervals import Estimate
from .recording import Measurement, Recording, Slot
from .strictjson import short

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

    @property
    def verdict(self) -> str:
        """slower or faster when the interval of the ratio leaves out 1, else unresolved."""
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

    The runs are independent, so nothing is paired by round: each side's ns/packet has its interval, and the
    two are combined on the log scale. relative=True compares each cell's ratio to its own run's reference
    slot instead, which cancels what slows a whole run down. UsageError when there is no common cell.
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

    def row(cell: tuple[str, Slot]) -> Row:
        a, b = (_estimate(*side[cell], relative, each) for side in (before, after))
        return Row(*cell, a, b, quotient(b, a))

    rows = tuple(row(cell) for cell in common)
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


def quotient(above: Estimate, below: Estimate) -> Estimate:
    """The ratio of two independent estimates of one confidence.

    Its limits come from the distances of theirs on the log scale, squared and added (MOVER: Zou and Donner,
    Statistics in Medicine 27 (2008) 1693-1702), which keeps skewed intervals skewed. Anything that is not
    positive and finite gives (0, inf).
    """
    parts = (above.value, above.low, above.high, below.value, below.low, below.high)
    n = min(above.n, below.n)
    if not all(math.isfinite(part) and part > 0 for part in parts):
        value = above.value / below.value if below.value > 0 else math.nan
        return Estimate(value, 0.0, math.inf, "ratio", n, above.confidence)
    value, low, high, other, other_low, other_high = map(math.log, parts)
    centre = value - other
    down, up = math.hypot(value - low, other_high - other), math.hypot(high - value, other - other_low)
    return Estimate(
        math.exp(centre), math.exp(centre - down), math.exp(centre + up), "ratio", n, above.confidence
    )


Cell = tuple[str, Slot]


def _cells(recording: Recording, relative: bool) -> Iterator[tuple[Cell, tuple[Measurement, int]]]:
    for m in recording.measurements:
        for index, slot in enumerate(m.slots):
            if slot.role != "twin" and not (relative and index == m.reference):
                yield (m.name, slot), (m, index)


def _estimate(m: Measurement, index: int, relative: bool, confidence: float) -> Estimate:
    if relative:
        return summary.ratio(m, index, m.reference, confidence=confidence)
    return summary.ns(m, index, confidence=confidence)


def _each(confidence: float, rows: int) -> float:
    return 1.0 - (1.0 - confidence) / rows


def _named(cells: dict[Cell, tuple[Measurement, int]]) -> str:
    name, slot = next(iter(cells), ("", None))
    return f"{name} / {slot.label}" if slot else "nothing measured"


def _value(environment: Mapping[str, Any], name: str) -> object:
    """A fact, or the value of a judged setting: its reason may read differently and mean the same."""
    fact = environment.get(name)
    return fact.get("value") if isinstance(fact, dict) and "state" in fact else fact
