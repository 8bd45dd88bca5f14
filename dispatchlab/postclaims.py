"""The findings of two posts about a ring buffer and a spin-lock, tested on what the labs recorded, mode by mode. Pure.

Sources: "Optimizing a Lock-Free Ring Buffer" (Intel Core Ultra 5 135U) and "Optimizing a Spin-Lock" (AMD Ryzen 7 PRO 8700GE).
Shapes are tested and not another machine's numbers: the range says what counts as the same finding.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from .claimmath import Found
from .claims import judge
from .intervals import Refused
from .labs import Group, groups, quotient
from .recording import Recording
from .tables import Table

CAPACITY = 1024
LARGE = 65536


@dataclass(frozen=True)
class Finding:
    """The ratio of two cells; `lab` "ring": items per second, "lock": time per acquisition."""

    lab: str
    says: str
    published: str
    over: tuple[Any, ...]
    under: tuple[Any, ...]
    at_least: float = -math.inf
    at_most: float = math.inf


def _ring(version: str, capacity: int = CAPACITY) -> tuple[Any, ...]:
    return (version, capacity)


def _lock(version: str, threads: int) -> tuple[Any, ...]:
    return (version, threads, 0, False)


FINDINGS = (
    Finding("ring", "Without the mutex (v3) at least twice as many items as with it (v2)", "2.9", _ring("v3"), _ring("v2"), 2.0),
    Finding("ring", "Acquire and release (v4) at least double sequential consistency (v3)", "3.1", _ring("v4"), _ring("v3"), 2.0),
    Finding("ring", "Remembering the other's index (v5) at least doubles v4", "2.8", _ring("v5"), _ring("v4"), 2.0),
    Finding("ring", "v5 moves at least ten times as many items as the mutex", "25", _ring("v5"), _ring("v2"), 10.0),
    Finding("ring", "Past the post: runs in place (v9) are at least 1.3 times v5", "not published", _ring("v9"), _ring("v5"), 1.3),
    Finding("ring", "The same in a ring of 65536", "not published", _ring("v9", LARGE), _ring("v5", LARGE), 1.3),
    Finding("lock", "One thread: exchange (v1) is faster than the mutex (v0)", "0.74", _lock("v1", 1), _lock("v0", 1), at_most=1.0),
    Finding("lock", "Two threads: exchange (v1) is slower than the mutex (v0)", "1.9", _lock("v1", 2), _lock("v0", 2), 1.0),
    Finding("lock", "Two threads: backoff with looking first (v2) at least halves v1's time, within a tenth", "0.47",
            _lock("v2", 2), _lock("v1", 2), at_most=0.55),
    Finding("lock", "Two threads: exponential backoff (v4) at least halves the mutex's time", "0.30",
            _lock("v4", 2), _lock("v0", 2), at_most=0.5),
    Finding("lock", "Exponential backoff (v4): two threads take at most 1.5 times one thread's time", "1.3",
            _lock("v4", 2), _lock("v4", 1), at_most=1.5),
    Finding("lock", "Past the post: the hybrid (v7) takes at most 1.25 times its one thread's time", "not published",
            _lock("v7", 2), _lock("v7", 1), at_most=1.25),
)  # fmt: skip


def post_tables(recording: Recording) -> Iterator[Table]:
    """One table for each lab that the recording holds."""
    for lab, keys, value in (
        ("ring", ("version", "capacity"), "million_per_s"),
        ("lock", ("version", "threads", "hold_ns", "oversubscribed"), "ns_per_acquisition"),
    ):
        if lab in recording.extra:
            yield _table(lab, groups(recording.extra[lab]["rounds"], keys, value))


def _table(lab: str, found: list[Group]) -> Table:
    by = {(g.key, g.mode): g for g in found}
    pairs = [
        (f, mode, by[f.over, mode], by[f.under, mode])
        for f in FINDINGS
        for mode in ("near", "far", "one")
        if f.lab == lab and (f.over, mode) in by and (f.under, mode) in by
    ]
    rows = []
    for f, mode, over, under in pairs:
        e = quotient(over, under, len(pairs))
        if isinstance(e, Refused):
            rows.append((f.says, f.published, mode, "", f"unresolved: {e.needed} rounds needed"))
            continue
        answer, reason = judge(Found(e), f.at_least, f.at_most)
        shown = f"{e.value:.2f} [{e.low:.2f}, {e.high:.2f}]"
        rows.append((f.says, f.published, mode, shown, f"{answer}: {reason}" if answer == "unresolved" else answer))
    what = {"ring": f"items per second, capacity {CAPACITY} where no other is said", "lock": "times"}[lab]
    notes = (f"Ratios of {what}, paired by round; intervals 95 % for all of the table together.",)
    heads = ("finding", "published", "mode", "here", "answer")
    return Table(f"{lab}-findings", f"Findings about the {lab}, tested here", heads, tuple(rows), notes)
