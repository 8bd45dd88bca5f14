"""Figures about finding the handler: scan against table, what sorting captures, what the budget has room for."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from .. import summary, wording
from ..intervals import Estimate
from ..recording import Recording
from ..scenes import USUAL, Scene, along, under_every_traffic
from ..shares import Win, win
from ..tables import SPLIT
from ..verdicts import verdict
from .notes import each, note
from .parts import factor, line, reach, times
from .style import COLOURS, FAINT, INK, PAPER, frame, plain_log

PAIR = ("scan", "table-compact")
TELLING = 1 / 3
"""A share known less well than so is drawn and not named in a title."""


def has_counts(recording: Recording) -> bool:
    """Scan and table over at least two numbers of handlers."""
    return bool(along(recording, "handlers", *PAIR))


def scan_vs_table(recording: Recording) -> Figure:
    """ns/packet over the number of handlers; the table's own rise once more on a scale of its own."""
    found = along(recording, "handlers", *PAIR)
    arms = [arm for arm in (*PAIR, "direct-call") if all(s.has(arm) for s in found)]
    points = len(arms) * len(found)
    figure, (left, right) = frame(
        4.2, _scan_title(found), note(recording, [found[0].measurement], points), ncols=2, width_ratios=(3, 2)
    )
    counts = [float(s.slot.handlers) for s in found]
    for arm in arms:
        values = [summary.ns(s.measurement, s.arms[arm], confidence=each(points)) for s in found]
        for axes in (left, right) if arm != "scan" else (left,):
            line(axes, arm, counts, values)
        if arm == "scan":
            _write_probes(left, found, counts, values)
    plain_log(left, "x", counts, [f"{n:g}" for n in counts])
    plain_log(right, "x", counts, [f"{n:g}" for n in counts])
    left.set_yscale("log")
    left.set_ylabel("ns per packet (log scale)")
    left.yaxis.set_major_formatter("{x:g}")
    low, high = left.get_ylim()
    left.set_ylim(low, high * 1.5)
    left.set_title("all arms; numbers: probes per packet of the scan", color=FAINT)
    right.set_title("the table, from zero" if len(arms) == 2 else "table and direct call, from zero", color=FAINT)
    right.set_ylabel("ns per packet")
    right.set_ylim(bottom=0)
    for axes in (left, right):
        axes.set_xlabel("registered handlers")
        axes.margins(x=0.08)
    left.legend(loc="upper left")
    return figure


def _scan_title(found: list[Scene]) -> str:
    scene = next((s for s in found if s.slot.handlers == USUAL), found[-1])
    m, n = scene.measurement, scene.slot.handlers
    against = verdict(m, *(scene.arms[arm] for arm in PAIR), family=2)
    rise = verdict(m, found[-1].arms["table-compact"], found[0].arms["table-compact"], family=2)
    return (
        f"Finding one of {n} handlers: {times('a scan', against.kind, against.estimate, 'the table')}; "
        f"from {found[0].slot.handlers} to {found[-1].slot.handlers} handlers the table "
        f"{_changes(rise.kind, rise.estimate)}"
    )


def _changes(kind: str, e: Estimate) -> str:
    if kind == "unresolved":
        return "shows no resolved change"
    return "stays the same" if kind == "equal" else f"itself gets {factor(e.value)}"


def _write_probes(axes: Axes, found: list[Scene], x: list[float], values: list[Estimate]) -> None:
    for scene, count, e in zip(found, x, values, strict=True):
        label = scene.measurement.slots[scene.arms["scan"]].label
        probes = scene.measurement.probes.get(label)
        if probes is not None:
            axes.annotate(
                f"{probes:.1f}",
                (count, e.value + reach(e)[1]),
                (3, 5),
                textcoords="offset points",
                ha="right",
                va="bottom",
                size=9,
                color=COLOURS["scan"],
            )


def has_wins(recording: Recording) -> bool:
    """Scan, sorted scan and table under one traffic."""
    return bool(under_every_traffic(recording, *SPLIT))


