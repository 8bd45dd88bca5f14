"""Published findings as hypotheses: does a recording bear them out, contradict them, or not decide?

data/claims.toml holds them. Each names the cells it is about by fields of Slot, what is computed from them (the words of
COMPUTE and nothing else), and the range in which it counts as borne out. The answer is

    holds               the whole interval lies inside the range
    does not hold here  the whole interval lies outside
    unresolved          anything else: the interval crosses an end of the range, the estimate lies closer to that end than the
                        code placements lie apart, the twin failed, or the machine cannot decide it

The confidence of all intervals together is 95 % (Bonferroni over the claims that were tested). Counts have no interval.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any, Literal

from . import wording
from .claimmath import COMPUTE, Cell, Found, Undecidable
from .data import data_folder
from .errors import Error, explain
from .intervals import Estimate
from .recording import Measurement, Recording
from .scenes import AXES
from .summary import CONFIDENCE
from .tables import Table
from .verdicts import twin_check

Answer = Literal["holds", "does not hold here", "unresolved"]
SELECTORS = {"arm", *AXES}


@dataclass(frozen=True)
class Claim:
    """One published finding. `cells` go to COMPUTE[compute] in order."""

    id: str
    source: str
    says: str
    published: str
    measurement: str
    compute: str
    cells: tuple[Mapping[str, Any], ...]
    at_least: float = -math.inf
    at_most: float = math.inf
    because: str = ""  # what is known to make machines differ


@dataclass(frozen=True)
class Tested:
    """A claim and what a recording says about it."""

    claim: Claim
    answer: Answer
    reason: str
    estimate: Estimate


def load_claims(path: Path | None = None) -> tuple[Claim, ...]:
    """The claims of a file, the package's own unless given. Error, one line, for what cannot be meant."""
    return _load(path or data_folder() / "claims.toml")


def evaluate(recording: Recording, claims: Sequence[Claim] | None = None) -> list[Tested]:
    """Every claim whose cells the recording holds; the others are left out."""
    found = [
        (claim, m, cells)
        for claim in (load_claims() if claims is None else claims)
        for m in recording.measurements
        if m.name == claim.measurement and (cells := _cells(m, claim)) is not None
    ]
    each = 1 - (1 - CONFIDENCE) / max(sum(COMPUTE[claim.compute].uncertain for claim, _, _ in found), 1)
    return [_test(recording, claim, m, cells, each) for claim, m, cells in found]


def claims_table(recording: Recording) -> Table | None:
    """The tested claims as a table; None when the recording holds cells for none."""
    claims = load_claims()
    tested = evaluate(recording, claims)
    if not tested:
        return None
    each = min(t.estimate.confidence for t in tested)
    rows = tuple((t.claim.says, t.claim.published, value(t.estimate), _range(t.claim), _verdict(t)) for t in tested)
    counts = ", ".join(
        f"{n} {answer}"
        for answer in ("holds", "does not hold here", "unresolved")
        if (n := sum(t.answer == answer for t in tested))
    )
    notes = (
        f"{counts}; {len(claims) - len(tested)} claims are about what this recording did not measure.",
        f"Intervals: 95 % for all measured claims together ({wording.confidence(each)} each, Bonferroni); counts are exact.",
        *(f"{t.claim.id}: {t.claim.because}" for t in tested if t.answer == "does not hold here" and t.claim.because),
    )
    heads = ("finding", "published", "here", "holds if", "answer")
    return Table("claims", "Published findings, tested here", heads, rows, notes)


def value(e: Estimate) -> str:
    """An estimate in the way its unit is read."""
    if e.low == e.high:
        return wording.size(e.value) if e.unit == "bytes" else f"{e.value:.4g} {e.unit}".strip()
    if e.unit == "share":
        return wording.percent(e)
    if e.unit == "ratio":
        return wording.ratio(e)
    return f"{wording.measured(e)} {e.unit}"


def _verdict(t: Tested) -> str:
    return f"unresolved: {t.reason}" if t.answer == "unresolved" else t.answer


def _range(claim: Claim) -> str:
    """The range in words, in the unit of what is computed."""
    unit = COMPUTE[claim.compute].unit

    def end(x: float) -> str:
        if unit == "bytes":
            return wording.size(x)
        return f"{100 * x:g} %" if unit == "share" else f"{x:g}"

    if claim.at_least == claim.at_most:
        return end(claim.at_least)
    if math.isinf(claim.at_least):
        return f"at most {end(claim.at_most)}"
    if math.isinf(claim.at_most):
        return f"at least {end(claim.at_least)}"
    return f"{end(claim.at_least)} to {end(claim.at_most)}"


