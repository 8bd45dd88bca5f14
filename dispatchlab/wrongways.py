"""The table of study `lessons`: each wrong way beside the right one. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from . import wording
from .intervals import Estimate
from .ladder import calmer, faster
from .prices import estimate
from .recording import Recording
from .tables import Table

SAYS = {
    "unpinned": "not pinned",
    "order": "all of one arm, then all of the other (two equal arms: the ratio)",
    "pool": "a pool beyond the last cache",
    "no shuffle": "traffic in order of its keys, table",
    "no shuffle, scan": "traffic in order of its keys, scan",
    "no checksum": "an empty loop whose result nobody uses",
    "first pass": "the first pass of a fresh process",
}


def lesson_tables(recording: Recording) -> Iterator[Table]:
    """One row for each lesson; nothing when the recording has none."""
    facts = recording.extra.get("lessons")
    if not facts:
        return
    rows, family = [], 2 * len(SAYS)
    for name, says in SAYS.items():
        right, wrong = np.array([row[name] for row in facts["rounds"]], np.float64).T
        shift, spread = faster(wrong, right, family), calmer(wrong, right, family)
        rows.append((says, wording.measured(estimate(right, family)), wording.measured(estimate(wrong, family)),
                     _ratio(shift), _ratio(spread), answer(shift, spread)))  # fmt: skip
    notes = (
        f"{len(facts['rounds'])} rounds; ns/packet unless it says otherwise; 95 % for all intervals of a pair of columns together.",
        "Shift: wrong over right, the mean of the logarithms, paired by round. Spread: CV of wrong over CV of right, by F.",
    )
    heads = ("wrong way", "right", "wrong", "shift", "spread", "what it does here")
    yield Table("lessons", "Ways to measure wrongly, and what they do here", heads, tuple(rows), notes)


def answer(shift: Estimate, spread: Estimate) -> str:
    """What the intervals tell: a factor, more or less noise, or nothing seen."""
    found = []
    if shift.bounded and not shift.low <= 1 <= shift.high:
        found.append(f"reads {'more' if shift.value > 1 else 'less'}, x {shift.value:.3g}")
    if spread.bounded and not spread.low <= 1 <= spread.high:
        found.append("noisier" if spread.value > 1 else "calmer")
    return ", ".join(found) or "nothing seen in so many rounds"


def _ratio(e: Estimate) -> str:
    """A ratio, or that there is none: of one round, or of rounds that all tie."""
    return wording.ratio(e) if math.isfinite(e.low) and e.bounded else "undecided"
