"""What a recording of study `noise` says: mean, standard deviation and CV of each step with intervals, and the post's claims.

Each repetition is the mean over its bursts, so near to normal: intervals of means by Student, of standard deviations by
chi-square, of their ratios by F. A single disturbed repetition widens all of them. Pure.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import wording
from .claimmath import Found
from .claims import judge
from .intervals import Estimate
from .recording import Recording
from .tables import Table

Floats = NDArray[np.float64]
KINDS = ("serial", "vectorised", "dispatch")
UNITS = {"serial": "ns/burst", "vectorised": "ns/burst", "dispatch": "ns/packet"}
POST = {
    "untuned": (99.6, 2.72),
    "+ pinned": (55.3, 1.06),
    "+ performance governor": (54.9, 0.79),
    "+ hyperthreading off": (55.3, 0.26),
    "+ turbo off": (55.5, 0.26),
}
"""Step -> mean in microseconds of a burst of vectorised sums, and CV in percent, as published for another machine."""


def series(facts: dict[str, Any], step: str, kind: str) -> Floats:
    """float64[rounds]: the repetitions of one step."""
    return np.array([row[step][kind] for row in facts["rounds"]], np.float64)


def mean(x: Floats, family: int) -> Estimate:
    """The mean with Student's interval."""
    from scipy.special import stdtrit

    sure = 1 - 0.05 / family
    half = float(stdtrit(x.size - 1, 0.5 + sure / 2) * x.std(ddof=1) / math.sqrt(x.size)) if x.size > 1 else math.inf
    return Estimate(float(x.mean()), float(x.mean()) - half, float(x.mean()) + half, "ns", x.size, sure)


def deviation(x: Floats, family: int) -> Estimate:
    """The standard deviation with its chi-square interval."""
    from scipy.stats import chi2

    sure = 1 - 0.05 / family
    if x.size < 2:
        return Estimate(math.nan, 0.0, math.inf, "ns", x.size, sure)
    s, n = float(x.std(ddof=1)), x.size - 1
    low, high = (s * math.sqrt(n / float(chi2.ppf(q, n))) for q in (0.5 + sure / 2, 0.5 - sure / 2))
    return Estimate(s, low, high, "ns", x.size, sure)


def variation(x: Floats, family: int) -> Estimate:
    """The CV; the mean's own error is far below that of the standard deviation and left out."""
    e = deviation(x, family)
    by = float(x.mean())
    return Estimate(e.value / by, e.low / by, e.high / by, "ratio", e.n, e.confidence)


def calmer(x: Floats, y: Floats, family: int) -> Estimate:
    """CV of x over CV of y, by the F distribution."""
    from scipy.stats import f

    sure = 1 - 0.05 / family
    if min(x.size, y.size) < 2:
        return Estimate(math.nan, 0.0, math.inf, "ratio", min(x.size, y.size), sure)
    ratio = float(x.std(ddof=1) / x.mean() / (y.std(ddof=1) / y.mean()))
    ends = [float(f.ppf(q, x.size - 1, y.size - 1)) for q in (0.5 + sure / 2, 0.5 - sure / 2)]
    return Estimate(ratio, ratio / math.sqrt(ends[0]), ratio / math.sqrt(ends[1]), "ratio", x.size, sure)


def faster(x: Floats, y: Floats, family: int) -> Estimate:
    """Mean of x over mean of y, paired by round."""
    e = mean(np.log(x) - np.log(y), family)
    return Estimate(math.exp(e.value), math.exp(e.low), math.exp(e.high), "ratio", e.n, e.confidence)


@dataclass(frozen=True)
class Claim:
    """says: the post's; published: its number; found: what this recording has for it, with its bounds."""

    says: str
    published: str
    found: Estimate
    at_least: float = -math.inf
    at_most: float = math.inf

    @property
    def answer(self) -> str:
        """ "holds", "does not hold" or why that is unresolved."""
        word, reason = judge(Found(self.found), self.at_least, self.at_most)
        return f"{word}: {reason}" if word == "unresolved" else word


def claims(facts: dict[str, Any], kind: str = "serial") -> list[Claim]:
    """Those that can be tested with the steps that were run."""
    if not {"untuned", "+ pinned"} <= set(facts["steps"]):
        return []
    raw, pinned = series(facts, "untuned", kind), series(facts, "+ pinned", kind)
    name, last = next((s, series(facts, s, kind)) for s in reversed(facts["steps"]) if s.startswith("+"))
    return [
        Claim("Untuned runs vary by 2 % or more", "2.72 %", variation(raw, 5), at_least=0.02),
        Claim("Pinning at least halves the CV", "0.39", calmer(pinned, raw, 5), at_most=0.5),
        Claim("Pinning takes at most 0.6 of the time", "0.56", faster(pinned, raw, 5), at_most=0.6),
        Claim(f"All steps ({name}): CV at most half a percent", "0.26 %", variation(last, 5), at_most=0.005),
        Claim("All steps: at most a fifth of the untuned CV", "0.10", calmer(last, raw, 5), at_most=0.2),
    ]


def noise_tables(recording: Recording) -> Iterator[Table]:
    """One table for each kind of work, then the claims; nothing when the recording has none."""
    facts = recording.extra.get("noise")
    if not facts:
        return
    for kind in KINDS:
        yield _ladder(facts, kind)
    yield _claims(facts)


def _percent(e: Estimate) -> str:
    return wording.percent(e)


def _ladder(facts: dict[str, Any], kind: str) -> Table:
    family = len(facts["steps"])
    raw = series(facts, facts["steps"][0], kind)
    rows = []
    for step in facts["steps"]:
        x = series(facts, step, kind)
        against = "" if step == "untuned" else wording.ratio(faster(x, raw, family))
        post = f"{POST[step][0]:g} us, {POST[step][1]:g} %" if kind == "vectorised" and step in POST else ""
        rows.append((step, wording.measured(mean(x, family)), wording.measured(deviation(x, family)), _percent(variation(x, family)),
                     against, post))  # fmt: skip
    notes = [
        f"{len(facts['rounds'])} repetitions of {facts['bursts']}, each in a fresh process; 95 % for a column together.",
        *(f"{step}: refused here: {why}" for step, why in facts["refused"].items()),
        *(f"{knob}: {why}" for knob, why in facts["absent"].items()),
    ]
    heads = ("step", UNITS[kind], "standard deviation", "CV", "x untuned", "the post's")
    return Table(f"noise-{kind}", f"Noise, {kind}", heads, tuple(rows), tuple(notes))


def _claims(facts: dict[str, Any]) -> Table:
    rows = []
    for kind in ("serial", "vectorised"):
        for c in claims(facts, kind):
            percent = c.published.endswith("%")
            rows.append((c.says, kind, c.published, _percent(c.found) if percent else wording.ratio(c.found), c.answer))
    notes = ("Intervals: 95 % for the five of one kind of sum together.",)
    return Table(
        "noise-claims", "What is said of tuning, tested here", ("claim", "sums", "published", "here", "answer"), tuple(rows), notes
    )
