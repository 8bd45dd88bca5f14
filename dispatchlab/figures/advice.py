"""Figures of advice: what every arm takes of the budget, what bad days do, and how the traffic falls on the handlers."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from .. import wording
from ..advise.evidence import BATCH_ARMS, SURE, Evidence
from ..advise.verdict import NAMES, TABLE, decide
from ..recording import Recording
from ..summary import ns
from .notes import note
from .parts import reach
from .style import COLOURS, FAINT, INK, PAPER, frame

SHOWN = ("scan", "scan-ordered", "scan-simd", "cache-last-scan", "top-n", TABLE, *BATCH_ARMS)
BATCH_COLOUR, OTHER = "#009E73", "#CC79A7"


def has_advice(recording: Recording) -> bool:
    """A recording of `advise` with its measurement in it."""
    return "advise" in recording.extra and any(m.name == "advise" for m in recording.measurements)


def costs(recording: Recording) -> Figure:
    """ns/packet of every arm under the service's own traffic, and the table's on its worst day, against the budget."""
    e = Evidence(recording)
    assert e.main is not None, "draw asks has_advice first"
    arms = [arm for arm in SHOWN if arm in e.labels]
    verdict = decide(e)
    figure, axes = frame(
        0.36 * len(arms) + 0.8,
        verdict.sentence[0].upper() + verdict.sentence[1:],
        note(recording, [e.main], round(0.05 / (1 - SURE))),
        aside=f"{e.traffic} traffic; the number at the right is the part of the {e.budget:.0f} ns that a packet has",
    )
    for row, arm in enumerate(arms):
        found = ns(e.main, arm, confidence=SURE)
        down, up = reach(found)
        colour = COLOURS.get(arm, BATCH_COLOUR if arm in BATCH_ARMS else OTHER)
        axes.barh(row, found.value, 0.62, color=colour, xerr=[[down], [up]], ecolor=INK, error_kw={"linewidth": 1.4})
        label = f"{wording.measured(found)} ns, {100 * found.value / e.budget:.0f} %"
        axes.annotate(label, (found.value + up, row), (5, 0), textcoords="offset points", va="center", size=8.5)
    floor = ns(e.main, "null", confidence=SURE).value
    axes.axvline(floor, color=FAINT, linewidth=1.2, linestyle=(0, (3, 2)))
    axes.annotate("loop alone", (floor, -0.75), (3, 0), textcoords="offset points", size=8, color=FAINT, va="center")
    axes.set_yticks(range(len(arms)), arms)
    axes.set_ylim(len(arms) - 0.4, -1.1)
    axes.margins(x=0.25)
    axes.set_xlim(left=0)
    axes.set_xlabel("ns per packet, handler included")
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="y", visible=False)
    return figure


def traffic(recording: Recording) -> Figure:
    """Left: the share of every handler in the list's order; right: probes per packet of the loop, sorted loop and table."""
    e = Evidence(recording)
    assert e.main is not None, "draw asks has_advice first"
    found = e.facts["traffic"]
    title = (
        f"{found['keys']} handlers get packets, as spread as {found['effective']:.1f} equally busy ones; the loop asks "
        f"{e.facts['probes']['scan']['mean']:.1f} predicates a packet, sorted {e.facts['probes']['scan-ordered']['mean']:.1f}"
    )
    foot = f"Exact: every packet of the pool of {e.main.slots[0].pool} was counted. {recording.created[:10]}."
    figure, (left, right) = frame(3.0, title, foot, ncols=2)
    counts = np.array(e.facts["registered"], np.float64)
    left.bar(np.arange(1, len(counts) + 1), 100 * counts / max(counts.sum(), 1), 1.0, color=COLOURS["scan"])
    left.set_xlabel("place in the handler list")
    left.set_ylabel("share of matched packets, %")
    _steps(right, e)
    return figure


def _steps(axes: Axes, e: Evidence) -> None:
    for arm in ("scan", "scan-ordered", TABLE):
        probes, packets = np.array(e.facts["probes"][arm]["histogram"], np.float64).T
        reached = 100 * np.cumsum(packets) / packets.sum()
        axes.step([-1, *probes], [0, *reached], where="post", color=COLOURS[arm], label=NAMES[arm])
    axes.set_xlabel("predicates asked, at most")
    axes.set_ylabel("of the packets, %")
    axes.set_xlim(left=-1)
    axes.legend(fontsize=8.5, loc="lower right", frameon=True, facecolor=PAPER, edgecolor="none")
