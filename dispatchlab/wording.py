"""Numbers as people read them: as many digits as the interval supports, units people know."""

from __future__ import annotations

import math

from .intervals import Estimate

RATE = 3e6
"""Packets per second that the study plans for."""

BUDGET_NS = 1e9 / RATE


def digits(half: float) -> int:
    """Decimals that show an uncertainty of this size with one or two figures; 3 at most."""
    if not math.isfinite(half):
        return 0
    return 3 if half <= 0 else min(max(math.ceil(-math.log10(half) + 0.2), 0), 3)


def measured(e: Estimate) -> str:
    """ "49.42 ± 0.07"; the interval in brackets where it is not symmetric; says so where there is none."""
    if math.isnan(e.value):
        return "not measured"
    if not (math.isfinite(e.low) and math.isfinite(e.high)):
        return f"{e.value:.3g} (no interval)"
    half = (e.high - e.low) / 2
    places = digits(half)
    if abs(e.high + e.low - 2 * e.value) > 0.2 * half:
        return f"{e.value:.{places}f} [{e.low:.{places}f}, {e.high:.{places}f}]"
    return f"{e.value:.{places}f} ± {half:.{places}f}"


def percent(e: Estimate) -> str:
    """A share as "76.2 % [75.8, 76.6]"."""
    if math.isnan(e.value) or not (math.isfinite(e.low) and math.isfinite(e.high)):
        return "undecided"
    low, value, high = 100 * e.low, 100 * e.value, 100 * e.high
    places = min(digits((high - low) / 2), 2)
    return f"{value:.{places}f} % [{low:.{places}f}, {high:.{places}f}]"


def ratio(e: Estimate) -> str:
    """A ratio as "6.31 [6.29, 6.33]"."""
    if math.isnan(e.value) or not e.bounded:
        return "undecided"
    places = max(digits((e.high - e.low) / 2), 2)
    return f"{e.value:.{places}f} [{e.low:.{places}f}, {e.high:.{places}f}]"


def confidence(value: float) -> str:
    """ "95 %", "99.78 %"."""
    return f"{100 * value:.4g} %"


def size(count: float) -> str:
    """Bytes: "24 KiB", "1 MiB", "800 B"."""
    for unit, scale in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count >= scale:
            return f"{count / scale:.4g} {unit}"
    return f"{count:g} B"


def budget_share(ns: float) -> float:
    """The part of the study's budget that so many ns take."""
    return ns / BUDGET_NS


def million_per_second(ns: float) -> float:
    """Packets per second, in millions, of one core that does nothing else."""
    return 1e3 / ns if ns > 0 else math.inf