def where_the_win_comes_from(recording: Recording) -> Figure:
    """Stacked: the part of scan - table that sorting the list captures, and the part that only the table brings."""
    found = under_every_traffic(recording, *SPLIT)
    sure = each(2 * len(found))
    wins = [win(s.measurement, *(s.arms[arm] for arm in SPLIT), confidence=sure) for s in found]
    measurements = list({id(s.measurement): s.measurement for s in found}.values())
    figure, axes = frame(
        0.52 * len(found) + 1.1, _win_title(found, wins), note(recording, measurements, 2 * len(found))
    )
    rows = np.arange(len(found), dtype=float)
    drawn = [bool(np.isfinite([w.by_sorting.low, w.by_sorting.high]).all()) for w in wins]
    part = np.array([w.by_sorting.value if ok else 0.0 for w, ok in zip(wins, drawn, strict=True)])
    part = 100 * np.clip(part, 0.0, 1.0)
    whole = np.where(drawn, 100.0, 0.0)
    axes.barh(rows, part, 0.62, color=COLOURS["scan-ordered"], label="captured by sorting the list")
    axes.barh(rows, whole - part, 0.62, left=part, color=COLOURS["table-compact"], label="brought by the table only")
    for row, w, ok in zip(rows, wins, drawn, strict=True):
        _win_row(axes, row, w, ok)
    axes.set_yticks(rows, [_short(s.slot.traffic) for s in found])
    axes.set_xlim(-12, 152)
    axes.set_xticks(range(0, 101, 20))
    axes.set_ylim(len(found) - 0.45, -1.15)
    axes.grid(axis="y", visible=False)
    axes.spines["left"].set_visible(False)
    axes.tick_params(axis="y", length=0)
    axes.set_xlabel("% of the win, scan - table", x=(50 + 12) / 164)
    axes.legend(loc="upper left", ncols=2, bbox_to_anchor=(12 / 164, 1.0), borderaxespad=0, borderpad=0)
    for x, head in ((127, "sorting"), (152, "win, ns/packet")):
        axes.text(x, -0.62, head, va="center", ha="right", size=9, color=FAINT)
    return figure


def _win_row(axes: Axes, row: float, w: Win, drawn: bool) -> None:
    """Interval, share and size of one win."""
    saved = wording.measured(w.saved)
    if not drawn:
        axes.barh(row, 100, 0.62, facecolor="none", edgecolor=FAINT, hatch="////", linewidth=0.8)
        box = {"facecolor": PAPER, "edgecolor": "none", "pad": 2.5}
        axes.text(50, row, "undecided: the win may be zero", ha="center", va="center", size=9, color=INK, bbox=box)
        axes.text(152, row, saved, va="center", ha="right", size=9)
        return
    e = w.by_sorting
    low, value, high = (float(np.clip(100 * x, -10, 110)) for x in (e.low, e.value, e.high))
    axes.plot([low, high], [row, row], color=INK, linewidth=1.6, solid_capstyle="butt")
    for end, inside, away in ((low, 100 * e.low > -10, "<"), (high, 100 * e.high < 110, ">")):
        axes.plot([end], [row], color=INK, marker="|" if inside else away, markersize=9 if inside else 5)
    axes.plot([value], [row], color=INK, marker="o", markersize=4)
    axes.text(127, row, f"{100 * e.value:.{1 if e.high - e.low < 0.05 else 0}f} %", va="center", ha="right", size=9)
    axes.text(152, row, saved, va="center", ha="right", size=9)


def _win_title(found: list[Scene], wins: list[Win]) -> str:
    known = [
        (w.by_sorting.value, w.by_sorting, s)
        for s, w in zip(found, wins, strict=True)
        if w.by_sorting.high - w.by_sorting.low < TELLING
    ]
    if not known:
        return "What sorting the list captures is not known to within a third under any traffic"
    (_, low, least), (_, high, most) = min(known, key=lambda k: k[0]), max(known, key=lambda k: k[0])
    if least is most:
        return f"Sorting the list captures {_range(low)} of the win under {_short(least.slot.traffic)} traffic"
    return (
        f"Sorting the list captures {_range(low)} of the win under {_short(least.slot.traffic)} traffic, "
        f"{_range(high)} under {_short(most.slot.traffic)}; only the table brings the rest"
    )


def _range(e: Estimate) -> str:
    """A share for a title: the figure where it is known to 5 points, else its interval."""
    if e.high - e.low <= 0.1:
        return f"{100 * e.value:.0f} %"
    return f"{100 * max(e.low, 0):.0f} to {100 * min(e.high, 1):.0f} %"


