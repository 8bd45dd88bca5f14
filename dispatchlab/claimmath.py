"""The words in which claims.toml may say what is to be computed, and nothing else.

Each takes cells (slots of one measurement) and gives an estimate with its interval and its spread over code placements.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from . import summary
from .intervals import Estimate, Floats
from .recording import Measurement, Recording
from .scenes import PACKET_BYTES
from .shares import Weights, by_placement, share
from .verdicts import CODE


class Undecidable(Exception):
    """This machine or recording cannot decide the claim; the message says why."""


@dataclass(frozen=True)
class Cell:
    """A slot. beyond_last_cache: it was chosen as the largest pool and must exceed the last cache."""

    index: int
    beyond_last_cache: bool = False


@dataclass(frozen=True)
class Found:
    """spread: largest less smallest value over the code placements, in the unit of the estimate."""

    estimate: Estimate
    spread: float = 0.0


Indexes = tuple[int, ...]
Compute = Callable[[Measurement, Indexes, float], Found]
OfRecording = Callable[[Recording], Found]


@dataclass(frozen=True)
class Rule:
    """How many cells, what unit, and whether the result has an interval (else it is a count)."""

    cells: int
    unit: str
    uncertain: bool
    compute: Compute
    of_recording: OfRecording | None = None
    """Where it is not computed from cells, but from what the study found out without timing."""

    def run(self, recording: Recording, m: Measurement, cells: tuple[Cell, ...], confidence: float) -> Found:
        """The value over these cells. Undecidable when it cannot be told here."""
        if self.of_recording is not None:
            return self.of_recording(recording)
        last = last_cache(recording)
        for cell in cells:
            pool = m.slots[cell.index].pool * PACKET_BYTES
            if cell.beyond_last_cache and (last is None or pool <= last):
                raise Undecidable("no pool is larger than the last cache" if last else "the last cache's size is unknown")
        return self.compute(m, tuple(cell.index for cell in cells), confidence)


def last_cache(recording: Recording) -> int | None:
    """Bytes of the largest cache the environment knows of."""
    known = [size for size in (recording.environment.get("caches") or {}).values() if size]
    return max(known, default=None)


def _difference(m: Measurement, cells: Indexes, confidence: float) -> Found:
    a, b = cells
    weights = [(a, 1.0), (b, -1.0)]
    return Found(summary.contrast(m, weights, confidence=confidence), _range(by_placement(m, weights)))


def _ratio(m: Measurement, cells: Indexes, confidence: float) -> Found:
    a, b = cells
    e = summary.ratio(m, a, b, confidence=confidence)
    same = all(getattr(m.slots[a], name) == getattr(m.slots[b], name) for name in CODE)
    spread = 0.0 if same else e.value * math.expm1(summary.placement_spread(m, a, b))
    return Found(e, spread)


def _share(m: Measurement, cells: Indexes, confidence: float) -> Found:
    """(first - second) / (first - third)."""
    scan, ordered, table = cells
    return _quotient(m, [(scan, 1.0), (ordered, -1.0)], [(scan, 1.0), (table, -1.0)], confidence, "share")


def _per_probe_ratio(m: Measurement, cells: Indexes, confidence: float) -> Found:
    """((first - second) / probes of first) / ((third - fourth) / probes of third): 1 when a probe always costs the same."""
    a, b, c, d = cells
    p, q = (m.probes[m.slots[i].label] for i in (a, c))
    return _quotient(m, [(a, 1 / p), (b, -1 / p)], [(c, 1 / q), (d, -1 / q)], confidence, "ratio")


def _quotient(m: Measurement, part: Weights, whole: Weights, confidence: float, unit: str) -> Found:
    e = share(m, part, whole, confidence=confidence)
    if not math.isfinite(e.low):
        raise Undecidable("what it is a part of is not resolved from zero")
    spread = _range(by_placement(m, part) / by_placement(m, whole))
    return Found(Estimate(e.value, e.low, e.high, unit, e.n, confidence), spread)


def _second_difference(m: Measurement, cells: Indexes, confidence: float) -> Found:
    """(first - second) - (third - fourth)."""
    a, b, c, d = cells
    weights = [(a, 1.0), (b, -1.0), (c, -1.0), (d, 1.0)]
    return Found(summary.contrast(m, weights, confidence=confidence), _range(by_placement(m, weights)))


def _difference_ratio(m: Measurement, cells: Indexes, confidence: float) -> Found:
    """(first - second) / (third - fourth)."""
    a, b, c, d = cells
    return _quotient(m, [(a, 1.0), (b, -1.0)], [(c, 1.0), (d, -1.0)], confidence, "ratio")


def _body_share(recording: Recording) -> Found:
    """Bytes of handlers' bodies among all functions of the library."""
    text = recording.extra.get("text")
    if not text:
        raise Undecidable(str(recording.extra.get("text_missing") or "the study read no library"))
    functions = sum(text[part] for part in ("bodies", "predicates", "loops", "rest"))
    share = text["bodies"] / functions
    return Found(Estimate(share, share, share, "share", functions, 1.0))


def _mechanism_bytes_share(recording: Recording) -> Found:
    """How far the loops of open mechanisms differ in bytes, against the bodies of 100 fat chain handlers."""
    arms, code = recording.extra.get("arms"), recording.extra.get("code")
    if not arms or not code:
        raise Undecidable(str(recording.extra.get("text_missing") or "the study read no library"))
    sizes = [arms[arm] for arm in ("virtual", "erasure", "variant")]
    share = (max(sizes) - min(sizes)) / (100 * code["chain fat"]["bytes"])
    return Found(Estimate(share, share, share, "share", len(sizes), 1.0))


def _counted(m: Measurement, cells: Indexes, confidence: float) -> Found:
    return _exact(m.probes[m.slots[cells[0]].label], "probes", m)


def _enumerated(m: Measurement, cells: Indexes, confidence: float) -> Found:
    return _exact(m.expected_probes[m.slots[cells[0]].label], "probes", m)


def _miscounted(m: Measurement, cells: Indexes, confidence: float) -> Found:
    """How far counting and enumerating are apart."""
    label = m.slots[cells[0]].label
    return _exact(abs(m.probes[label] - m.expected_probes[label]), "probes", m)


def _footprint(m: Measurement, cells: Indexes, confidence: float) -> Found:
    return _exact(float(m.footprint[m.slots[cells[0]].label]), "bytes", m)


def _exact(value: float, unit: str, m: Measurement) -> Found:
    return Found(Estimate(value, value, value, unit, m.rounds, 1.0))


def _range(values: Floats) -> float:
    return float(np.ptp(values))


COMPUTE = {
    "difference": Rule(2, "ns/packet", True, _difference),
    "ratio": Rule(2, "ratio", True, _ratio),
    "share-of-win": Rule(3, "share", True, _share),
    "per-probe-ratio": Rule(4, "ratio", True, _per_probe_ratio),
    "second-difference": Rule(4, "ns/packet", True, _second_difference),
    "difference-ratio": Rule(4, "ratio", True, _difference_ratio),
    "body-share": Rule(1, "share", False, _counted, _body_share),
    "mechanism-bytes": Rule(1, "share", False, _counted, _mechanism_bytes_share),
    "probes": Rule(1, "probes", False, _counted),
    "enumerated-probes": Rule(1, "probes", False, _enumerated),
    "miscounted-probes": Rule(1, "probes", False, _miscounted),
    "footprint": Rule(1, "bytes", False, _footprint),
}
