"""Faster, slower, equal, unresolved: what may be said of two slots, and whether to believe the measurement.

Errors of each rule, checked by simulation in tests/test_summary.py:

* Interval: 95 % two-sided, its error divided by the number of comparisons in the family (Bonferroni). The
  chance of any wrong "faster" or "slower" among them is at most 5 %, whatever their dependence.
* Placements: two different codes are not called different when their difference lies inside the spread
  (range) of the four differences, one for each code placement. By itself this is a range test of a mean (E.
  Lord, Biometrika 34 (1947) 41-67): its level is 2.1 % (simulated with noise: 3 %) for four placements whose
  effects are drawn from a normal distribution, however large they are, where the interval alone is wrong most
  of the time. It costs power: with no placement effect at all, the difference must exceed about four standard
  errors instead of two. It is not applied to two slots of one code, which share their placements.
* Floor: two different codes are not called different within 0.5 % either. One source compiled twice differs by
  up to 0.25 % here though the four placements agree: where its data stand, and how often each code ran lately,
  is not among what they vary. `calibrate` counts how often such a pair is called different.
* Twin: an identical second slot must not differ. It fails when its 99.9 % interval neither holds zero nor
  lies within 0.1 % of it; at most 1 in 1000 sound measurements fail.

"Equal" means that the whole interval lies within the margin (an equivalence test of level 2.5 %), and that no
rule above calls the two different.
"""

import math
from dataclasses import dataclass
from typing import Literal, TypeAlias

from dispatchlab.intervals import Estimate, Location
from dispatchlab.summary import (
    CONFIDENCE,
    Measured,
    SlotKey,
    as_ratio,
    exp,
    log_ratio,
    placement_spread,
    slot_index,
)

TWIN_CONFIDENCE = 0.999
TWIN_MARGIN = 0.001
MARGIN = 0.001
CODE_FLOOR = 0.005

Kind: TypeAlias = Literal["faster", "slower", "equal", "unresolved"]

# Two slots that agree in all of these run the same machine code on the same handlers.
CODE = ("arm", "handlers", "body", "size", "order", "residual", "overlap", "predicates")


@dataclass(frozen=True)
class TwinCheck:
    """The reference against its identical twin. ok is what decides; resolved tells whether an interval exists
    at all (without one nothing was checked, and ok is False)."""

    estimate: Estimate
    ok: bool
    resolved: bool
    margin: float


@dataclass(frozen=True)
class Verdict:
    """What may be said of the time of slot a against that of slot b.

    estimate is the ratio with its family-wise interval; minimum_detectable_effect the difference (a fraction,
    0.01 = 1 %) that a measurement like this one tells from none in nine of ten runs; spread the range between
    code placements (a fraction).
    """

    kind: Kind
    reason: str
    estimate: Estimate
    minimum_detectable_effect: float
    spread: float


def twin_check(m: Measured, *, confidence: float = TWIN_CONFIDENCE, margin: float = TWIN_MARGIN) -> TwinCheck:
    """Compare the reference with its twin. Chance that a sound measurement fails: at most 1 - confidence."""
    location = log_ratio(m, m.reference, m.twin)
    half = location.half_width(confidence)
    resolved = math.isfinite(half) and m.reference != m.twin
    ok = resolved and (abs(location.value) <= half or abs(location.value) + half <= math.log1p(margin))
    return TwinCheck(as_ratio(location, confidence), ok, resolved, margin)


def verdict(m: Measured, a: SlotKey, b: SlotKey, *, margin: float = MARGIN, family: int = 1) -> Verdict:
    """Judge slot a against slot b as one of `family` comparisons; margin is the ratio's distance from 1 that
    still counts as equal. Never raises for poor data: what cannot be told is "unresolved", with the
    reason."""
    i, j = slot_index(m, a), slot_index(m, b)
    location, confidence = log_ratio(m, i, j), 1.0 - (1.0 - CONFIDENCE) / max(family, 1)
    spread, half = placement_spread(m, i, j), location.half_width(confidence)
    ruled, floor = (0.0, 0.0) if i == j or _same_code(m, i, j) else (spread, math.log1p(CODE_FLOOR))
    kind, reason = _judge(location, half, ruled, floor, math.log1p(margin), _unfit(m, location, i == j))
    needed = location.detectable(confidence)
    if max(ruled, floor) > half and math.isfinite(needed):
        needed += max(ruled, floor) - half
    return Verdict(kind, reason, as_ratio(location, confidence), exp(needed) - 1, exp(spread) - 1)


def _judge(
    location: Location, half: float, spread: float, floor: float, margin: float, unfit: str
) -> tuple[Kind, str]:
    size = abs(location.value)
    if unfit:
        return "unresolved", unfit
    holds_zero = size <= half
    if holds_zero or size <= max(spread, floor):
        if size + half <= margin and spread <= margin:
            return "equal", f"the interval lies within {_percent(margin)} of equal"
        if holds_zero:
            return "unresolved", "the interval holds zero"
        if size <= spread:
            return "unresolved", f"inside the spread of {_percent(spread)} between code placements"
        return "unresolved", f"within the {_percent(floor)} by which one source compiled twice can differ"
    return ("faster" if location.value < 0 else "slower"), "the interval excludes zero"


def _unfit(m: Measured, location: Location, same: bool) -> str:
    """Why nothing can be said, or the empty string."""
    if same:
        return "a slot cannot be compared with itself"
    if math.isnan(location.value):
        return "no round in which the clock moved"
    if math.isinf(location.error):
        return f"{location.n} usable rounds give no interval"
    if location.error == 0.0:
        return "all rounds tie: the clock is too coarse for this block"
    check = twin_check(m)
    if not check.ok:
        return "the twin of the reference differs from it" if check.resolved else "the twin was not measured"
    return ""


def _same_code(m: Measured, i: int, j: int) -> bool:
    a, b = m.slots[i], m.slots[j]
    return all(getattr(a, field) == getattr(b, field) for field in CODE)


def _percent(log_size: float) -> str:
    return f"{100 * (exp(log_size) - 1):.2g} %"
