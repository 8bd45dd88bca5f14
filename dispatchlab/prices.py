"""The price list out of a recording of study `costs`: steps of the memory, prices, and whether they explain the scan. Pure.

A step is where the working set outgrows what holds it. With levels of capacity C a load over a set of S bytes that is visited
in a random cycle misses a level with the probability 1 - min(1, (C/S)^p): p = 1 is random replacement, larger p a sharper edge.
The capacities are those that fit best, among all on a grid, to the relative error; a latency never falls from level to level.
The sizes that the kernel reports play no part in it.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import summary
from .intervals import LEVEL, Estimate, locate
from .labs import median
from .recording import Recording

Floats = NDArray[np.float64]
SHARP = (1.0, 2.0, 4.0)
FEWER = 2.0
"""A step is found where the kernel says when it is within this factor."""
CACHES = ("L1d", "L2", "L3")
MANY = 16
EXPLAINED = (0.8, 1.25)


@dataclass(frozen=True)
class Price:
    """what: its name; how: what was subtracted from what; estimate: ns."""

    what: str
    how: str
    estimate: Estimate


def column(facts: dict[str, Any], job: str) -> Floats:
    """float64[rounds]: ns of one job."""
    return np.array([row[job] for row in facts["rounds"]], np.float64)


def points(facts: dict[str, Any], prefix: str) -> list[int]:
    """The last word of every job whose name begins so, as a sorted list."""
    return sorted(int(name.removeprefix(prefix)) for name in facts["rounds"][0] if name.startswith(prefix))


def grid(facts: dict[str, Any], prefix: str) -> tuple[Floats, Floats]:
    """float64[points] and float64[rounds, points] ns."""
    xs = points(facts, prefix)
    return np.array(xs, np.float64), np.stack([column(facts, f"{prefix}{x}") for x in xs], axis=1)


def estimate(series: Floats, family: int, quantum: float = math.inf) -> Estimate:
    """The middle of the rounds, 95 % for `family` of them together: the median with its order-statistic interval, which needs
    no shape (some things have two speeds); where the rounds come in spells and are too few for that, `locate`'s.

    quantum: half of the interval where all rounds tie.
    """
    found = median(series, family)
    if isinstance(found, Estimate):
        return replace(found, unit="ns")
    sure = 1 - 0.05 / family
    rest = replace(locate(series, np.zeros(series.size, np.int8), LEVEL), quantum=quantum)
    half = rest.half_width(sure)
    return Estimate(rest.value, rest.value - half, rest.value + half, "ns", rest.n, sure)


@dataclass(frozen=True)
class Steps:
    """capacities: what fits best over all rounds together, with the interval over the rounds, unit as x; sharpness p."""

    capacities: tuple[Estimate, ...]
    sharpness: float


def steps(x: Floats, ns: Floats, levels: int, family: int = 1) -> Steps:
    """The `levels` capacities in float64[rounds, points] of ns over x."""
    middle = np.median(ns, axis=0)
    candidates = np.exp(np.linspace(np.log(x[0]), np.log(x[-1]), 2 * x.size - 1))[1:-1]
    chosen = np.array(list(itertools.combinations(range(candidates.size), levels)))
    p = min(SHARP, key=lambda sharp: _fit(x, middle, candidates, chosen, sharp)[0])
    each = np.array([candidates[chosen[_fit(x, row, candidates, chosen, p)[1]]] for row in ns])
    whole = candidates[chosen[_fit(x, middle, candidates, chosen, p)[1]]]
    half_step = float(np.sqrt(candidates[1] / candidates[0]))
    found = []
    for level in range(levels):
        e = estimate(np.log(each[:, level]), family, 0.0)
        low, high = np.exp([e.low, e.high])
        value = float(whole[level])
        found.append(Estimate(value, min(float(low), value) / half_step, max(float(high), value) * half_step, "x", e.n, e.confidence))
    return Steps(tuple(found), p)


def _fit(x: Floats, y: Floats, candidates: Floats, chosen: NDArray[np.int64], sharp: float) -> tuple[float, int]:
    """The least squared relative error of any choice of capacities, and which one. Rising latencies only."""
    miss = 1 - np.minimum(1.0, candidates[:, np.newaxis] / x) ** sharp
    design = np.concatenate([np.ones((len(chosen), 1, x.size)), miss[chosen]], axis=1) / y
    normal = design @ design.transpose(0, 2, 1) + 1e-12 * np.eye(design.shape[1])
    right = design.sum(axis=2)
    weights = np.linalg.solve(normal, right[..., np.newaxis])[..., 0]
    error = ((np.einsum("ij,ijk->ik", weights, design) - 1) ** 2).sum(axis=1)
    error[(weights < 0).any(axis=1)] = np.inf
    best = int(error.argmin())
    return float(error[best]), best


@lru_cache(maxsize=4)
def analysed(recording: Recording) -> Analysis:
    """Everything that table and figure say of a recording; worked out once."""
    return Analysis(recording)


class Analysis:
    """The steps and prices of one recording."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self.facts: dict[str, Any] = recording.extra["costs"]
        caches = recording.environment.get("caches") or {}
        self.reported: dict[str, int | None] = {name: caches.get(name) for name in CACHES}
        self.memory = steps(*grid(self.facts, "chase huge "), 3, 3)
        counts, by_page = grid(self.facts, "pages ")
        by_line = grid(self.facts, "lines ")[1]
        self.counts, self.walk = counts, by_page - by_line
        self.tlb = steps(counts, np.maximum(self.walk, 0) + by_line[:, :1], 2, 2)
        self.prices = self._prices()

    def _prices(self) -> list[Price]:
        family = 16
        found = [*self._loads(family), *self._walks(family)]
        for what, how, series in self._things():
            found.append(Price(what, how, estimate(series, family)))
        return found

    def _loads(self, family: int) -> list[Price]:
        """Each level at the size in the middle (on a log scale) between the steps around it."""
        x, ns = grid(self.facts, "chase huge ")
        edges = [x[0], *(c.value for c in self.memory.capacities), x[-1]]
        found = []
        for name, low, high in zip((*CACHES, "DRAM"), edges[:-1], edges[1:], strict=True):
            at = x.size - 1 if name == "DRAM" else int(np.abs(np.log(x / np.sqrt(low * high))).argmin())
            how = f"chase over {_bytes(x[at])}, huge pages asked for"
            found.append(Price(f"load from {name}", how, estimate(ns[:, at], family)))
        return found

    def _walks(self, family: int) -> list[Price]:
        first, second = (c.value for c in self.tlb.capacities)
        found = []
        for name, low, high in (("first TLB missed", first, second), ("last TLB missed", second, self.counts[-1])):
            at = int(np.abs(np.log(self.counts / np.sqrt(low * high))).argmin())
            how = f"chase over {self.counts[at]:.0f} lines in a page each, less the same lines side by side"
            found.append(Price(name, how, estimate(self.walk[:, at], family)))
        return found

    def _things(self) -> list[tuple[str, str, Floats]]:
        get = partial(column, self.facts)
        missed = 1 - 1 / MANY
        found = [
            ("branch, foreseen", "every second time taken, less no branch", get("branch 1") - get("branch 0")),
            ("branch, mispredicted", "at random less every second time, per miss (half miss)",
             2 * (get("branch 2") - get("branch 1"))),
            ("indirect call, foreseen", "always the same target, less the same work inline", get("call 1 1") - get("call 0 1")),
            ("indirect call, mispredicted", f"{MANY} targets at random less one target, per miss",
             (get(f"call 2 {MANY}") - get("call 1 1")) / missed),
            ("64-bit division", "in a chain, less the chain without it", get("divide 1") - get("divide 0")),
            ("atomic add, alone", "one thread", get("add 1")),
        ]  # fmt: skip
        if "add together" in self.facts["rounds"][0]:
            found.append(("atomic add, contended", "two threads, one counter; per add of both", get("add together") / 2))
            found.append(("atomic add, own counters", "two threads, a counter each; per add of both", get("add apart") / 2))
        found.append(("system call", "getpid", get("syscall 0")))
        found.append(("page fault", "first write to a fresh page", get("fault 0")))
        return found

    def price(self, what: str) -> Estimate:
        """The price of that name."""
        return next(p.estimate for p in self.prices if p.what == what)

    def gives_out(self) -> int | None:
        """The fewest targets, called in turn, of which each call costs over half a miss more than with one target (the lower
        end of the paired interval); None where all are foreseen."""
        targets = points(self.facts, "call 1 ")
        half = self.price("indirect call, mispredicted").value / 2
        one = column(self.facts, "call 1 1")
        for n in targets:
            if estimate(column(self.facts, f"call 1 {n}") - one, len(targets)).low > half > 0:
                return n
        return None

    def explained(self) -> Explained | None:
        """The scan's rise beside what its probes should cost; None when the scan was not measured."""
        if not self.recording.measurements:
            return None
        m = self.recording.measurements[0]
        few, many = (next(i for i, s in enumerate(m.slots) if s.label == f"scan {n}") for n in (10, 100))
        asked = m.probes[m.slots[many].label] - m.probes[m.slots[few].label]
        rise = summary.difference(m, many, few, confidence=1 - 0.05 / 3)
        in_turn = column(self.facts, "call 1 100") - column(self.facts, "call 0 1")
        alike = column(self.facts, "call 1 1") - column(self.facts, "call 0 1")
        return Explained(asked, rise, _times(estimate(in_turn, 3), asked), _times(estimate(alike, 3), asked))


