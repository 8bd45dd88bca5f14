"""What the instrument study found out about the measuring itself, in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from . import summary, wording
from .recording import Recording
from .scenes import Scene, each_scene

SETTLED = 0.02
WINDOW = 5
"""Settled: from where on the running median over so many blocks stays within SETTLED of the last quarter's median, or
within what it wanders in that quarter where that is more."""


def floor_scene(recording: Recording) -> Scene | None:
    """The first scene that ran the empty loop with both checksums."""
    return next((s for s in each_scene(recording) if s.has("null", "null-serial")), None)


def instrument_lines(recording: Recording) -> Iterator[str]:
    """Clock, loop floor, warm-up and distinct bodies; nothing when the recording does not know."""
    facts: Mapping[str, Any] = recording.extra.get("instrument") or {}
    if clock := facts.get("clock"):
        rate = clock["ticks_per_ns"]
        yield (
            f"clock      {clock['source']}: a tick is {1 / rate:.3g} ns, reading it takes {clock['cost'] / rate:.3g} ns; "
            "a block is timed as a whole"
        )
    if scene := floor_scene(recording):
        m, null, serial = scene.measurement, scene.arms["null"], scene.arms["null-serial"]
        floor = wording.measured(summary.ns(m, null))
        yield (
            f"loop floor {floor} ns/packet, {wording.ratio(summary.ratio(m, null, serial))} of a loop with a serial FNV-1a "
            f"({wording.measured(summary.ns(m, serial))} ns/packet)"
        )
    if curve := facts.get("warm_up_ns"):
        blocks = settled_after(curve)
        times = curve[0] / float(np.median(curve[-len(curve) // 4 :]))
        yield f"warm-up    the first block took {times:.2f} times as long as later ones; settled after {blocks} blocks"
    yield from counter_lines(facts.get("counters") or {})
    for row in facts.get("bodies", ()):
        verdict = "as documented" if row["as_documented"] else "NOT what is documented"
        yield (
            f"bodies     {row['body']} {row['size']}: {row['distinct']} different answers from {row['handlers']} handlers, "
            f"{verdict}"
        )


def counter_lines(counters: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """What could be counted, and for what could not, why: one line for each reason."""
    seen = [f"{name} {c['per_packet']:.3g}" for name, c in counters.items() if c["per_packet"] is not None]
    if seen:
        yield f"counters   of table-compact, per packet: {', '.join(seen)}"
    reasons: dict[str, list[str]] = {}
    for name, c in counters.items():
        if c["per_packet"] is None:
            reasons.setdefault(c["reason"], []).append(name)
    for reason, names in reasons.items():
        yield f"counters   not available here: {', '.join(names)}: {reason}"


def settled_after(curve: list[float]) -> int:
    """Blocks before the cost of one has settled; all of them when there are too few to tell."""
    series = np.asarray(curve, np.float64)
    quarter = len(series) // 4
    if quarter < WINDOW:
        return len(series)
    smooth = np.median(np.lib.stride_tricks.sliding_window_view(series, WINDOW), axis=1)
    away = np.abs(smooth / np.median(series[-quarter:]) - 1)
    beyond = np.flatnonzero(away > max(SETTLED, away[-(quarter - WINDOW + 1) :].max()))
    return int(beyond[-1]) + WINDOW // 2 + 1 if beyond.size else 0
