"""The study's checklist, asked of one service. Each question is a function of the evidence; None where it was not measured. Pure."""

from __future__ import annotations

from collections.abc import Callable

from .. import wording
from ..intervals import Estimate, Refused
from ..past import quantile
from ..shares import win
from ..summary import slot_index
from ..verdicts import twin_check
from .evidence import BATCH_ARMS, SURE, Answer, Evidence, numbers
from .verdict import NAMES, P999, TABLE, tail_reason


def budget(e: Evidence) -> Answer | None:
    """What a packet may take, and what the loop takes of it."""
    question = "What is the budget?"
    said = f"{float(e.case['rate']) / 1e6:g} million packets per second leave {e.budget:.0f} ns for each."
    if not e.main:
        return Answer("budget", question, said, numbers(budget=e.budget))
    loop = e.ns("scan")
    said += f" The loop as it is takes {wording.measured(loop)} ns, handler included, {100 * loop.value / e.budget:.0f} % of that"
    table = e.ns(TABLE)
    said += f"; the table {wording.measured(table)} ns, {100 * table.value / e.budget:.0f} %."
    return Answer("budget", question, said, numbers(budget=e.budget, scan=loop, table=table))


def probes(e: Evidence) -> Answer:
    """Predicates asked per packet, counted and computed."""
    found = e.facts["probes"]
    parts = [f"{NAMES[arm]} {p['mean']:.2f} on average and {p['worst']} at worst" for arm, p in found.items()]
    wrong = sum(p["differ"] for p in found.values())
    agree = f"COUNTED AND COMPUTED PROBES DIFFER on {wrong} packets" if wrong else "Counting and enumerating agree on every packet"
    given = {arm: {k: p[k] for k in ("mean", "worst", "computed_mean", "differ")} for arm, p in found.items()}
    said = f"Predicates asked for a packet: {'; '.join(parts)}. {agree}."
    return Answer("probes", "Does the path search, and how far?", said, given)


def distribution(e: Evidence) -> Answer:
    """How the packets fall on the handlers."""
    t = e.facts["traffic"]
    said = (
        f"{t['keys']} handlers get packets, as spread as {t['effective']:.1f} equally busy ones would be; the busiest carries "
        f"{100 * t['top']['1']:.0f} %, the four busiest {100 * t['top']['4']:.0f} %. The same one comes {t['run']:.2f} times in a "
        f"row, {t['random']:.2f} times if the order were random; {100 * t['unmatched']:.1f} % of the packets are nobody's."
    )
    law = t["zipf"]
    if law["exponent"] is None:
        said += f" No Zipf law was fitted: {law['reason']}."
    else:
        said += f" A Zipf law fits best with exponent {law['exponent']:.2f} [{law['low']:.2f}, {law['high']:.2f}]."
    return Answer("distribution", "What is the distribution of the traffic?", said, dict(t))


def sorting(e: Evidence) -> Answer | None:
    """What one line of sorting captures."""
    if not e.main:
        return None
    found = win(e.main, *(slot_index(e.main, arm) for arm in ("scan", "scan-ordered", TABLE)), confidence=SURE)
    saved = e.less("scan", "scan-ordered")
    said = f"Sorting the list by frequency saves {wording.measured(saved)} ns a packet"
    if found.by_sorting.bounded and found.saved.low > 0:
        said += f": {wording.percent(found.by_sorting)} of what the table would save"
    said += "."
    return Answer("sorting", "What does sorting capture?", said, numbers(saved=saved, share_of_win=found.by_sorting))


def legal(e: Evidence) -> Answer:
    """Whether sorting changes an answer, with a packet that shows it."""
    question, w = "Is sorting legal?", e.facts["witness"]
    if not w:
        said = "Yes: every key with every first payload byte was sent through the list sorted and reversed; nothing changed hands."
        return Answer("legal", question, said, {"witness": None})
    said = (
        f"No: {w['pairs']} pairs of predicates overlap, so the order of the list is behaviour. Witness: key {w['key']} with first "
        f"payload byte {w['first_byte']} goes to handler {w['in_list_order']} in the list's order (answer "
        f"{w['answer_in_list_order']:08x}) and to handler {w['when_moved']} once {w['how']} (answer {w['answer_when_moved']:08x}); "
        f"{w['packets']} of {w['of']} kinds of packet change."
    )
    return Answer("legal", question, said, {"witness": dict(w)})


