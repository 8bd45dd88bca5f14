"""What a measurement says: ns per packet, paired ratios and differences, each with its interval.

Pure functions of the raw ticks. Everything between two slots is paired: computed round by round first, so
that a spell which slows the whole round cancels, then located over the rounds (dispatchlab/intervals.py),
each code placement with equal weight. Disturbed rounds count like all others unless undisturbed=True leaves
them out; a level (`ns`) uses the heavier trim, because nothing cancels in it.

A round in which the clock did not move (ticks <= 0) makes the interval unbounded, and so does a run of fewer
than 8 rounds. When all rounds tie, the interval is what one step of the clock can hide.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dispatchlab.errors import UsageError, explain
from dispatchlab.intervals import LEVEL, PAIRED, Estimate, Floats, Location, centres, locate

__all__ = [
    "Estimate",
    "Measured",
    "SlotLike",
    "change",
    "contrast",
    "difference",
    "log_ratio",
    "ns",
    "placement_spread",
    "ratio",
    "slot_index",
]

CONFIDENCE = 0.95


class SlotLike(Protocol):
    """What the statistics read of a slot."""

    @property
    def label(self) -> str: ...


class Measured(Protocol):
    """What the statistics read of a Measurement."""

    @property
    def slots(self) -> Sequence[SlotLike]: ...
    @property
    def reference(self) -> int: ...
    @property
    def twin(self) -> int: ...
    @property
    def block(self) -> int: ...
    @property
    def ticks(self) -> NDArray[np.int64]: ...
    @property
    def placement(self) -> NDArray[np.int8]: ...
    @property
    def flagged(self) -> NDArray[np.bool_]: ...
    @property
    def ticks_per_ns(self) -> float: ...


SlotKey: TypeAlias = int | str
Weights: TypeAlias = Mapping[int, float] | Mapping[str, float] | Sequence[tuple[SlotKey, float]]


def slot_index(m: Measured, slot: SlotKey) -> int:
    """The index of a slot given by index or label. Raises UsageError for one that is not there."""
    labels = [s.label for s in m.slots]
    if isinstance(slot, str):
        if slot in labels:
            return labels.index(slot)
    elif 0 <= slot < len(labels):
        return int(slot)
    raise UsageError(explain("no such slot in the measurement", expected=", ".join(labels), got=repr(slot)))


def ns(m: Measured, slot: SlotKey, *, undisturbed: bool = False, confidence: float = CONFIDENCE) -> Estimate:
    """Time of one slot, "ns/packet". Located with weight on the middle 40 % of rounds and none on the outer
    30 % on each side, so that it stays with the calm rounds as long as they are more than 70 % of the run."""
    location = _combination(m, [(slot, 1.0)], LEVEL, undisturbed)
    return _estimate(location, "ns/packet", confidence, floor=0.0)


def difference(
    m: Measured, a: SlotKey, b: SlotKey, *, undisturbed: bool = False, confidence: float = CONFIDENCE
) -> Estimate:
    """Time of slot a less that of slot b, paired per round, "ns/packet"."""
    return contrast(m, [(a, 1.0), (b, -1.0)], undisturbed=undisturbed, confidence=confidence)


def contrast(
    m: Measured, weights: Weights, *, undisturbed: bool = False, confidence: float = CONFIDENCE
) -> Estimate:
    """A weighted sum of slots' times, formed round by round, "ns/packet"; a slot named twice adds up."""
    return _estimate(_combination(m, weights, PAIRED, undisturbed), "ns/packet", confidence)


def ratio(
    m: Measured, a: SlotKey, b: SlotKey, *, undisturbed: bool = False, confidence: float = CONFIDENCE
) -> Estimate:
    """Time of slot a divided by that of slot b, "ratio": below 1, a is faster. The exponential of the
    location of the rounds' log-ratios, so ratio(a, b) is exactly 1 / ratio(b, a)."""
    return as_ratio(log_ratio(m, a, b, undisturbed=undisturbed), confidence)


def log_ratio(m: Measured, a: SlotKey, b: SlotKey, *, undisturbed: bool = False) -> Location:
    """The location behind `ratio`, on the log scale."""
    i, j = slot_index(m, a), slot_index(m, b)
    if i == j:
        return Location(0.0, 0.0, 1.0, len(m.ticks), 0.0)
    rounds = _rounds(m, undisturbed)
    top, bottom = m.ticks[rounds, i], m.ticks[rounds, j]
    moved = (top > 0) & (bottom > 0)
    series = np.log(top[moved] / bottom[moved])
    found = locate(series, m.placement[rounds][moved], PAIRED)
    return _honest(found, moved, lambda: _step(m) * (1 / np.median(top) + 1 / np.median(bottom)))


