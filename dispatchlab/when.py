"""When is the loop right? What a recording of study `when` says: the winner of every number of handlers and skew. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from . import summary, wording
from .intervals import Estimate
from .recording import Measurement, Recording
from .scenes import Scene, scenes
from .tables import Table, measurement_notes
from .verdicts import verdict

STUDY = "when"
BASE = "table-compact"
SAYS = {"scan": "scan", "scan-ordered": "sorted scan", "scan-simd": "vector scan", BASE: "table"}


@dataclass(frozen=True)
class Cell:
    """One number of handlers under one exponent (0: uniform).

    winner: the fastest arm; resolved: it is faster than every other; loop: the fastest of those that are not the table;
    ratio: time of that loop over the table's.
    """

    handlers: int
    exponent: float
    winner: str
    resolved: bool
    loop: str
    ratio: Estimate
    loop_wins: bool
    table_wins: bool


def measurements(recording: Recording) -> list[Measurement]:
    """Those of this study."""
    return [m for m in recording.measurements if m.name.startswith(f"{STUDY} ")]


def cells(recording: Recording) -> list[Cell]:
    """By number of handlers and exponent; every comparison of the map is one of a family."""
    found = [s for m in measurements(recording) for s in scenes(m) if s.has(BASE) and len(s.arms) > 1]
    family = sum(len(s.arms) - 1 for s in found) + len(found)
    return sorted((_cell(s, family) for s in found), key=lambda c: (c.handlers, c.exponent))


def _cell(scene: Scene, family: int) -> Cell:
    m = scene.measurement
    level = {arm: summary.ns(m, index).value for arm, index in scene.arms.items()}
    winner = min(level, key=level.__getitem__)
    loop = min((arm for arm in level if arm != BASE), key=level.__getitem__)
    rest = [verdict(m, scene.arms[winner], i, family=family).kind for arm, i in scene.arms.items() if arm != winner]
    against = verdict(m, scene.arms[loop], scene.arms[BASE], family=family)
    return Cell(
        handlers=scene.slot.handlers,
        exponent=exponent(scene.slot.traffic),
        winner=winner,
        resolved=all(kind == "faster" for kind in rest),
        loop=loop,
        ratio=against.estimate,
        loop_wins=against.kind == "faster",
        table_wins=against.kind == "slower",
    )


def exponent(traffic: str) -> float:
    """The zipf exponent in a traffic's name."""
    from .traffic.generate import ZIPF_S

    if traffic == "uniform":
        return 0.0
    return float(traffic.partition(":")[2] or ZIPF_S)


def sentence(found: list[Cell]) -> str:
    """Where a loop beats the table, or that it does nowhere; decided by the verdicts."""
    won, lost = [c for c in found if c.loop_wins], [c for c in found if c.table_wins]
    open_ = len(found) - len(won) - len(lost)
    rest = f"; {open_} {'cell is' if open_ == 1 else 'cells are'} not told apart" if open_ else ""
    if not won:
        return f"The loop is nowhere right: no kind of it beats the table, which wins {len(lost)} of {len(found)} cells{rest}"
    most = max(c.handlers for c in won)
    skews = sorted(c.exponent for c in won if c.handlers == most)
    there = ", ".join("uniform" if s == 0 else f"{s:g}" for s in skews)
    return f"A loop beats the table in {len(won)} of {len(found)} cells, with up to {most} handlers (there at skew {there}){rest}"


def when_tables(recording: Recording) -> Iterator[Table]:
    """The map as text; nothing for another study."""
    found = cells(recording) if recording.study in (STUDY, "reproduce") else []
    if not found:
        return
    exponents = sorted({c.exponent for c in found})
    rows = []
    for count in sorted({c.handlers for c in found}):
        row = {c.exponent: c for c in found if c.handlers == count}
        rows.append((str(count), *(_words(row[s]) if s in row else "" for s in exponents)))
    heads = ("handlers", *("uniform" if s == 0 else f"zipf {s:g}" for s in exponents))
    notes = [
        f"{sentence(found)}.",
        "In each cell: the fastest arm (?: it is not told apart from every other), and the fastest loop's time over the table's; "
        "95 % for all comparisons of the map together.",
    ]
    for m in measurements(recording):
        notes += [f"{m.name}: {note}" for note in measurement_notes(m)]
    yield Table("when", "When is the loop right?", heads, tuple(rows), tuple(notes))


def _words(c: Cell) -> str:
    return f"{SAYS.get(c.winner, c.winner)}{'' if c.resolved else '?'} {wording.ratio(c.ratio)}"
