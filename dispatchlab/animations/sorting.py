"""Animation `sorting`: the busiest handlers go to the front of the list one by one, and the mean number of predicates falls."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from matplotlib.figure import Figure

from .. import summary
from ..figures.notes import note
from ..figures.style import COLOURS, GRID, INK, frame
from ..probes import list_probes, sorted_order
from ..recording import Recording
from .film import Replay, replay

ARMS = ("scan", "scan-ordered")
SHOWN_MS, LAST_MS, STEPS = 300, 3000, 30


def frames(recording: Recording) -> Iterator[tuple[Figure, int]] | None:
    """One for each handler, or few, that moves to the front."""
    found = replay(recording, *ARMS, skewed=True)
    return None if found is None else _film(recording, found)


def _film(recording: Recording, found: Replay) -> Iterator[tuple[Figure, int]]:
    hs, m, arms = found.handlers, found.scene.measurement, found.scene.arms
    frequency = hs.frequency(found.traffic.packets)
    goal = sorted_order(hs, frequency).tolist()
    steps = sorted({round(x) for x in np.geomspace(1, hs.count + 1, STEPS) - 1})
    orders = [goal[:k] + [i for i in hs.order.tolist() if i not in set(goal[:k])] for k in steps]
    means = [float(list_probes(hs, found.traffic, np.array(order, np.int32)).mean()) for order in orders]
    ns = [summary.ns(m, arms[arm]).value for arm in ARMS]
    title = f"Sorting {hs.count} handlers takes a scan from {means[0]:.1f} to {means[-1]:.1f} predicates a packet"
    figure, (left, right) = frame(
        3.6, title, note(recording, [m], 2), aside=f"{found.traffic.name}; measured: {ns[0]:.0f} ns unsorted, {ns[1]:.0f} ns sorted",
        ncols=2, width_ratios=(3, 2),
    )  # fmt: skip
    share = 100 * frequency / len(found.traffic)
    for at, (k, order) in enumerate(zip(steps, orders, strict=True)):
        left.clear()
        colours = [COLOURS["scan-ordered"]] * k + [COLOURS["scan"]] * (hs.count - k)
        left.bar(range(1, hs.count + 1), share[order], 0.9, color=colours)
        left.set_xlabel("place in the list")
        left.set_ylabel("share of the packets, %")
        left.set_title(f"{k} of {hs.count} handlers in front", color=INK)
        right.clear()
        right.plot(steps, means, color=GRID)
        right.plot(steps[: at + 1], means[: at + 1], color=COLOURS["scan-ordered"])
        right.plot(k, means[at], "o", color=COLOURS["scan-ordered"])
        right.set_title(f"{means[at]:.1f} predicates per packet", color=INK)
        right.set_xlabel("handlers in front")
        right.set_ylabel("mean predicates per packet")
        right.set_ylim(0, 1.08 * max(means))
        yield figure, LAST_MS if at == len(steps) - 1 else SHOWN_MS
