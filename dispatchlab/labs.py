"""What the two-thread labs' recordings say: rounds grouped by the round trip between the CPUs, estimates per group. Pure.

Between two virtual CPUs a cache line may take 70 ns there and back in one minute and 300 in the next. A throughput without the
round trip beside it means little, so every round carries the one before and the one after it.
"""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import wording
from .intervals import Estimate, Refused, quantile_interval
from .recording import Recording
from .tables import Table

APART = 1.5
"""Two groups of round trips are two modes when the gap between them is at least so large a factor."""
SHOWN = ("0.5", "0.99", "0.999")
"""The quantiles of the pipeline's latency in tables and figures."""
FEW = 0.05
"""The least part of the rounds that makes a mode."""

Floats = NDArray[np.float64]
Rows = Sequence[dict[str, Any]]


@dataclass(frozen=True)
class Modes:
    """threshold: ns, None when the data show one mode. `of` says "near", "far" or "one" for each round given."""

    threshold: float | None
    of: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The modes that occur, near first."""
        return tuple(name for name in ("near", "far", "one") if name in self.of)


def modes(roundtrips: Sequence[float]) -> Modes:
    """Near and far by the widest gap between the sorted round trips (on a log scale), if it is a factor of APART or more.

    A gap counts only where at least FEW of the rounds lie on either side: a preempted round is no mode.
    """
    ordered = np.sort(np.log(np.maximum(np.asarray(roundtrips, np.float64), 1e-3)))
    few = max(1, math.ceil(FEW * ordered.size))
    gaps = np.diff(ordered)[few - 1 : ordered.size - few]
    if gaps.size == 0 or float(gaps.max()) < math.log(APART):
        return Modes(None, ("one",) * len(roundtrips))
    at = int(gaps.argmax()) + few - 1
    threshold = float(np.exp((ordered[at] + ordered[at + 1]) / 2))
    return Modes(threshold, tuple("near" if x < threshold else "far" for x in roundtrips))


def jain(acquired: Sequence[int]) -> float:
    """Jain's index of fairness: 1 when all have as many, 1/n when one has all.

    Source: Jain, Chiu, Hawe, "A Quantitative Measure of Fairness and Discrimination", DEC-TR-301, 1984.
    """
    x = np.asarray(acquired, np.float64)
    return float(x.sum() ** 2 / (x.size * (x**2).sum())) if x.any() else 0.0


def median(values: Sequence[float] | Floats, family: int = 1) -> Estimate | Refused:
    """The median with its order-statistic interval, 95 % for `family` of them together; Refused for too few values."""
    return quantile_interval(np.asarray(values, np.float64), 0.5, 1 - 0.05 / family)


def text(e: Estimate | Refused) -> str:
    """An estimate as it stands in a table."""
    return f"{e.needed} rounds needed" if isinstance(e, Refused) else wording.measured(e)


def mode_of(rows: Rows) -> Modes:
    """The mode of each round by the geometric mean of the round trips before and after it."""
    return modes([math.sqrt(row["before_ns"] * row["after_ns"]) for row in rows])


@dataclass(frozen=True)
class Group:
    """The values of one cell in one mode, and the round of each: cells that ran in one round ran within a second of each other."""

    key: tuple[Any, ...]
    mode: str
    values: Floats
    rounds: NDArray[np.int64]


def groups(rows: Rows, keys: Sequence[str], value: str) -> list[Group]:
    """Values by cell and mode, cells in order of their keys."""
    found: dict[tuple[tuple[Any, ...], str], list[tuple[int, float]]] = {}
    known = mode_of(rows)
    seen: Counter[tuple[Any, ...]] = Counter()
    for row, mode in zip(rows, known.of, strict=True):
        cell = tuple(row[k] for k in keys)
        found.setdefault((cell, mode), []).append((seen[cell], float(row[value])))
        seen[cell] += 1
    return [
        Group(cell, mode, np.array([v for _, v in found[cell, mode]]), np.array([n for n, _ in found[cell, mode]]))
        for cell in sorted(seen)
        for mode in known.names
        if (cell, mode) in found
    ]


def quotient(over: Group, under: Group, family: int = 1) -> Estimate | Refused:
    """The median of the ratios of two cells, round by round, with its order-statistic interval, 95 % for `family` of them together.

    Rounds in which both were in the mode count. Refused when they are too few.
    """
    _, a, b = np.intersect1d(over.rounds, under.rounds, return_indices=True)
    found = median(over.values[a] / under.values[b], family)
    return found if isinstance(found, Refused) else dataclasses.replace(found, unit="ratio")


def lab_tables(recording: Recording) -> Iterator[Table]:
    """The tables of the labs that the recording holds."""
    extra = recording.extra
    if "roundtrip" in extra:
        yield _roundtrips(extra["roundtrip"])
    if "ring" in extra:
        yield _rings(extra["ring"])
    if "lock" in extra:
        yield _locks(extra["lock"])
    if "pipeline" in extra:
        yield _pipeline(extra["pipeline"])


def mode_note(known: Modes) -> str:
    """How rounds were grouped, in a sentence."""
    if known.threshold is None:
        return f"The round trip beside the {len(known.of)} rounds shows one mode: no gap of a factor {APART:g}."
    near = known.of.count("near")
    return (
        f"Near: the round trip beside the round was below {known.threshold:.0f} ns ({near} rounds); far: above "
        f"({len(known.of) - near} rounds). The threshold lies in the widest gap of these data."
    )


def _roundtrips(facts: dict[str, Any]) -> Table:
    pairs = facts["pairs"]
    rows = tuple((f"{p['cpus'][0]} - {p['cpus'][1]}", text(median(p["ns"], len(pairs))), f"{min(p['ns']):.0f}") for p in pairs)
    every = [x for p in pairs for x in p["ns"]]
    note = mode_note(modes(every))
    return Table("roundtrip", "A cache line there and back, ns", ("CPUs", "median", "fastest round"), rows, (note,))


def _rings(facts: dict[str, Any]) -> Table:
    rows = facts["rounds"]
    found = groups(rows, ("version", "capacity"), "million_per_s")
    base = {(g.key[1], g.mode): g for g in found if g.key[0] == "v5"}
    cells = []
    for g in found:
        against = base.get((g.key[1], g.mode))
        ratio = text(quotient(g, against, len(found))) if against is not None and against is not g else ""
        cells.append((str(g.key[0]), str(g.key[1]), g.mode, text(median(g.values, len(found))), ratio, str(g.values.size)))
    notes = [mode_note(mode_of(rows)), f"{facts['items']} items a round; order, loss and checksum were checked in each."]
    if facts.get("latency"):
        waits = ", ".join(f"{v} {np.median(x):.0f}" for v, x in facts["latency"].items())
        notes.append(f"One way, an item every {facts['gap_ns']} ns, median ns: {waits}.")
    notes.append(f"cache misses: {facts['counters']['cache misses']}; energy: {facts['counters']['energy']}")
    heads = ("version", "capacity", "mode", "million items/s", "of v5", "rounds")
    return Table("ring", "Items through a ring between two CPUs", heads, tuple(cells), tuple(notes))


def _locks(facts: dict[str, Any]) -> Table:
    rows = facts["rounds"]
    keys = ("version", "threads", "hold_ns", "oversubscribed")
    times = groups(rows, keys, "ns_per_acquisition")
    fair = {(g.key, g.mode): g for g in groups(rows, keys, "jain")}
    longest = {(g.key, g.mode): g for g in groups(rows, keys, "longest_us")}
    moved = {(g.key, g.mode): g for g in groups(rows, keys, "handoff_share")}
    single = {(g.key[0], g.key[2], g.mode): g for g in times if g.key[1] == 1}
    cells = []
    for g in times:
        version, threads, hold, over = g.key
        alone = single.get((version, hold, g.mode))
        at = (g.key, g.mode)
        cells.append((
            version, f"{threads}{' on fewer CPUs' if over else ''}", f"{hold:g}", g.mode, text(median(g.values, len(times))),
            text(quotient(g, alone, len(times))) if alone is not None and alone is not g else "", f"{np.median(fair[at].values):.3f}",
            f"{longest[at].values.max():.0f}", f"{100 * np.median(moved[at].values):.2g} %",
        ))  # fmt: skip
    heads = ("lock", "threads", "inside, ns", "mode", "ns/acquisition", "of 1 thread", "Jain", "longest wait, us", "handed over")
    notes = (
        mode_note(mode_of(rows)),
        "Time per total work, threads made before the clock starts; the counter under the lock was exact in every round.",
        f"cache misses: {facts['counters']['cache misses']}; energy: {facts['counters']['energy']}",
    )
    return Table("lock", "A counter under a lock", heads, tuple(cells), notes)


def _pipeline(facts: dict[str, Any]) -> Table:
    cells = []
    for arm, cell in facts["arms"].items():
        family = len(SHOWN) * len(facts["arms"])
        found = [text(median(cell["latency_ns"][q], family)) for q in SHOWN]
        cells.append((arm, text(median(cell["million_per_s"], len(facts["arms"]))), *found))
    heads = ("arm", "million packets/s", "p50, ns", "p99, ns", "p99.9, ns")
    notes = (
        f"Latency: from the time a packet was due to its result, one packet every {facts['gap_ns']:.0f} ns, quantiles of "
        f"{facts['packets']} packets a round, medians over the rounds; packets/s: as fast as it goes.",
        f"The round trip between the CPUs was {min(facts['roundtrip_ns']):.0f} to {max(facts['roundtrip_ns']):.0f} ns.",
    )
    return Table("pipeline", "Generator, ring, dispatching thread", heads, tuple(cells), notes)
