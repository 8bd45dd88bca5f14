"""Quotients of two weighted sums of slots, such as the share of a win, with an interval that is honest about both.

The interval is Fieller's (Quarterly Journal of Mathematics 11 (1940) 176-183), by inverting the paired test: it holds
every s for which the rounds do not exclude part - s * whole = 0. Where the whole itself may be zero there is no interval.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq

from .errors import UsageError, explain
from .intervals import PAIRED, Estimate, Floats, centres
from .recording import Measurement
from .summary import CONFIDENCE, contrast

Weights = Sequence[tuple[int, float]]
"""(slot index, weight) pairs; ns of a slot named twice adds up."""

REACH = 40


@dataclass(frozen=True)
class Win:
    """What a sorted list and a table save against the plain scan of one scene.

    saved      scan - table, "ns/packet"
    by_sorting (scan - ordered) / (scan - table), "share": may lie outside of 0..1
    left       ordered - table, what only the table brings, "ns/packet"
    """

    saved: Estimate
    by_sorting: Estimate
    left: Estimate


def win(m: Measurement, scan: int, ordered: int, table: int, *, confidence: float = CONFIDENCE) -> Win:
    """The win of one scene, by slot indexes; all three paired round by round."""
    saved, part = [(scan, 1.0), (table, -1.0)], [(scan, 1.0), (ordered, -1.0)]
    return Win(
        contrast(m, saved, confidence=confidence),
        share(m, part, saved, confidence=confidence),
        contrast(m, [(ordered, 1.0), (table, -1.0)], confidence=confidence),
    )


def share(m: Measurement, part: Weights, whole: Weights, *, confidence: float = CONFIDENCE) -> Estimate:
    """part / whole, "share". -inf..inf where the whole is not resolved from zero or there are too few rounds."""
    bottom = contrast(m, whole, confidence=confidence)
    unknown = Estimate(math.nan, -math.inf, math.inf, "share", bottom.n, confidence)
    if not bottom.value:
        return unknown
    top = contrast(m, part, confidence=confidence)
    rough = top.value / bottom.value
    if not (top.bounded and bottom.bounded) or bottom.low <= 0.0 <= bottom.high:
        return Estimate(rough, -math.inf, math.inf, "share", bottom.n, confidence)

    def left(s: float) -> Estimate:
        return contrast(m, [*part, *((slot, -s * weight) for slot, weight in whole)], confidence=confidence)

    if bottom.value < 0.0:  # below, what is left must fall with s
        part, whole = _negated(part), _negated(whole)
    near = left(rough)
    step = max((near.high - near.low) / 2 / abs(bottom.value), 1e-9 * max(1.0, abs(rough)))
    value = _root(lambda s: left(s).value, rough, step)
    low = _root(lambda s: left(s).low, rough, step)
    high = _root(lambda s: left(s).high, rough, step)
    return Estimate(
        rough if math.isnan(value) else value,
        -math.inf if math.isnan(low) else low,
        math.inf if math.isnan(high) else high,
        "share",
        bottom.n,
        confidence,
    )


def by_placement(m: Measurement, weights: Weights) -> Floats:
    """The weighted sum located in each code placement alone, ns/packet: float64[placements present]."""
    column = np.zeros(len(m.slots))
    for slot, weight in weights:
        if not 0 <= slot < len(column):
            raise UsageError(explain("no such slot in the measurement", m.name, f"0..{len(column) - 1}", str(slot)))
        column[slot] += weight
    return centres(m.ticks @ column / (m.block * m.ticks_per_ns), m.placement, PAIRED)


def _negated(weights: Weights) -> Weights:
    return [(slot, -weight) for slot, weight in weights]


def _root(falling: Callable[[float], float], start: float, step: float) -> float:
    """Where a falling function crosses zero, looked for in both directions from start; nan beyond reach.

    Good to a ten-thousandth of step, which is half the width of the interval.
    """
    close = 1e-4 * step
    for _ in range(REACH):
        step *= 1.5
        low, high = start - step, start + step
        if falling(low) >= 0.0 >= falling(high):
            return float(brentq(falling, low, high, xtol=close))
    return math.nan