def table(e: Evidence) -> Answer | None:
    """What is left for the table after sorting."""
    if not e.main:
        return None
    left = e.less(e.simple, TABLE)
    kind = e.compared(TABLE, e.simple).kind
    part = 100 * left.value / e.budget
    said = f"Against {NAMES[e.simple]} the table saves {wording.measured(left)} ns a packet, {part:.1f} % of the budget"
    said += f"; it is {kind}." if kind != "unresolved" else "; the two are not told apart."
    return Answer("table", "What does the table add?", said, numbers(saved=left, verdict=kind))


def residual(e: Evidence) -> Answer:
    """How long the lists behind a key are, and what they cost."""
    lists = e.facts["lists"]
    question = "What do residual lists cost?"
    if not lists["handlers"]:
        return Answer("residual", question, "Nothing: no predicate asks for more than its key.", dict(lists))
    said = (
        f"{lists['handlers']} handlers ask for more than their key, up to {lists['longest']} behind one; "
        f"{100 * lists['share']:.1f} % of the packets meet such a list."
    )
    without = f"{TABLE} keys alone"
    if without not in e.labels:
        return Answer("residual", question, said, dict(lists))
    cost = e.less(TABLE, without)
    said += f" Against the same service without them the table takes {wording.measured(cost)} ns a packet more."
    return Answer("residual", question, said, {**lists, **numbers(cost=cost)})


def mechanism(e: Evidence) -> Answer | None:
    """What the way of calling is worth."""
    names = [f"{arm} keys alone" for arm in ("virtual", "erasure", "static")]
    if not set(names) <= e.labels:
        return None
    virtual = e.ns(names[0])
    erased, static = (e.less(names[0], other) for other in names[1:])
    best = max((erased, static), key=lambda d: d.value)
    said = (
        f"Of {wording.measured(virtual)} ns with a virtual call, type erasure saves {wording.measured(erased)}, and a closed set "
        f"that calls its bodies directly {wording.measured(static)}: {100 * best.value / e.budget:.1f} % of the budget at most."
    )
    return Answer("mechanism", "What is the mechanism's share?", said, numbers(virtual=virtual, by_erasure=erased, by_static=static))


def code(e: Evidence) -> Answer:
    """How much code the packets reach, against the instruction cache."""
    question, found = "How much code is reachable?", e.facts["code"]
    cache = (e.recording.environment.get("caches") or {}).get("L1i")
    if not found["handler_bytes"]:
        return Answer("code", question, "Not told here: the engine's symbols cannot be read.", dict(found))
    reached = found["reached"] * found["handler_bytes"]
    each = f"{found['reached']} handlers of about {found['handler_bytes']:.0f} B each"
    said = f"The packets reach {each}, {wording.size(int(reached))} in all"
    said += f": {reached / cache:.2f} of the {wording.size(cache)} L1i." if cache else "; the size of L1i is not told here."
    return Answer("code", question, said, {**found, "bytes": reached, "l1i": cache})


def tail(e: Evidence) -> Answer | None:
    """Shift and attack, in the mean and for one packet in a thousand."""
    if not e.daily:
        return None
    loop = max(e.days, key=lambda day: e.on_day(e.simple, day).value)
    bound = max(e.days, key=lambda day: e.on_day(TABLE, day).value)
    a, b = e.on_day(e.simple, loop), e.on_day(TABLE, bound)
    said = (
        f"At worst {NAMES[e.simple]} takes {wording.measured(a)} ns a packet (under {loop} traffic, p99.9 "
        f"{_slow(e, e.simple, loop)}), and the table {wording.measured(b)} ns ({bound}, p99.9 {_slow(e, TABLE, bound)})."
    )
    said += f" {_bound(e)}"
    given = {day: numbers(loop=e.on_day(e.simple, day), table=e.on_day(TABLE, day)) for day in e.days}
    return Answer("tail", "What happens under attack, and when the mix shifts?", said, given)


