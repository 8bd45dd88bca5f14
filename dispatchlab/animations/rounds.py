"""Animation `rounds`: slots take turns, round by round, and the interval of a paired ratio closes; the twin stays at 1."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure

from .. import summary, wording
from ..figures.notes import note
from ..figures.style import COLOURS, FAINT, INK, PAPER, frame
from ..intervals import FEWEST, Estimate
from ..recording import Measurement, Recording

SHOWN_MS, LAST_MS, STEPS, VISIBLE, MOST_SLOTS = 400, 3000, 24, 16, 12
SHADES = (*dict.fromkeys(COLOURS.values()), "#F0E442", "#999999", "#7a5195", "#bcbd22")


def frames(recording: Recording) -> Iterator[tuple[Figure, int]] | None:
    """One for each of some numbers of rounds, out of the measurement with the fewest slots; None with less than 16 rounds."""
    fitting = [m for m in recording.measurements if m.rounds >= 2 * FEWEST and 2 < len(m.slots)]
    return None if not fitting else _film(recording, min(fitting, key=lambda m: len(m.slots)))


def first(m: Measurement, rounds: int) -> Measurement:
    """The same measurement, stopped after so many rounds."""
    cut = {name: getattr(m, name)[:rounds] for name in ("ticks", "order", "placement", "window", "flagged")}
    return replace(m, ledger={name: column[:rounds] for name, column in m.ledger.items()}, **cut)


def _film(recording: Recording, m: Measurement) -> Iterator[tuple[Figure, int]]:
    other = next(i for i in range(len(m.slots)) if i not in (m.reference, m.twin))
    steps = sorted({round(x) for x in np.geomspace(FEWEST, m.rounds, STEPS)})
    cuts = [first(m, n) for n in steps]
    ratios = [[summary.ratio(c, i, m.reference) for c in cuts] for i in (other, m.twin)]
    names = [m.slots[i].label for i in (other, m.reference)]
    title = f"{names[0]} takes {wording.ratio(ratios[0][-1])} times as long as {names[1]} after {m.rounds} rounds"
    figure, (left, upper, lower) = frame(
        3.4, title, note(recording, [m], 2), aside="every round runs each slot once, in an order of its own; ratios are paired by round",
        ncols=3, width_ratios=(3, 2, 2),
    )  # fmt: skip
    shown = 0
    for at, n in enumerate(steps):
        _grid(left, m, n)
        for axes, values, name in ((upper, ratios[0], names[0]), (lower, ratios[1], "twin")):
            _interval(axes, steps[: at + 1], values[: at + 1], m.rounds, name)
        shown += 1
        yield figure, LAST_MS if at == len(steps) - 1 else SHOWN_MS


def _grid(axes: Axes, m: Measurement, n: int) -> None:
    """The last rounds, the newest below: at each position the colour of the slot that ran."""
    axes.clear()
    begin = max(0, n - VISIBLE)
    slots = len(m.slots)
    colours = ListedColormap([SHADES[i % len(SHADES)] for i in range(slots)])
    axes.pcolormesh(m.order[begin:n], cmap=colours, vmin=-0.5, vmax=slots - 0.5, edgecolors=PAPER, linewidth=1)
    axes.set_ylim(n - begin, 0)
    axes.set_yticks([0.5, n - begin - 0.5], [str(begin + 1), str(n)])
    axes.set_xticks([])
    axes.grid(visible=False)
    axes.set_xlabel("position in the round")
    axes.set_ylabel("round")
    axes.set_title(f"order of {slots} slots", color=INK)


def _interval(axes: Axes, steps: list[int], values: list[Estimate], rounds: int, name: str) -> None:
    axes.clear()
    axes.set_xscale("log")
    axes.fill_between(steps, [e.low for e in values], [e.high for e in values], color=COLOURS["table-direct16"], alpha=0.5)
    axes.plot(steps, [e.value for e in values], color=INK)
    axes.plot(steps[-1], values[-1].value, "o", color=INK)
    axes.set_xlim(FEWEST * 0.9, rounds * 1.15)
    axes.set_xticks([FEWEST, rounds], [str(FEWEST), str(rounds)])
    axes.set_xticks([], minor=True)
    axes.set_xlabel("rounds")
    axes.set_title(f"{name} / reference\n{wording.ratio(values[-1])}", color=INK)
    axes.tick_params(colors=FAINT, labelcolor=INK)
