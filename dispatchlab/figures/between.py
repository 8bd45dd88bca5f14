"""Figures of the labs between CPUs: round trips, rings by version and mode, locks, the pipeline's latency."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ..intervals import Refused
from ..labs import SHOWN, Group, groups, median, mode_note, mode_of, modes
from ..recording import Recording
from .parts import reach
from .style import COLOURS, FAINT, INK, PAPER, frame

SHADES = {"near": "#0072B2", "far": "#D55E00", "one": "#0072B2"}
CAPACITY = 1024


def has(lab: str, recording: Recording) -> bool:
    """Whether the recording is of that lab."""
    return bool(recording.extra.get(lab))


def _note(recording: Recording, points: int, more: str = "") -> str:
    env = recording.environment
    where = f"{env.get('cpu_model') or 'unknown CPU'}; {recording.created[:10]}."
    return f"Intervals: 95 % for all {points} together. {more} {where}"


def _dot(axes: Axes, x: float, values: Group, points: int, colour: str, label: str = "") -> None:
    e = median(values.values, points)
    if isinstance(e, Refused):
        axes.plot(x, float(np.median(values.values)), "o", markerfacecolor=PAPER, markeredgecolor=colour, label=label)
        return
    below, above = reach(e)
    axes.errorbar(x, e.value, yerr=[[below], [above]], fmt="o", color=colour, ecolor=INK, elinewidth=1.1, label=label)


def roundtrip(recording: Recording) -> Figure:
    """A heat map over the pairs of CPUs, and every round's value in the order in which they were measured."""
    pairs = recording.extra["roundtrip"]["pairs"]
    cpus = sorted({c for p in pairs for c in p["cpus"]})
    every = [x for p in pairs for x in p["ns"]]
    known = modes(every)
    low, high = min(every), max(every)
    title = f"A cache line takes {low:.0f} to {high:.0f} ns to the other CPU and back"
    figure, (left, right) = frame(3.4, title, _note(recording, len(pairs), mode_note(known)), ncols=2)
    grid = np.full((len(cpus), len(cpus)), np.nan)
    for p in pairs:
        i, j = (cpus.index(c) for c in p["cpus"])
        grid[i, j] = grid[j, i] = float(np.median(p["ns"]))
    image = left.imshow(grid, cmap="cividis")
    for i, j in zip(*np.nonzero(~np.isnan(grid)), strict=True):
        box = {"facecolor": PAPER, "edgecolor": "none", "pad": 1.5}
        left.text(j, i, f"{grid[i, j]:.0f}", ha="center", va="center", size=9, color=INK, bbox=box)
    left.set_xticks(range(len(cpus)), [str(c) for c in cpus])
    left.set_yticks(range(len(cpus)), [str(c) for c in cpus])
    left.grid(visible=False)
    left.set_xlabel("CPU")
    left.set_ylabel("CPU")
    figure.colorbar(image, ax=left, label="ns there and back, median")
    for p in pairs:
        right.plot(p["ns"], ".", markersize=3, color=SHADES["one"])
    if known.threshold is not None:
        right.axhline(known.threshold, color=INK, linestyle="--", linewidth=1)
    right.set_yscale("log")
    right.set_xlabel("round")
    right.set_ylabel("ns there and back (log scale)")
    return figure


def ring(recording: Recording) -> Figure:
    """Throughput by version, one colour for each mode, at one capacity."""
    rows = recording.extra["ring"]["rounds"]
    known = mode_of(rows)
    found = [g for g in groups(rows, ("version", "capacity"), "million_per_s") if g.key[1] == CAPACITY]
    versions = sorted({g.key[0] for g in found})
    best = max(found, key=lambda g: float(np.median(g.values)))
    title = f"{best.key[0]} has the highest median: {np.median(best.values):.3g} million items/s in mode {best.mode}"
    aside = f"capacity {CAPACITY}; an open mark has too few rounds for an interval"
    figure, axes = frame(3.6, title, _note(recording, len(found), mode_note(known)), aside=aside)
    seen: set[str] = set()
    for g in found:
        label = "" if g.mode in seen else g.mode
        seen.add(g.mode)
        x = versions.index(g.key[0]) + {"near": -0.1, "far": 0.1, "one": 0.0}[g.mode]
        _dot(axes, x, g, len(found), SHADES[g.mode], label)
    axes.set_xticks(range(len(versions)), versions)
    axes.set_yscale("log")
    axes.set_xlabel("version of the ring")
    axes.set_ylabel("million items/s (log scale)")
    axes.legend(title="mode")
    return figure


