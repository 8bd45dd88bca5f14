"""The tables of study `python`: what a packet costs in Python and in the engine, and what follows for who does what. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import wording
from .intervals import Estimate
from .ladder import faster
from .prices import column, estimate
from .recording import Recording
from .summary import exp
from .tables import Table

WAYS = {"loop": "Python loop", "dict": "Python dict"}
ARMS = {"scan": "engine scan", "table-compact": "engine table"}
PAIRS = (("loop", "dict"), ("scan", "table-compact"), ("loop", "scan"), ("dict", "table-compact"), ("dict", "scan"))


def python_tables(recording: Recording) -> Iterator[Table]:
    """Costs, and ratios with the sentence that they decide; nothing when the recording has none."""
    facts = recording.extra.get("python")
    if not facts:
        return
    yield _costs(facts)
    yield _ratios(facts)


def _costs(facts: dict[str, Any]) -> Table:
    family = len(facts["sizes"]) * (len(WAYS) + len(ARMS))
    rows = []
    for size in facts["sizes"]:
        for name, says in {**WAYS, **ARMS}.items():
            e = level(column(facts, f"{name} {size}"), family)
            rows.append((size, says, wording.measured(e), rate(e.value), f"{100 * wording.budget_share(e.value):.3g} %"))
    notes = (
        "Loop: the list, each predicate asked in its order. Dict: from key to the handlers of that key. Engine table: table-compact.",
        f"{facts['python']}; {facts['handlers']} handlers, uniform traffic, {facts['packets']} packets a pass, "
        f"{len(facts['rounds'])} rounds; intervals: 95 % for all {family} together.",
        "All answers are the oracle's, handler by handler and packet by packet. No garbage is collected while Python is timed.",
        f"Budget: {wording.BUDGET_NS:.1f} ns, for {wording.RATE / 1e6:g} million packets per second.",
    )
    heads = ("bodies", "way", "ns/packet", "packets/s", "budget")
    return Table("python", "The same packets dispatched in Python and in the engine", heads, tuple(rows), notes)


def level(series: NDArray[np.float64], family: int) -> Estimate:
    """The middle of the rounds and its interval, found on the log scale: a time is above 0, and disturbances make it longer only."""
    e = estimate(np.log(series), family)
    return replace(e, value=math.exp(e.value), low=exp(e.low), high=exp(e.high))


def ratios(facts: dict[str, Any]) -> dict[tuple[str, str, str], Estimate]:
    """(size, a, b) -> time of a over that of b, paired by round, 95 % for all together."""
    family = len(facts["sizes"]) * len(PAIRS)
    return {
        (size, a, b): faster(column(facts, f"{a} {size}"), column(facts, f"{b} {size}"), family)
        for size in facts["sizes"]
        for a, b in PAIRS
    }


def _ratios(facts: dict[str, Any]) -> Table:
    found = ratios(facts)
    names = {**WAYS, **ARMS}
    rows = tuple((size, f"{names[a]} / {names[b]}", wording.ratio(e)) for (size, a, b), e in found.items())
    notes = (
        "Ratios of times, the mean of the logarithms, paired by round; 95 % for all of them together.",
        *(lesson(size, found) for size in facts["sizes"]),
        drives(facts),
    )
    return Table("python-ratios", "What the table wins, and what the language costs", ("bodies", "ratio", "x"), rows, notes)


def lesson(size: str, found: dict[tuple[str, str, str], Estimate]) -> str:
    """Whether the better way in Python comes up to the worse one in C."""
    won, gap, best = (found[size, a, b] for a, b in (("loop", "dict"), ("dict", "table-compact"), ("dict", "scan")))
    begins = f"{size} bodies: the dict wins {won.value:.3g} in Python"
    if not (won.bounded and won.low > 1):
        begins = f"{size} bodies: the dict is not seen to win in Python"
    if not (best.bounded and gap.bounded):
        return f"{begins}; how far Python is from C is not decided."
    if best.low > 1:
        slower = f"{best.value:.3g} times as long as the engine's scan, {gap.value:.3g} times as long as its table"
        return f"{begins}, and still takes {slower}."
    if best.high < 1:
        return f"{begins}, and beats the engine's scan; the engine's table is {gap.value:.3g} times as fast."
    return f"{begins}, and comes up to the engine's scan; the engine's table is {gap.value:.3g} times as fast."


def drives(facts: dict[str, Any]) -> str:
    """Why Python drives and C dispatches, or that the numbers do not say so: by the call, the pass and the budget."""
    call = estimate(column(facts, "call"), 1).value
    table = min(estimate(column(facts, f"table-compact {s}"), 1).value for s in facts["sizes"])
    least = min(estimate(column(facts, f"dict {s}"), 1).value for s in facts["sizes"])
    spread = call / facts["packets"]
    says = (
        f"One call from Python into the engine takes {call:.3g} ns: made once for {facts['packets']} packets it adds "
        f"{100 * spread / table:.2g} % to a packet of the table, made for every packet {100 * call / table:.3g} %."
    )
    if least > wording.BUDGET_NS and spread < 0.01 * table:
        budgets = least / wording.BUDGET_NS
        return f"{says} A packet in Python alone takes {budgets:.3g} budgets at best. So Python drives, and C dispatches."
    if spread < 0.01 * table < 0.1 * least:
        return f"{says} Python would meet the budget for the smallest bodies, {least / table:.3g} times as slow as C."
    return f"{says} Here that does not decide who should dispatch."


def rate(ns: float) -> str:
    """Packets per second of one core: "14.2 M", "310 k"."""
    per_second = 1e9 / ns
    return f"{per_second / 1e6:.3g} M" if per_second >= 1e6 else f"{per_second / 1e3:.3g} k"
