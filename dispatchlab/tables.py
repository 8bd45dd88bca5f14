"""Tables out of a recording: what each cell cost, how it compares, what was won by what. Rows of text, not yet laid out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from . import summary, wording
from .intervals import Estimate
from .recording import Measurement, Recording
from .scenes import Scene, scenes, varying
from .shares import win
from .verdicts import TWIN_CONFIDENCE, TwinCheck, twin_check, verdict

BASELINES = ("table-compact", "scan", "direct-call")
"""What the other arms of a scene are compared with: the first of these that ran there."""

SPLIT = ("scan", "scan-ordered", "table-compact")
SPREAD = "the difference lies inside the spread between code placements"
AXIS_TITLES = {"pool": "pool", "size": "bodies", "delay_ppm": "slowed ppm"}


@dataclass(frozen=True)
class Table:
    """name, title, column heads, rows of cells, and the notes that say how to read it."""

    name: str
    title: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...]


def every_table(recording: Recording) -> list[Table]:
    """The cost of every cell by measurement, and below it what sorting and table share of the win."""
    found = [costs(m) for m in recording.measurements]
    split = [m for m in recording.measurements if any(s.has(*SPLIT) for s in scenes(m))]
    return [*found, wins(split)] if split else found


def costs(m: Measurement) -> Table:
    """One row per slot: cost, probes, part of the budget, rate, comparison, footprint."""
    found = scenes(m)
    axes = varying(found)
    cells = [(scene, arm, index) for scene in found for arm, index in scene.arms.items()]
    each = 1 - (1 - summary.CONFIDENCE) / len(cells)
    compared = [(scene, arm) for scene, arm, _ in cells if arm != _baseline(scene)]
    reasons: dict[str, str] = {}
    rows = tuple(
        (
            *_axis_cells(scene, axes),
            arm,
            *_cost_cells(scene, index, each),
            *_comparison(scene, index, len(compared), reasons),
        )
        for scene, arm, index in cells
    )
    base = ", ".join(sorted({_baseline(scene) for scene in found}))
    heads = (
        *(AXIS_TITLES.get(axis, axis) for axis in axes),
        *("arm", "ns/packet", "probes", "enumerated", "budget", "M/s", "bytes", f"x {base}", "verdict"),
    )
    notes = (
        intervals_note(len(cells), each),
        *([f"Comparisons with {base}: 95 % for all {len(compared)} together (Bonferroni)."] if compared else []),
        *(f"({mark}) {reason}" for reason, mark in reasons.items()),
        f"Budget: {wording.BUDGET_NS:.1f} ns, for {wording.RATE / 1e6:g} million packets per second.",
        *measurement_notes(m),
    )
    return Table(m.name, title(m), heads, rows, notes)


def wins(measurements: list[Measurement], name: str = "win") -> Table:
    """One row per scene with the plain scan, the sorted scan and the table: who captures how much of the win."""
    found = [s for m in measurements for s in scenes(m) if s.has(*SPLIT)]
    each = 1 - (1 - summary.CONFIDENCE) / (3 * max(len(found), 1))
    axes = varying(found) or ["traffic"]
    rows = tuple((*_axis_cells(s, axes), *_win_cells(s, each)) for s in found)
    heads = (*(AXIS_TITLES.get(axis, axis) for axis in axes), *SPLIT, "win, ns", "by sorting", "by the table", "left, ns")
    notes = (
        "Win: scan less table. By sorting: (scan - scan-ordered) / win, Fieller interval, paired by round.",
        f"Intervals: 95 % for all {3 * len(found)} together ({wording.confidence(each)} each, Bonferroni).",
        *(f"{m.name}: {note}" for m in measurements for note in (rounds_note(m), twin_note(m, twin_check(m)))),
    )
    return Table(name, "What sorting the list captures, and what is left for the table", heads, rows, notes)


def _win_cells(scene: Scene, each: float) -> Iterator[str]:
    m = scene.measurement
    indexes = [scene.arms[arm] for arm in SPLIT]
    for index in indexes:
        yield f"{summary.ns(m, index).value:.1f}"
    found = win(m, *indexes, confidence=each)
    yield wording.measured(found.saved)
    yield wording.percent(found.by_sorting)
    yield wording.percent(rest(found.by_sorting))
    yield wording.measured(found.left)


def rest(e: Estimate) -> Estimate:
    """One minus a share."""
    return Estimate(1 - e.value, 1 - e.high, 1 - e.low, e.unit, e.n, e.confidence)


def title(m: Measurement) -> str:
    """What all slots of a measurement have in common."""
    s, axes = m.slots[m.reference], varying(scenes(m))
    known = {
        "handlers": f"{s.handlers} handlers",
        "traffic": f"{s.traffic} traffic",
        "size": f"{s.size} {s.body} bodies",
        "order": f"{s.order} order",
        "pool": f"pool of {wording.size(32 * s.pool)}",
    }
    return f"{m.name}: " + ", ".join(text for axis, text in known.items() if axis not in axes)


def intervals_note(cells: int, each: float) -> str:
    """How sure the intervals of a table are."""
    return f"Intervals: 95 % for all {cells} cells together ({wording.confidence(each)} each, Bonferroni)."


def measurement_notes(m: Measurement) -> tuple[str, ...]:
    """Rounds, disturbances, and whether the null control and the answers held."""
    wrong = dict.fromkeys([*m.failures, *m.wrong_answers()])
    return (rounds_note(m), twin_note(m, twin_check(m)), *(f"FAILED: {line}" for line in wrong))


def rounds_note(m: Measurement) -> str:
    """How much was measured, and how much of it undisturbed."""
    flagged = 100 * float(m.flagged.mean()) if m.rounds else 0.0
    return f"{m.rounds} rounds of {m.block} packets per slot, {flagged:.1f} % flagged as disturbed, none left out."


def twin_note(m: Measurement, check: TwinCheck) -> str:
    """The null control in words."""
    name = m.slots[m.reference].label
    if not check.resolved:
        return f"Twin of {name}: too few rounds to check; no comparison is resolved."
    e = check.estimate
    outcome = "ok" if check.ok else "FAILED, so no comparison of this measurement is to be believed"
    sure = wording.confidence(TWIN_CONFIDENCE)
    return f"Twin: {name} against itself {e.value:.4f} [{e.low:.4f}, {e.high:.4f}] ({sure}): {outcome}."


def _baseline(scene: Scene) -> str:
    return next((arm for arm in BASELINES if scene.has(arm)), next(iter(scene.arms)))


def _axis_cells(scene: Scene, axes: list[str]) -> Iterator[str]:
    for axis in axes:
        value = getattr(scene.slot, axis)
        yield wording.size(scene.pool_bytes) if axis == "pool" else str(value)


def _cost_cells(scene: Scene, index: int, each: float) -> Iterator[str]:
    m = scene.measurement
    label = m.slots[index].label
    e = summary.ns(m, index, confidence=each)
    yield wording.measured(e)
    for known in (m.probes, m.expected_probes):
        yield f"{known[label]:.2f}" if label in known else ""
    yield f"{100 * wording.budget_share(e.value):.1f} %"
    yield f"{wording.million_per_second(e.value):.1f}"
    yield wording.size(m.footprint[label]) if label in m.footprint else ""


def _comparison(scene: Scene, index: int, family: int, reasons: dict[str, str]) -> tuple[str, str]:
    """The ratio to the scene's baseline and the verdict's own word; why one is unresolved goes to a note with a mark."""
    base = _baseline(scene)
    if scene.arms[base] == index:
        return ("1", "") if len(scene.arms) > 1 else ("", "")
    found = verdict(scene.measurement, index, scene.arms[base], family=family)
    if found.kind != "unresolved":
        return wording.ratio(found.estimate), found.kind
    reason = SPREAD if found.reason.startswith("inside the spread") else found.reason
    return wording.ratio(found.estimate), f"unresolved ({reasons.setdefault(reason, 'abcdefgh'[len(reasons)])})"
