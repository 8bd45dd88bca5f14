"""Figure `arms-past-the-table`: batches by their size, and other selections, against the compact table, for each kind of body."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from .. import past
from ..past import Cell
from ..recording import Recording
from .notes import note
from .parts import reach
from .style import INK, frame, plain_log

TRAFFICS = {"uniform": ("#0072B2", "o"), "zipf": ("#D55E00", "s"), "hot": ("#CC79A7", "D"), "bursts": ("#009E73", "^")}
OTHER = ("#5c5c5c", "v")


def has_past(recording: Recording) -> bool:
    """A recording of the study `past-the-table`."""
    return any(c.batch for c in past.cells(recording))


def arms_past_the_table(recording: Recording) -> Figure:
    """A column for each body: grouped batches, batches of runs, single packets. One is the table; less is faster."""
    found = past.cells(recording)
    bodies = list(dict.fromkeys(c.body for c in found))
    figure, grid = frame(
        10.2,
        past.sentence(found),
        note(recording, past.measurements(recording), len(found)),
        aside="times of table-compact on the same packets, below 1 is faster; dashed: the 5 % that a batch may cost",
        nrows=3,
        ncols=len(bodies),
        sharey="row",
        height_ratios=(3, 3, 4),
        squeeze=False,
    )
    for column, body in enumerate(bodies):
        mine = [c for c in found if c.body == body]
        for row, kind in enumerate(past.KINDS):
            _by_batch(grid[row][column], [c for c in mine if c.kind == kind])
            grid[row][column].set_title(f"{kind}, {body}", color=INK, weight="bold")
        _single(grid[2][column], [c for c in mine if not c.batch])
        grid[2][column].set_title(f"packet by packet, {body}", color=INK, weight="bold")
    for row in range(2):
        grid[row][0].set_ylabel("time / table-compact's")
    grid[0][0].legend(fontsize=8.5, title="traffic", title_fontsize=8.5)
    return figure


def _by_batch(axes: Axes, found: list[Cell]) -> None:
    batches = sorted({c.batch for c in found})
    for traffic in dict.fromkeys(c.traffic for c in found):
        own = sorted((c for c in found if c.traffic == traffic), key=lambda c: c.batch)
        colour, marker = TRAFFICS.get(traffic, OTHER)
        whiskers = list(zip(*(reach(c.ratio) for c in own), strict=True))
        axes.errorbar(
            [c.batch for c in own], [c.ratio.value for c in own], yerr=whiskers, color=colour, marker=marker, label=traffic
        )
    axes.axhline(1, color=INK, linewidth=1.0)
    axes.axhline(past.LIMIT, color=INK, linewidth=0.8, linestyle="--")
    plain_log(axes, "x", [float(b) for b in batches], [str(b) for b in batches])
    axes.set_xlabel("packets in a batch")


def _single(axes: Axes, found: list[Cell]) -> None:
    arms = list(dict.fromkeys(c.arm for c in found))
    traffics = list(dict.fromkeys(c.traffic for c in found))
    for place, traffic in enumerate(traffics):
        own = [c for c in found if c.traffic == traffic]
        colour, marker = TRAFFICS.get(traffic, OTHER)
        rows = [arms.index(c.arm) + 0.18 * (place - (len(traffics) - 1) / 2) for c in own]
        whiskers = list(zip(*(reach(c.ratio) for c in own), strict=True))
        axes.errorbar([c.ratio.value for c in own], rows, xerr=whiskers, color=colour, marker=marker, linestyle="none")
    axes.axvline(1, color=INK, linewidth=1.0)
    axes.set_yticks(range(len(arms)), arms)
    axes.set_ylim(len(arms) - 0.5, -0.5)
    axes.set_xlabel("time / table-compact's")
