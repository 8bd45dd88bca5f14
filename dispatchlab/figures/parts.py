"""Parts that several figures share: lines with intervals, and how a comparison is put in words."""

from __future__ import annotations

import math

import numpy as np
from matplotlib.axes import Axes

from ..intervals import Estimate
from .style import COLOURS, MARKERS, PAPER


def times(what: str, kind: str, e: Estimate, than: str) -> str:
    """A verdict (its kind, its ratio) as a sentence."""
    if kind == "unresolved":
        return f"{what} and {than} are not told apart"
    if kind == "equal":
        return f"{what} and {than} are equally fast"
    return f"{what} takes {e.value:.3g} times as long as {than}"


def factor(ratio: float) -> str:
    """A resolved ratio of times as "1.4 times slower"."""
    return f"{ratio:.3g} times slower" if ratio > 1 else f"{1 / ratio:.3g} times faster"


def line(axes: Axes, arm: str, x: list[float], values: list[Estimate]) -> None:
    """An arm's values with their intervals, in its colour and marker."""
    level = np.array([e.value for e in values])
    whiskers = np.array([reach(e) for e in values]).T
    axes.errorbar(x, level, yerr=whiskers, label=arm, color=COLOURS[arm], marker=MARKERS[arm], markeredgecolor=PAPER)


def reach(e: Estimate) -> tuple[float, float]:
    """How far the interval goes down and up; nothing is drawn where there is none."""
    if not (math.isfinite(e.low) and e.bounded):
        return 0.0, 0.0
    return max(e.value - e.low, 0.0), max(e.high - e.value, 0.0)
