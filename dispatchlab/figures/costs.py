"""Figures of study `costs`: latency against working set, and the price of a call against the number of targets."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from .. import wording
from ..prices import Analysis, analysed, column, estimate, grid, points
from ..recording import Recording
from .parts import reach
from .style import FAINT, INK, PAPER, frame, plain_log

COLOURS = {"huge": "#0072B2", "small": "#D55E00"}
NAMES = {"huge": "huge pages asked for", "small": "pages of the usual size"}


def has_costs(recording: Recording) -> bool:
    """Whether it is a price list."""
    return bool(recording.extra.get("costs"))


def _note(found: Analysis, family: int) -> str:
    env = found.recording.environment
    rounds = len(found.facts["rounds"])
    where = f"{env.get('cpu_model') or 'unknown CPU'}; {found.recording.created[:10]}."
    return f"Intervals: 95 % for all {family} together, {rounds} rounds. {where}"


def _line(axes: Axes, x: list[float], columns: list[NDArray[np.float64]], family: int, colour: str, marker: str, label: str) -> None:
    values = [estimate(c, family) for c in columns]
    whiskers = np.array([reach(e) for e in values]).T
    level = [e.value for e in values]
    axes.errorbar(x, level, yerr=whiskers, label=label, color=colour, marker=marker, markeredgecolor=PAPER, markersize=5)


def latency(recording: Recording) -> Figure:
    """ns per dependent load by bytes touched, with the sizes reported and the steps found."""
    found = analysed(recording)
    curves = {kind: grid(found.facts, f"chase {kind} ") for kind in COLOURS}
    family = sum(x.size for x, _ in curves.values())
    steps = ", ".join(wording.size(float(c.value)) for c in found.memory.capacities)
    title = f"A load takes {found.price('load from L1d').value:.2g} to {found.price('load from DRAM').value:.3g} ns; steps at {steps}"
    figure, axes = frame(4.4, title, _note(found, family), aside="dashed: what the kernel reports; dotted: the step found")
    for (kind, (x, ns)), marker in zip(curves.items(), "os", strict=True):
        _line(axes, list(x), list(ns.T), family, COLOURS[kind], marker, NAMES[kind])
    top = max(float(np.median(ns, axis=0).max()) for _, ns in curves.values()) * 1.6
    for name, size in found.reported.items():
        if size:
            axes.axvline(size, color=INK, linestyle="--", linewidth=1)
            axes.text(size, top, f" {name}", va="top", ha="left", size=9)
    for step in found.memory.capacities:
        axes.axvline(step.value, color=FAINT, linestyle=":", linewidth=1.4)
    ticks = [float(4096 * 4**k) for k in range(9) if 4096 * 4**k <= curves["huge"][0][-1] * 1.5]
    plain_log(axes, "x", ticks, [wording.size(t) for t in ticks])
    plain_log(axes, "y", [1, 3, 10, 30, 100, 300], ["1", "3", "10", "30", "100", "300"])
    axes.set_ylim(0.7, top * 1.05)
    axes.set_xlabel("bytes touched in a random cycle, a line of 64 bytes each (log scale)")
    axes.set_ylabel("ns per load (log scale)")
    axes.legend(loc="center left")
    return figure


def targets(recording: Recording) -> Figure:
    """ns more than the same work inline, by the number of targets, in turn and at random."""
    found = analysed(recording)
    many = points(found.facts, "call 1 ")
    family = 2 * len(many)
    n = found.gives_out()
    miss = found.price("indirect call, mispredicted").value
    title = f"A mispredicted indirect call costs {miss:.2g} ns; calls in turn are " + (
        "foreseen up to 1024 targets" if n is None else f"not foreseen from {n} on"
    )
    figure, axes = frame(3.8, title, _note(found, family), aside="one call site; more than the same work without a call")
    inline = column(found.facts, "call 0 1")
    for kind, label, colour, marker in ((1, "targets in turn", "#0072B2", "o"), (2, "targets at random", "#D55E00", "s")):
        columns = [column(found.facts, f"call {kind} {x}") - inline for x in many]
        _line(axes, [float(x) for x in many], columns, family, colour, marker, label)
    ticks = [float(2**k) for k in range(0, 11, 2)]
    plain_log(axes, "x", ticks, [f"{t:g}" for t in ticks])
    axes.set_ylim(bottom=min(0.0, axes.get_ylim()[0]))
    axes.set_xlabel("targets of one call (log scale)")
    axes.set_ylabel("ns per call")
    axes.legend()
    return figure