def _test(recording: Recording, claim: Claim, m: Measurement, cells: tuple[Cell, ...], each: float) -> Tested:
    rule = COMPUTE[claim.compute]
    try:
        found = rule.run(recording, m, cells, each)
    except Undecidable as error:
        nothing = Estimate(math.nan, -math.inf, math.inf, rule.unit, m.rounds, each)
        return Tested(claim, "unresolved", str(error), nothing)
    check = twin_check(m) if rule.uncertain else None
    if check is not None and not check.ok:
        why = "the twin of the reference differs from it" if check.resolved else "the twin was not measured"
        return Tested(claim, "unresolved", why, found.estimate)
    answer, reason = judge(found, claim.at_least, claim.at_most)
    return Tested(claim, answer, reason, found.estimate)


def judge(found: Found, at_least: float, at_most: float) -> tuple[Answer, str]:
    """The answer for an estimate and the reason, by the rule at the top of this file."""
    e = found.estimate
    if math.isnan(e.value):
        return "unresolved", "nothing to compute it from"
    inside = at_least <= e.low and e.high <= at_most
    if not inside and e.low <= at_most and e.high >= at_least:
        return "unresolved", "the interval crosses the end of the range"
    nearest = min(abs(e.value - end) for end in (at_least, at_most) if math.isfinite(end))
    if e.low < e.high and nearest <= found.spread:
        return "unresolved", "code placements differ by more than what is to be told"
    return ("holds", "the interval lies inside") if inside else ("does not hold here", "the interval lies outside")


def _cells(m: Measurement, claim: Claim) -> tuple[Cell, ...] | None:
    """The slot that each selector means; None when one of them means none or several."""
    found = []
    for selector in claim.cells:
        wanted = {key: want for key, want in selector.items() if want != "beyond-last-cache"}
        fitting = [
            i
            for i, slot in enumerate(m.slots)
            if slot.role != "twin" and all(getattr(slot, key) == want for key, want in wanted.items())
        ]
        if len(wanted) < len(selector) and fitting:
            fitting = [max(fitting, key=lambda i: m.slots[i].pool)]
        if len(fitting) != 1:
            return None
        found.append(Cell(fitting[0], beyond_last_cache=len(wanted) < len(selector)))
    return tuple(found)


@cache
def _load(path: Path) -> tuple[Claim, ...]:
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise Error(explain("claims cannot be read", path.name, got=error.strerror or str(error))) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise Error(explain("claims are not TOML", path.name, got=str(error))) from error
    claims = tuple(_claim(entry, f"{path.name}, claim {n}") for n, entry in enumerate(document.get("claim", []), 1))
    names = [claim.id for claim in claims]
    if twice := {name for name in names if names.count(name) > 1}:
        raise Error(explain("two claims of one id", path.name, got=", ".join(sorted(twice))))
    return claims


def _claim(entry: Mapping[str, Any], where: str) -> Claim:
    known = {f.name for f in fields(Claim)}
    needed = known - {"at_least", "at_most", "because"}
    if unknown := sorted(set(entry) - known):
        raise Error(explain("no such entry of a claim", where, ", ".join(sorted(known)), ", ".join(unknown)))
    if missing := sorted(needed - set(entry)):
        raise Error(explain("a claim is not whole", where, got=f"no {', '.join(missing)}"))
    claim = Claim(**{**entry, "cells": tuple(entry["cells"])})
    rule = COMPUTE.get(claim.compute)
    if rule is None:
        raise Error(explain("nothing computes that", where, ", ".join(COMPUTE), claim.compute))
    if len(claim.cells) != rule.cells:
        raise Error(explain(f"wrong number of cells for {claim.compute}", where, str(rule.cells), str(len(claim.cells))))
    for cell in claim.cells:
        if unknown := sorted(set(cell) - SELECTORS):
            raise Error(explain("no such field of a slot", where, ", ".join(sorted(SELECTORS)), ", ".join(unknown)))
    if (math.isinf(claim.at_least) and math.isinf(claim.at_most)) or not claim.at_least <= claim.at_most:
        raise Error(explain("a claim that nothing can contradict", where, "at_least, at_most, or both in that order"))
    return claim
