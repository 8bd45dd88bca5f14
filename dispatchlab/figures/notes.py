"""The small print below every figure: how sure, measured where, and whether the null control held."""

from __future__ import annotations

import re

from .. import wording
from ..recording import Measurement, Recording
from ..summary import CONFIDENCE
from ..verdicts import twin_check


def each(points: int) -> float:
    """Confidence of one of so many intervals that hold together with 95 % (Bonferroni)."""
    return 1 - (1 - CONFIDENCE) / max(points, 1)


def note(recording: Recording, measurements: list[Measurement], points: int) -> str:
    """One paragraph for the foot of a figure."""
    env = recording.environment
    l2 = (env.get("caches") or {}).get("L2")
    where = str(env.get("cpu_model") or "unknown CPU") + (f" with {wording.size(l2)} of L2" if l2 else "")
    where += f" under {env['hypervisor']}" if env.get("hypervisor") else ""
    rounds = [m.rounds for m in measurements]
    least, most = min(rounds), max(rounds)
    failed = [m.name for m in measurements if not twin_check(m).ok]
    twins = f"THE TWIN FAILED in {', '.join(failed)}: believe no difference" if failed else "twin ok"
    return (
        f"Intervals: 95 % for all {points} together ({wording.confidence(each(points))} each). "
        f"{least if least == most else f'{least} to {most}'} rounds of {measurements[0].block} packets, {twins}. "
        f"{where}; {re.sub(r' *[(].*?[)]', '', env.get('compiler') or 'unknown compiler')}; {recording.created[:10]}."
    )