def _bound(e: Evidence) -> str:
    """Whether some day needs the table's bound, or why that is not known."""
    if reason := tail_reason(e):
        return f"{reason[0].upper()}{reason[1:]}."
    late = [day for day in e.days if e.on_day(e.simple, day).high > e.budget]
    if not late:
        return f"On every day {NAMES[e.simple]} stays within the budget in the mean."
    beyond = [day for day in late if e.on_day(TABLE, day).low > e.budget]
    if len(beyond) == len(late):
        return f"Beyond the budget on bad days are both ({', '.join(late)}): the table's bound does not save this rate on one core."
    return f"Whether the table stays within the budget where {NAMES[e.simple]} may not ({', '.join(late)}) is not resolved."


def _slow(e: Evidence, arm: str, day: str) -> str:
    found: Estimate | Refused = e.tails[arm, day].latency[P999]
    return f"refused: {found.needed} samples needed" if isinstance(found, Refused) else f"{wording.measured(found)} ns"


def grouped(e: Evidence) -> Answer | None:
    """What batches add, and what they ask for."""
    if not e.main or "batches" not in e.recording.extra:
        return None
    best = min(BATCH_ARMS, key=lambda arm: e.ns(arm).value)
    saved, kind = e.less(TABLE, best), e.compared(best, TABLE).kind
    size = int(best.rsplit("-", 1)[1])
    fill = (size - 1) / float(e.case["rate"]) * 1e9
    batches = e.recording.extra["batches"]
    waits = {q: quantile(batches["delays"][best], q) / batches["ticks_per_ns"] for q in (0.5, 0.99)}
    outcome = {
        "faster": f"saves {wording.measured(saved)} ns a packet against the table",
        "slower": f"costs {wording.measured(e.less(best, TABLE))} ns a packet more than the table",
    }.get(kind, f"and the table are not told apart (it saves {wording.measured(saved)} ns)")
    said = (
        f"The best of {', '.join(a.rsplit('-', 1)[1] for a in BATCH_ARMS)}, batches of {size}, {outcome}. The first packet of "
        f"a whole batch waits {fill / 1e3:.1f} µs for the last at this rate, and {waits[0.5]:.0f} ns (p99 {waits[0.99]:.0f}) from "
        "there to its result."
    )
    given = numbers(saved=saved, batch=size, fill_ns=fill, p50_ns=waits[0.5], p99_ns=waits[0.99], verdict=kind)
    return Answer("grouped", "What does grouping by handler add?", said, given)


def controls(e: Evidence) -> Answer | None:
    """Whether the measurement is to be believed."""
    if not e.main:
        return None
    twins = {m.name: twin_check(m) for m in e.recording.measurements}
    copied = e.compared("table-compact-copy", TABLE)
    floor = e.ns("null")
    parts = [f"{name}: a twin against itself {c.estimate.value:.4f}, {'ok' if c.ok else 'FAILED'}" for name, c in twins.items()]
    answers = "Every arm gave the same answers" if e.recording.ok else f"A CHECK FAILED: {e.recording.failures[0]}"
    said = (
        f"{'; '.join(parts)}. A copy of the table against it: {wording.ratio(copied.estimate)}, {copied.kind}. The loop around it "
        f"all takes {wording.measured(floor)} ns. {answers}."
    )
    given = numbers(copy=copied.estimate, copy_verdict=copied.kind, floor=floor, failures=list(e.recording.failures))
    given["twins_ok"] = {name: check.ok for name, check in twins.items()}
    return Answer("controls", "Did the measurement pass its own controls?", said, given)


ANSWERS: tuple[Callable[[Evidence], Answer | None], ...] = (
    budget, probes, distribution, sorting, legal, table, residual, mechanism, code, tail, grouped, controls,
)  # fmt: skip