@dataclass(frozen=True)
class Explained:
    """asked: more predicate calls per packet; rise: ns per packet; priced: what they cost as calls to 100 targets in turn;
    foreseen: what they would cost if every one were foreseen."""

    asked: float
    rise: Estimate
    priced: Estimate
    foreseen: Estimate

    @property
    def share(self) -> Estimate:
        """priced over rise; both intervals' far ends."""
        low, high = self.priced.low / self.rise.high, self.priced.high / self.rise.low
        return Estimate(self.priced.value / self.rise.value, low, high, "ratio", self.priced.n, 0.95)

    @property
    def answer(self) -> str:
        """Whether the calls alone make the rise, within a quarter."""
        low, high = EXPLAINED
        if low <= self.share.low and self.share.high <= high:
            return "the price of its indirect calls explains the rise"
        if self.share.high < low or self.share.low > high:
            return "the price of its indirect calls does not explain the rise"
        return "undecided: the interval is too wide"


def _times(e: Estimate, by: float) -> Estimate:
    return Estimate(e.value * by, e.low * by, e.high * by, "ns/packet", e.n, e.confidence)


def _bytes(n: float) -> str:
    from .wording import size

    return size(float(n))


def within(found: Estimate, reported: int | None) -> str:
    """Whether a step lies where the kernel says, within a factor of FEWER."""
    if not reported:
        return "the kernel reports no size"
    ratio = found.value / reported
    return f"{ratio:.2f} of it: {'within' if 1 / FEWER <= ratio <= FEWER else 'NOT within'} a factor of {FEWER:g}"
