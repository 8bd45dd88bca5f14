"""Figures about the measuring: from which pool on memory is measured, and what the loop itself costs."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from .. import summary, wording
from ..instrument import floor_scene, settled_after
from ..recording import Recording
from ..scenes import Scene, along
from ..verdicts import verdict
from .notes import each, note
from .parts import factor, line, reach, times
from .style import COLOURS, FAINT, INK, frame, plain_log

TABLE = "table-compact"


def has_pools(recording: Recording) -> bool:
    """The table over at least two sizes of pool."""
    return bool(along(recording, "pool", TABLE))


def pool(recording: Recording) -> Figure:
    """ns/packet over the bytes of the packet pool; the machine's data caches are drawn in."""
    found = along(recording, "pool", TABLE)
    arms = [arm for arm in (TABLE, "null") if all(s.has(arm) for s in found)]
    points = len(arms) * len(found)
    sizes = [float(s.pool_bytes) for s in found]
    figure, grid = frame(
        2.1 * len(arms) + 0.6,
        _pool_title(found),
        note(recording, [found[0].measurement], points),
        nrows=len(arms),
        sharex=True,
        squeeze=False,
    )
    for axes, arm in zip(grid.flat, arms, strict=True):
        values = [summary.ns(s.measurement, s.arms[arm], confidence=each(points)) for s in found]
        line(axes, arm, sizes, values)
        axes.set_ylim(0, 1.25 * max(e.value + reach(e)[1] for e in values))
        axes.set_ylabel("ns per packet")
        axes.set_title(_POOL_TITLES[arm], color=COLOURS[arm], weight="bold", pad=16 if axes is grid.flat[0] else 6)
    last = grid.flat[-1]
    plain_log(last, "x", sizes, [wording.size(s) for s in sizes])
    last.set_xlabel("packet pool (log scale)")
    last.tick_params(axis="x", labelsize=8.5)
    _draw_caches(list(grid.flat), recording, sizes)
    return figure


_POOL_TITLES = {TABLE: "table-compact", "null": "null: the loop alone, which reads every packet's key"}


def _draw_caches(panels: list[Axes], recording: Recording, sizes: list[float]) -> None:
    """Vertical lines where a data cache ends, named at the top; those beyond the largest pool are named at the edge."""
    caches = recording.environment.get("caches") or {}
    right = max(sizes) * 1.6
    panels[0].set_xlim(min(sizes) / 1.5, right)
    for name in ("L1d", "L2", "L3"):
        size = caches.get(name)
        if not size:
            continue
        for axes in panels:
            if size <= right:
                axes.axvline(size, color=FAINT, linewidth=1.2, linestyle=(0, (4, 2)))
        text, at, side = f"{name} {wording.size(size)}", float(size), "center"
        if size > right:
            text, at, side = f"{text} →", right, "right"
        panels[0].annotate(
            text,
            (at, 1.0),
            (0, 3),
            xycoords=("data", "axes fraction"),
            textcoords="offset points",
            ha=side,
            va="bottom",
            size=9,
            color=FAINT,
        )


def _pool_title(found: list[Scene]) -> str:
    m, small, large = found[0].measurement, found[0], found[-1]
    rise = verdict(m, large.arms[TABLE], small.arms[TABLE], family=2)
    sizes = f"from {wording.size(small.pool_bytes)} to {wording.size(large.pool_bytes)} of packets"
    if rise.kind in ("unresolved", "equal"):
        text = f"The table shows no resolved change {sizes}"
    else:
        text = f"The same table gets {factor(rise.estimate.value)} {sizes}"
    if not (small.has("null") and large.has("null")):
        return text
    loop = verdict(m, large.arms["null"], small.arms["null"], family=2)
    told = loop.kind in ("slower", "faster")
    return f"{text}; the loop alone {'gets ' + factor(loop.estimate.value) if told else 'shows no resolved change'}"


def has_floor(recording: Recording) -> bool:
    """The empty loop with both checksums."""
    return floor_scene(recording) is not None


def instrument(recording: Recording) -> Figure:
    """The loop floor beside that of a serial checksum, and the first blocks of the process."""
    scene = floor_scene(recording)
    assert scene is not None, "draw asks has_floor first"
    m = scene.measurement
    curve = (recording.extra.get("instrument") or {}).get("warm_up_ns") or []
    arms = ["null", "null-serial"]
    figure, grid = frame(
        3.4,
        _floor_title(scene, curve),
        note(recording, [m], len(arms)),
        ncols=2 if curve else 1,
        squeeze=False,
        width_ratios=(2, 3) if curve else (1,),
    )
    left = grid.flat[0]
    for row, arm in enumerate(arms):
        e = summary.ns(m, scene.arms[arm], confidence=each(len(arms)))
        down, up = reach(e)
        left.bar(row, e.value, 0.55, color=COLOURS[arm], yerr=[[down], [up]], ecolor="#E69F00", error_kw={"linewidth": 2})
        left.annotate(
            wording.measured(e), (row, e.value + up), (0, 4), textcoords="offset points", ha="center", va="bottom", size=9
        )
    left.set_xticks(range(2), ["null", "null-serial"], size=9)
    left.tick_params(axis="x", length=0)
    left.grid(axis="x", visible=False)
    left.set_xlim(-0.55, 1.55)
    left.margins(y=0.18)
    left.set_ylabel("ns per packet")
    left.set_title("own checksum and a serial FNV-1a", color=FAINT)
    if curve:
        _warm_up(grid.flat[1], curve)
    return figure


def _warm_up(axes: Axes, curve: list[float]) -> None:
    settled = settled_after(curve)
    blocks = np.arange(1, len(curve) + 1)
    axes.plot(blocks, curve, linestyle="none", marker=".", markersize=3.5, color=COLOURS[TABLE])
    if 0 < settled < len(curve):
        axes.axvline(settled + 0.5, color=INK, linewidth=1.2, linestyle=(0, (3, 2)))
    axes.set_xlabel("block since the start (dashed: settled)")
    axes.set_ylabel("ns per packet")
    axes.set_ylim(0, 1.1 * max(curve))
    axes.set_title("table-compact from cold, each block", color=FAINT)


def _floor_title(scene: Scene, curve: list[float]) -> str:
    m = scene.measurement
    against = verdict(m, scene.arms["null"], scene.arms["null-serial"])
    floor = wording.measured(summary.ns(m, scene.arms["null"], confidence=each(2)))
    text = f"The loop alone costs {floor} ns/packet; {times('it', against.kind, against.estimate, 'a serial checksum')}"
    if not curve:
        return text
    first = curve[0] / float(np.median(curve[-len(curve) // 4 :]))
    return f"{text}; the first block took {first:.2f} times a later one's time"