def change(
    new: Measured, old: Measured, a: SlotKey, b: SlotKey | None = None, *, confidence: float = CONFIDENCE
) -> Estimate:
    """How slot a changed between two measurements made apart, "ratio" new / old: above 1, it got slower.

    With b, the change of ratio(a, b), which a machine that runs faster or slower as a whole does not move;
    without, of ns(a). The two runs are taken as independent; their numbers of rounds may differ. What
    separates two runs but does not vary within one (another boot, another layout of memory) is not in the
    interval.
    """
    if b is None:
        return as_ratio(_log_level(new, a).minus(_log_level(old, a)), confidence)
    return as_ratio(log_ratio(new, a, b).minus(log_ratio(old, a, b)), confidence)


def placement_spread(m: Measured, a: SlotKey, b: SlotKey) -> float:
    """Largest less smallest of the log-ratios a / b located in each code placement alone; 0 with one
    placement, nan without a round in which both clocks moved."""
    i, j = slot_index(m, a), slot_index(m, b)
    moved = (m.ticks[:, i] > 0) & (m.ticks[:, j] > 0)
    if not moved.any():
        return math.nan
    each = centres(np.log(m.ticks[moved, i] / m.ticks[moved, j]), m.placement[moved])
    return float(each.max() - each.min())


def as_ratio(location: Location, confidence: float) -> Estimate:
    """A location on the log scale as an Estimate of a ratio; low = 0 and high = inf where nothing bounds
    it."""
    on_log = _estimate(location, "ratio", confidence)
    return replace(on_log, value=exp(on_log.value), low=exp(on_log.low), high=exp(on_log.high))


def exp(x: float) -> float:
    """e to the x; inf where math.exp would overflow."""
    return math.exp(x) if x < 700.0 or math.isnan(x) else math.inf


def _log_level(m: Measured, slot: SlotKey) -> Location:
    """The location of the log of one slot's ns per packet."""
    ticks = m.ticks[:, slot_index(m, slot)]
    moved = ticks > 0
    series = np.log(ticks[moved] / (m.block * m.ticks_per_ns))
    return _honest(locate(series, m.placement[moved], LEVEL), moved, lambda: _step(m) / np.median(ticks))


def _combination(m: Measured, weights: Weights, trim: tuple[float, float], undisturbed: bool) -> Location:
    """The location of a weighted sum of slots' ns per packet."""
    column = np.zeros(len(m.slots))
    for slot, weight in weights.items() if isinstance(weights, Mapping) else weights:
        column[slot_index(m, slot)] += weight
    used = np.flatnonzero(column)
    if used.size == 0:
        return Location(0.0, 0.0, 1.0, len(m.ticks), 0.0)
    rounds = _rounds(m, undisturbed)
    ticks = m.ticks[np.ix_(rounds, used)]
    moved = np.all(ticks > 0, axis=1)
    scale = m.block * m.ticks_per_ns
    series: Floats = ticks[moved] @ column[used] / scale
    found = locate(series, m.placement[rounds][moved], trim)
    return _honest(found, moved, lambda: _step(m) * np.abs(column).sum() / scale)


def _rounds(m: Measured, undisturbed: bool) -> NDArray[np.intp]:
    return np.flatnonzero(~m.flagged) if undisturbed else np.arange(len(m.ticks))


def _step(m: Measured) -> float:
    """One step of the clock in ticks: the greatest common divisor of all that it read. A clock that counts in
    units of 40 ticks shows it, and one whose reading never changed is unknown by all of it."""
    return float(np.gcd.reduce(m.ticks, axis=None))


def _honest(found: Location, moved: NDArray[np.bool_], quantum: Callable[[], float]) -> Location:
    """The location without an error where some round's clock did not move, and with the reach of one step of
    the clock where all rounds tie."""
    if not moved.all():
        return replace(found, error=math.inf)
    return replace(found, quantum=float(quantum())) if found.error == 0.0 else found


def _estimate(location: Location, unit: str, confidence: float, floor: float = -math.inf) -> Estimate:
    half = location.half_width(confidence)
    low, high = location.value - half, location.value + half
    if math.isnan(location.value) or math.isinf(half):
        low, high = floor, math.inf
    return Estimate(location.value, max(low, floor), high, unit, location.n, confidence)
