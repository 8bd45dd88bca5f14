"""The tidy table of a sweep: one row for each combination and arm. Pure."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable
from typing import Any

from . import summary
from .recording import Recording

BASE = "table-compact"
COLUMNS = (
    "handlers",
    "traffic",
    "body",
    "residual",
    "arm",
    "ns",
    "low",
    "high",
    "ratio",
    "ratio_low",
    "ratio_high",
    "probes",
    "checksum",
    "rounds",
    "packets",
    "ok",
    "host",
)
"""ns per packet and the ratio to BASE, each with its own 95 % interval; empty where there is none."""

Row = dict[str, Any]


def rows(recording: Recording) -> list[Row]:
    """One for each arm of a recording of a sweep, the twin left out."""
    m, facts = recording.measurements[0], recording.extra["sweep"]
    base = next((i for i, slot in enumerate(m.slots) if slot.arm == BASE and slot.role != "twin"), None)
    found = []
    for index, slot in enumerate(m.slots):
        if slot.role == "twin":
            continue
        level = summary.ns(m, index)
        ratio = None if base is None else summary.ratio(m, index, base)
        found.append(
            {
                **facts["cell"],
                "arm": slot.arm,
                "ns": _number(level.value),
                "low": _number(level.low),
                "high": _number(level.high),
                "ratio": "" if ratio is None else _number(ratio.value),
                "ratio_low": "" if ratio is None else _number(ratio.low),
                "ratio_high": "" if ratio is None else _number(ratio.high),
                "probes": m.probes[slot.label],
                "checksum": m.checksums[slot.label],
                "rounds": m.rounds,
                "packets": m.block,
                "ok": recording.ok,
                "host": facts["host"],
            }
        )
    return found


def csv_bytes(recordings: Iterable[Recording]) -> bytes:
    """All rows as CSV, UTF-8, the columns' names first."""
    out = io.StringIO(newline="")
    writer = csv.DictWriter(out, COLUMNS, lineterminator="\n")
    writer.writeheader()
    for recording in recordings:
        writer.writerows(rows(recording))
    return out.getvalue().encode("utf-8", "backslashreplace")


def _number(value: float) -> float | str:
    return value if math.isfinite(value) else ""