def lock(recording: Recording) -> Figure:
    """Time per acquisition, and fairness, by version and number of threads; critical section of 0 ns."""
    rows = recording.extra["lock"]["rounds"]
    keys = ("version", "threads", "hold_ns", "oversubscribed")
    panels = [[g for g in groups(rows, keys, value) if g.key[2] == 0] for value in ("ns_per_acquisition", "jain")]
    cells = sorted({(g.key[1], g.key[3]) for g in panels[0]})
    versions = sorted({g.key[0] for g in panels[0]})
    colours = list(COLOURS.values())
    most = max(n for n, over in cells if not over)
    contended = [g for g in panels[0] if g.key[1] == most and not g.key[3]]
    best = min(contended, key=lambda g: float(np.median(g.values)))
    title = f"With {most} threads {best.key[0]} has the lowest median: {np.median(best.values):.3g} ns per acquisition"
    points = sum(len(p) for p in panels)
    aside = "of each pair of marks the right one is the far mode; an open mark has too few rounds for an interval"
    figure, drawn = frame(3.8, title, _note(recording, points, mode_note(mode_of(rows))), aside=aside, ncols=2)
    for axes, panel in zip(drawn, panels, strict=True):
        for g in panel:
            at = versions.index(g.key[0])
            x = cells.index((g.key[1], g.key[3])) + (at - len(versions) / 2) * 0.08 + (0.03 if g.mode == "far" else 0)
            _dot(axes, x, g, points, colours[at])
        axes.set_xticks(range(len(cells)), [f"{n}{', shared CPUs' if over else ''}" for n, over in cells])
        axes.set_xlabel("threads")
    for at, version in enumerate(versions):
        drawn[0].plot([], [], "o", color=colours[at], label=version)
    drawn[0].legend(ncols=2)
    drawn[0].set_yscale("log")
    drawn[0].set_ylabel("ns per acquisition (log scale)")
    drawn[1].set_ylabel("Jain's index of fairness")
    drawn[1].set_ylim(0, 1.05)
    return figure


def _time(ns: float) -> str:
    return f"{ns:.0f} ns" if ns < 10_000 else f"{ns / 1000:.0f} µs"


def pipeline(recording: Recording) -> Figure:
    """Latency percentiles from generated to dispatched, one row for each arm, beside the budget."""
    facts = recording.extra["pipeline"]
    arms = list(facts["arms"])
    points = len(arms) * len(SHOWN)
    trips = f"Round trip {min(facts['roundtrip_ns']):.0f} to {max(facts['roundtrip_ns']):.0f} ns."
    half = {arm: float(np.median(facts["arms"][arm]["latency_ns"]["0.5"])) for arm in arms}
    least, most = min(half, key=half.__getitem__), max(half, key=half.__getitem__)
    title = f"From due to dispatched, half of the packets: {_time(half[least])} with {least}, {_time(half[most])} with {most}"
    aside = "p50, p99, p99.9 of a round, median over rounds; an open mark has too few rounds; line: one packet's budget"
    figure, axes = frame(0.6 * len(arms) + 1, title, _note(recording, points, trips), aside=aside)
    for row, arm in enumerate(arms):
        for q in SHOWN:
            values = np.array(facts["arms"][arm]["latency_ns"][q])
            e = median(values, points)
            if isinstance(e, Refused):
                axes.plot(float(np.median(values)), row, "o", markerfacecolor=PAPER, markeredgecolor=COLOURS[arm])
                continue
            below, above = reach(e)
            axes.errorbar(e.value, row, xerr=[[below], [above]], fmt="o", color=COLOURS[arm], ecolor=INK, elinewidth=1.1)
    axes.axvline(facts["gap_ns"], color=FAINT, linewidth=1)
    axes.set_yticks(range(len(arms)), arms)
    axes.set_ylim(len(arms) - 0.5, -0.5)
    axes.set_xscale("log")
    axes.set_xlabel("ns from due to dispatched (log scale)")
    return figure
