"""What the recording knows of the case: estimates by arm and day, and the facts without a clock. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from .. import summary
from ..intervals import Estimate
from ..recording import Measurement, Recording
from ..tails import Tail, tails
from ..verdicts import Verdict as Difference
from ..verdicts import verdict

BATCH_ARMS = ("table-grouped-16", "table-grouped-64", "table-grouped-256")
FAMILY = 48
"""Comparisons and levels that advice is taken from: all their intervals hold together with 95 %."""
SURE = 1 - (1 - summary.CONFIDENCE) / FAMILY


@dataclass(frozen=True)
class Answer:
    """question: of the checklist; answer: one or two sentences; numbers: those that the sentences are made of."""

    name: str
    question: str
    answer: str
    numbers: dict[str, Any] = field(default_factory=dict)


class Evidence:
    """The recording by the names that answers use."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self.facts: dict[str, Any] = dict(recording.extra["advise"])
        self.case: dict[str, Any] = dict(self.facts["case"])
        self.budget = 1e9 / float(self.case["rate"])
        self.traffic = str(self.facts["traffic"].get("name", ""))
        found = {m.name: m for m in recording.measurements}
        self.main: Measurement | None = found.get("advise")
        self.daily: Measurement | None = found.get("tail")

    @cached_property
    def labels(self) -> set[str]:
        """Of the main measurement."""
        return {s.label for s in self.main.slots} if self.main else set()

    def ns(self, label: str) -> Estimate:
        """ns/packet under the usual traffic."""
        assert self.main is not None, "asked only where something was measured"
        return summary.ns(self.main, label, confidence=SURE)

    def less(self, a: str, b: str) -> Estimate:
        """Time of a less that of b under the usual traffic, ns/packet, paired by round."""
        assert self.main is not None, "asked only where something was measured"
        return summary.difference(self.main, a, b, confidence=SURE)

    def compared(self, a: str, b: str) -> Difference:
        """What may be said of a against b."""
        assert self.main is not None, "asked only where something was measured"
        return verdict(self.main, a, b, family=FAMILY)

    def on_day(self, arm: str, day: str) -> Estimate:
        """ns/packet of an arm on one of the days."""
        assert self.daily is not None, "asked only where something was measured"
        return summary.ns(self.daily, f"{arm} {day}", confidence=SURE)

    @cached_property
    def days(self) -> list[str]:
        """The usual traffic first, then the bad ones."""
        return list(dict.fromkeys(s.traffic for s in self.daily.slots)) if self.daily else []

    @cached_property
    def tails(self) -> dict[tuple[str, str], Tail]:
        """By arm and day."""
        return {(t.slot.arm, t.slot.traffic): t for t in tails(self.recording)}

    @property
    def simple(self) -> str:
        """The loop that may be shipped: sorted where that changes no answer."""
        return "scan" if self.facts["witness"] else "scan-ordered"


def numbers(**values: Any) -> dict[str, Any]:
    """Estimates as value, low, high, unit and confidence; everything else as it is."""
    return {name: _number(value) for name, value in values.items()}


def _number(value: Any) -> Any:
    if not isinstance(value, Estimate):
        return value
    if not value.bounded:
        return {"value": value.value, "low": None, "high": None, "unit": value.unit, "confidence": value.confidence}
    return {"value": value.value, "low": value.low, "high": value.high, "unit": value.unit, "confidence": value.confidence}
