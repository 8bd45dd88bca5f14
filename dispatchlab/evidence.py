"""Tables out of what is stored beside recordings: how often the machine was wrong (`calibrate`), and what other tools resolve
(tests/bench/resolution.py). Reads documents only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .tables import Table


def calibration_table(document: Mapping[str, Any]) -> Table:
    """One row per injected difference and measuring time, out of a stored calibration."""
    found = document["calibration"]
    rows = tuple(
        (
            "none (A/A)" if o["effect"] == 0 else f"+{100 * o['effect']:g} %",
            f"{o['seconds']:g} s",
            str(o["different"]["trials"]),
            _percent(o["different"]),
            _percent(o["covered"]),
            _small(o["half_width"]),
            _small(o["spread"]),
        )
        for o in found["outcomes"]
    )
    heads = ("difference", "measured", "comparisons", "called different", "interval holds it", "half-width", "spread")
    copies, coverage = found["copies"], found["coverage"]
    notes = (
        f"Coverage of the {100 * found['confidence']:g} % interval over all {coverage['trials']}: {_percent(coverage)}.",
        f"The same source compiled twice: called different in {_percent(copies)} of {copies['trials']}.",
        "In brackets: exact binomial 95 % intervals of the rates themselves.",
        f"{document['environment'].get('cpu_model') or 'unknown CPU'}; {document['created'][:10]}.",
    )
    return Table("calibration", "table-compact, 100 handlers, against itself and against itself slowed", heads, rows, notes)


def resolution_table(document: Mapping[str, Any]) -> Table:
    """One row per tool that timed one function against itself, out of a stored benchmark of the tools."""
    rows = document["resolution"]
    ours = rows[0]["spread"]
    body = tuple(
        (
            r["tool"],
            str(r["comparisons"]),
            f"{r['seconds']:.2f} s",
            f"{100 * r['spread']:.3f} % [{100 * r['low']:.3f}, {100 * r['high']:.3f}]",
            f"{r['spread'] / ours:.1f}x",
        )
        for r in rows
    )
    heads = ("tool", "comparisons", "measured for each", "spread in a second", "against ours")
    notes = (
        f"The best of the others scatters {document['times']:.1f} times as much as ours.",
        "Spread: root mean square of the log-ratio, whose truth is 0, scaled to one second; in brackets its 95 % interval.",
        f"{document['environment'].get('cpu_model') or 'unknown CPU'}; {document['created'][:10]}.",
    )
    return Table("resolution", "One function against itself: what each tool makes of no difference", heads, body, notes)


def _percent(rate: Mapping[str, Any]) -> str:
    if rate["value"] is None:
        return "not tried"
    return f"{100 * rate['value']:.1f} % [{100 * rate['low']:.1f}, {100 * rate['high']:.1f}]"


def _small(share: float | None) -> str:
    return "none" if share is None else f"{100 * share:.3f} %"
