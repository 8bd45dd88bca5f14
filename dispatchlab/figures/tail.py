"""Figure `tail`: the table's bound against the sorted list's worst case, packet by packet."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ..intervals import Refused
from ..recording import Recording
from ..tails import Tail, tails
from .notes import note
from .parts import reach
from .style import COLOURS, FAINT, INK, PAPER, frame

ARMS = ("scan", "scan-ordered", "table-compact")
P50, P99_9 = 0, 3


def has_tails(recording: Recording) -> bool:
    """A recording of the study `tail`."""
    return bool(recording.extra.get("tail")) and any(m.name == "tail" for m in recording.measurements)


def tail(recording: Recording) -> Figure:
    """Two panels, a row for each traffic: probes from the median to the slowest packet, and latency at p50 and p99.9."""
    found = tails(recording)
    traffics = list(dict.fromkeys(t.slot.traffic for t in found))
    m = next(m for m in recording.measurements if m.name == "tail")
    figure, (left, right) = frame(
        0.72 * len(traffics) + 0.75,
        _title(found),
        note(recording, [m], 5 * len(found)),
        aside=f"sorted for {traffics[0]}; open mark: half of the packets stay below; filled: the slowest, or one in a thousand",
        ncols=2,
        sharey=True,
    )
    for row, traffic in enumerate(traffics):
        for place, arm in enumerate(ARMS):
            t = next(t for t in found if (t.slot.traffic, t.slot.arm) == (traffic, arm))
            y = row + (place - 1) * 0.24
            _probes(left, t, y)
            _latency(right, t, y)
    for place, arm in enumerate(ARMS):
        left.plot([], [], "o-", color=COLOURS[arm], label=arm, zorder=-place)
    left.set_yticks(range(len(traffics)), traffics)
    left.set_ylim(len(traffics) - 0.5, -0.5)
    left.set_xlim(left=-3)
    left.set_xlabel("probes per packet: median and maximum")
    right.set_xlabel("ns per dispatch (log scale): p50 and p99.9")
    right.set_xscale("log")
    handles, labels = left.get_legend_handles_labels()
    right.legend(handles, labels, loc="upper left", fontsize=8.5, frameon=True, facecolor=PAPER, edgecolor="none")
    for axes in (left, right):
        axes.tick_params(axis="y", length=0)
        axes.grid(axis="y", visible=False)
        for row in range(1, len(traffics)):
            axes.axhline(row - 0.5, color=FAINT, linewidth=0.4)
    return figure


def _probes(axes: Axes, t: Tail, y: float) -> None:
    colour = COLOURS[t.slot.arm]
    axes.plot([t.probes[P50], t.probes[-1]], [y, y], color=colour, linewidth=1.4)
    axes.plot(t.probes[P50], y, "o", markerfacecolor=PAPER, markeredgecolor=colour)
    axes.plot(t.probes[-1], y, "o", color=colour)


def _latency(axes: Axes, t: Tail, y: float) -> None:
    colour = COLOURS[t.slot.arm]
    half, slowest = t.latency[P50], t.latency[P99_9]
    if isinstance(half, Refused) or isinstance(slowest, Refused):
        axes.annotate("too few samples", (1, y), color=INK, size=8, va="center")
        return
    axes.plot([max(half.value, 1), slowest.value], [y, y], color=colour, linewidth=1.4)
    axes.plot(max(half.value, 1), y, "o", markerfacecolor=PAPER, markeredgecolor=colour)
    below, above = reach(slowest)
    axes.errorbar(slowest.value, y, xerr=[[below], [above]], fmt="o", color=colour, ecolor=INK, elinewidth=1.1)


def _title(found: list[Tail]) -> str:
    """What the sorted list's slowest packet costs under the traffic that hurts it most, beside the table's."""
    table = max(t.probes[-1] for t in found if t.slot.arm == "table-compact")
    hurt = max((t for t in found if t.slot.arm == "scan-ordered"), key=lambda t: (t.probes[P50], t.probes[-1]))
    usual = next(t for t in found if t.slot.arm == "scan-ordered")
    return (
        f"For half of the packets the sorted list asks at most {usual.probes[P50]} of {usual.slot.handlers} handlers under the "
        f"traffic it was sorted for, {hurt.probes[P50]} under {hurt.slot.traffic}; the table never asks more than {table}"
    )