def _short(traffic: str) -> str:
    """A counts file by its capture."""
    return traffic.removesuffix(".csv").removesuffix(".pcap").removesuffix(".service").removesuffix(".ip-proto")


def has_budget(recording: Recording) -> bool:
    """Any traffic under which scan and table ran."""
    return bool(under_every_traffic(recording, *PAIR))


def budget(recording: Recording) -> Figure:
    """Each arm's share of the budget, one panel for each traffic of the measurement that has most of them."""
    every = under_every_traffic(recording, *PAIR)
    m = every[0].measurement
    found = [s for s in every if s.measurement is m]
    arms = [arm for arm in COLOURS if arm != "direct-call" and any(s.has(arm) for s in found)]
    points = sum(len(s.arms) for s in found)
    columns = min(len(found), 2)
    lines = -(-len(found) // columns)
    own = next((summary.ns(m, i).value for i, slot in enumerate(m.slots) if slot.arm == "direct-call"), None)
    figure, grid = frame(
        (0.3 * len(arms) + 0.55) * lines + 0.35,
        _budget_title(found),
        note(recording, [m], points),
        aside=f"{found[0].slot.handlers} handlers; solid line: the whole budget"
        + ("; dashed line: the handler's own work (direct-call)" if own else ""),
        ncols=columns,
        nrows=lines,
        sharex=True,
        sharey=True,
        squeeze=False,
    )
    for axes, scene in zip(grid.flat, found, strict=False):
        _budget_panel(axes, scene, arms, own, each(points))
    for axes in grid.flat[len(found) :]:
        axes.set_visible(False)
    grid.flat[0].set_ylim(len(arms) - 0.5, -0.5)
    grid.flat[0].set_xlim(0, max(axes.dataLim.x1 for axes in grid.flat) * 1.16)
    for axes in grid[-1]:
        axes.set_xlabel(f"% of {wording.BUDGET_NS:.0f} ns, the budget at {wording.RATE / 1e6:g} million packets/s")
    return figure


def _budget_panel(axes: Axes, scene: Scene, arms: list[str], own: float | None, sure: float) -> None:
    for row, arm in enumerate(arms):
        if not scene.has(arm):
            continue
        e = summary.ns(scene.measurement, scene.arms[arm], confidence=sure)
        percent = 100 * wording.budget_share(e.value)
        whiskers = [[100 * wording.budget_share(end)] for end in reach(e)]
        axes.barh(row, percent, 0.66, color=COLOURS[arm], xerr=whiskers, ecolor=INK, error_kw={"linewidth": 1.1})
        end = percent + whiskers[1][0]
        box = {"facecolor": PAPER, "edgecolor": "none", "pad": 0.8}
        text = f"{percent:.0f} %"
        axes.annotate(text, (end, row), (5, 0), textcoords="offset points", va="center", size=9, bbox=box)
    axes.set_yticks(range(len(arms)), arms)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="y", visible=False)
    axes.axvline(100, color=INK, linewidth=1.2)
    if own is not None:
        axes.axvline(100 * wording.budget_share(own), color=INK, linewidth=1.2, linestyle=(0, (3, 2)))
    axes.set_title(f"{_short(scene.slot.traffic)} traffic", color=INK, weight="bold")


def _budget_title(found: list[Scene]) -> str:
    """About the traffic under which the scan costs most of the budget."""

    def share(scene: Scene, arm: str) -> float:
        return 100 * wording.budget_share(summary.ns(scene.measurement, scene.arms[arm]).value)

    worst = max(found, key=lambda s: share(s, "scan"))
    least = min(found, key=lambda s: share(s, "scan"))
    tables = [share(s, "table-compact") for s in found]
    low, high = f"{min(tables):.0f}", f"{max(tables):.0f}"
    scan = f"{share(worst, 'scan'):.0f} % of the budget under {_short(worst.slot.traffic)} traffic"
    if least is not worst:
        scan = f"{share(least, 'scan'):.0f} % of the budget under {_short(least.slot.traffic)} traffic and " + scan.replace(
            " of the budget", ""
        )
    return f"The scan takes {scan}; the table {low if low == high else f'{low} to {high}'} %"
