"""One verdict out of the evidence, and the conditions under which it holds. Pure.

The simplest that costs nothing worth having wins: the loop as it is, the loop sorted, the table. A difference is worth having when
it is one hundredth of the time that the rate leaves for a packet. A loop also loses to the table where its worst day does not fit
that time, or breaks the promise for one packet in a thousand, and the table's does not.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from .. import wording
from ..intervals import Estimate, Refused
from ..verdicts import twin_check
from .evidence import BATCH_ARMS, Evidence, numbers

WORTH = 0.01
TABLE = "table-compact"
P999 = 3
NAMES = {"scan": "the loop as it is", "scan-ordered": "the sorted loop", TABLE: "the table"}


@dataclass(frozen=True)
class Verdict:
    """kind: "keep the loop", "ship the sorted loop", "build the table" or "unresolved". sentence: with the reason; conditions: what
    it rests on; further: what else was seen to pay; numbers: what the decision was made of."""

    kind: str
    sentence: str
    conditions: tuple[str, ...] = ()
    further: tuple[str, ...] = ()
    numbers: dict[str, Any] = field(default_factory=dict)


def decide(e: Evidence) -> Verdict:
    """The verdict; "unresolved" with the reason where the evidence does not carry one."""
    worth = WORTH * e.budget
    if e.facts["too_short"]:
        needed = f"the time was too short for any verdict: {e.facts['too_short']}"
        return Verdict("unresolved", f"unresolved: {needed}", numbers={"worth": worth})
    if doubt := _doubt(e):
        return Verdict("unresolved", f"unresolved: {doubt}", numbers={"worth": worth})
    gain = e.less(e.simple, TABLE)
    sorting = e.less("scan", "scan-ordered")
    found = numbers(worth=worth, budget=e.budget, table_saves=gain, sorting_saves=sorting)
    kind, sentence = _kind(e, gain, sorting, worth)
    return Verdict(kind, f"{kind}: {sentence}", _conditions(e, worth), _further(e, worth), found)


def _kind(e: Evidence, gain: Estimate, sorting: Estimate, worth: float) -> tuple[str, str]:
    simple = NAMES[e.simple]
    if gain.low > worth:
        part = wording.budget_share(gain.value) * wording.BUDGET_NS / e.budget
        said = f"it saves {wording.measured(gain)} ns a packet against {simple}, {100 * part:.1f} % of the time there is"
        return "build the table", said
    if reason := tail_reason(e):
        return "build the table", f"your tail needs the bound: {reason}"
    if not gain.high <= worth:
        return "unresolved", _undecided(gain, worth, f"{simple} less the table", e)
    within = f"the table would save {wording.measured(gain)} ns a packet, and {worth:.1f} ns is worth having"
    if e.simple == "scan":
        return "keep the loop", f"{within}; its order is behaviour, so it is not to be sorted"
    if sorting.low > worth:
        return "ship the sorted loop", f"sorting saves {wording.measured(sorting)} ns a packet; {within}"
    if sorting.high <= worth and e.less("scan", TABLE).high <= worth:
        return "keep the loop", f"sorting would save {wording.measured(sorting)} ns a packet; {within}"
    return "unresolved", _undecided(sorting, worth, "the loop as it is less the sorted one", e)


def _undecided(d: Estimate, worth: float, what: str, e: Evidence) -> str:
    half = (d.high - d.low) / 2 if d.bounded else math.inf
    said = f"{what} is {wording.measured(d)} ns a packet, on both sides of the {worth:.2g} ns that are worth having"
    distance = abs(d.value - worth)
    if not (math.isfinite(half) and distance):
        return said
    times = (half / distance) ** 2
    return f"{said}; about {max(math.ceil(times * float(e.case['budget'])), 1)} s of measuring would tell"


def tail_reason(e: Evidence) -> str:
    """Why the loop's bad days need the table's bound; empty where they do not, or where the table does not help either."""
    promised = e.case["p999"]
    for day in e.days:
        loop, table = e.on_day(e.simple, day), e.on_day(TABLE, day)
        if loop.bounded and table.bounded and loop.low > e.budget >= table.high:
            where = f"under {day} traffic a packet takes {wording.measured(loop)} ns of the {e.budget:.0f} that there are"
            return f"{where}, with the table {wording.measured(table)}"
        if promised is None:
            continue
        slow, bound = (e.tails[arm, day].latency[P999] for arm in (e.simple, TABLE))
        if isinstance(slow, Refused) or isinstance(bound, Refused):
            continue
        if slow.low > promised >= bound.high:
            where = f"under {day} traffic p99.9 is {wording.measured(slow)} ns, and {promised:g} was promised"
            return f"{where}; the table's is {wording.measured(bound)}"
    return ""


def _doubt(e: Evidence) -> str:
    """Why nothing may be concluded: a check that failed."""
    if e.recording.failures:
        return f"a check failed: {e.recording.failures[0]}"
    for m in e.recording.measurements:
        check = twin_check(m)
        if not check.ok:
            said = f"differs from it by {100 * abs(check.estimate.value - 1):.2f} %" if check.resolved else "has too few rounds"
            return f"the twin of {m.slots[m.reference].label} in {m.name} {said}; measure again on a calmer machine, or for longer"
    copied = e.compared("table-compact-copy", TABLE)
    if copied.kind in ("faster", "slower"):
        return f"a copy of the table is called {copied.kind} than the table ({wording.ratio(copied.estimate)})"
    return ""


def _conditions(e: Evidence, worth: float) -> tuple[str, ...]:
    case, traffic = e.case, e.facts["traffic"]
    said = [
        f"{case['handlers']} handlers with {case['size']} {case['body']} bodies, {traffic['name']} traffic at "
        f"{float(case['rate']) / 1e6:g} million packets per second: a packet has {e.budget:.0f} ns.",
        f"A difference counts from {worth:.2g} ns a packet on, one hundredth of that.",
    ]
    if witness := e.facts["witness"]:
        said.append(
            f"The list must not be sorted: the packet with key {witness['key']} and first payload byte {witness['first_byte']} "
            f"belongs to handler {witness['in_list_order']}, and to {witness['when_moved']} once it is {witness['how']}."
        )
    worst = max((e.on_day(TABLE, day).value, day) for day in e.days)
    if worst[0] > e.budget:
        said.append(f"Under {worst[1]} traffic the table itself takes {worst[0]:.0f} ns a packet: one core does not carry this rate.")
    if isinstance(case["p999"], int | float):
        said.append(_promise(e, float(case["p999"])))
    if plugins := case["plugins"]:
        word = "plugins" if plugins > 1 else "plugin"
        said.append(f"{plugins} {word} among the handlers: the set is open, so a closed one is no choice.")
    said.append(f"Measured here, on this machine: {e.recording.environment.get('cpu_model') or 'unknown CPU'}.")
    return tuple(said)


def _promise(e: Evidence, promised: float) -> str:
    kept = [e.tails[TABLE, day].latency[P999] for day in e.days]
    worst = max((t for t in kept if not isinstance(t, Refused)), key=lambda t: t.value, default=None)
    if worst is None:
        return f"Too few samples to say whether p99.9 stays below {promised:g} ns."
    word = "keeps" if worst.high <= promised else "breaks" if worst.low > promised else "may or may not keep"
    return f"On its worst day the table's p99.9 is {wording.measured(worst)} ns and {word} the promised {promised:g}."


def _further(e: Evidence, worth: float) -> tuple[str, ...]:
    """What else was seen to pay by more than it must, against the table."""
    said = []
    for arm in (*BATCH_ARMS, "scan-simd", "top-n"):
        if arm not in e.labels:
            continue
        d = e.less(TABLE, arm)
        if d.low > worth and e.compared(arm, TABLE).kind == "faster":
            said.append(f"{arm} saves {wording.measured(d)} ns a packet more than the table{_added(e, arm)}.")
    return tuple(said)


def _added(e: Evidence, arm: str) -> str:
    if arm not in BATCH_ARMS:
        return ""
    fill = (int(arm.rsplit("-", 1)[1]) - 1) / float(e.case["rate"]) * 1e6
    return f", and lets the first packet of a batch wait {fill:.1f} µs for the last"
