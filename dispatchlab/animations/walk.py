"""Animation `walk`: packet by packet, the predicates that a scan asks and those that the table asks; and the time that both take."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure

from .. import summary
from ..figures.notes import note
from ..figures.parts import times
from ..figures.style import COLOURS, FAINT, GRID, INK, PAPER, frame
from ..probes import expected_probes
from ..recording import Recording
from ..verdicts import verdict
from .film import Replay, replay

ARMS = ("scan", "table-compact")
PACKETS, ROW, SHOWN_MS, LAST_MS = 32, 20, 350, 3000


def frames(recording: Recording) -> Iterator[tuple[Figure, int]] | None:
    """One for each of the first packets."""
    found = replay(recording, *ARMS)
    return None if found is None else _film(recording, found)


def _film(recording: Recording, found: Replay) -> Iterator[tuple[Figure, int]]:
    m, arms = found.scene.measurement, found.scene.arms
    said = verdict(m, arms["scan"], arms["table-compact"])
    title = f"{found.handlers.count} handlers, {found.traffic.name}: {times('a scan', said.kind, said.estimate, 'the table')}"
    figure, (top, below) = frame(
        4.2, title, note(recording, [m], 2), aside="one square for each handler in list order: asked, and the one that takes it",
        nrows=2, ncols=1, height_ratios=(3, 2),
    )  # fmt: skip
    each = {arm: summary.ns(m, arms[arm]).value for arm in ARMS}
    asked = {arm: expected_probes(arm, found.handlers, found.traffic)[:PACKETS].astype(int) for arm in ARMS}
    chosen = found.handlers.select(found.traffic.packets[:PACKETS])
    for n in range(PACKETS):
        _squares(top, found, n, {arm: int(asked[arm][n]) for arm in ARMS}, int(chosen[n]))
        _bars(below, n + 1, {arm: int(asked[arm][: n + 1].sum()) for arm in ARMS}, each)
        yield figure, LAST_MS if n == PACKETS - 1 else SHOWN_MS


def _squares(axes: Axes, found: Replay, n: int, asked: dict[str, int], chosen: int) -> None:
    """Both arms over the list: 0 not asked, 1 asked by the scan, 2 asked by the table, 3 the handler."""
    order = found.handlers.order.tolist()
    own = [p for p, i in enumerate(order) if found.handlers.keys[i] == found.traffic.packets["key"][n]]
    rows = -(-len(order) // ROW)
    scan, table = (np.full(rows * ROW, -1) for _ in ARMS)
    for field in (scan, table):
        field[: len(order)] = 0
    scan[: asked["scan"]] = 1
    table[own[: asked["table-compact"]]] = 2
    if chosen >= 0:
        scan[order.index(chosen)] = table[order.index(chosen)] = 3
    gap = np.full((rows, 1), -1)
    axes.clear()
    colours = ListedColormap([PAPER, GRID, COLOURS["scan"], COLOURS["table-compact"], INK])
    whole = np.hstack([scan.reshape(rows, ROW), gap, table.reshape(rows, ROW)])
    axes.pcolormesh(whole, cmap=colours, vmin=-1.5, vmax=3.5, edgecolors=PAPER, linewidth=1.5)
    axes.set_ylim(rows, 0)
    axes.set_aspect("equal")
    axes.axis("off")
    who = f"handler {chosen}" if chosen >= 0 else "nobody"
    axes.set_title(f"packet {n + 1}, for {who}    scan (left): {asked['scan']} asked    table (right): {asked['table-compact']} asked")


def _bars(axes: Axes, packets: int, asked: dict[str, int], each: dict[str, float]) -> None:
    axes.clear()
    for row, arm in enumerate(ARMS):
        took = packets * each[arm] / 1000
        axes.barh(row, took, 0.6, color=COLOURS[arm])
        axes.text(took, row, f"  {took:.2f} µs, {asked[arm]} predicates", va="center", color=INK)
    axes.set_yticks(range(len(ARMS)), ARMS)
    axes.set_ylim(len(ARMS) - 0.5, -0.5)
    axes.set_xlim(0, 1.35 * PACKETS * max(each.values()) / 1000)
    axes.set_xlabel(f"time of {packets} packets at the measured ns/packet, µs")
    axes.tick_params(colors=FAINT, labelcolor=INK)
