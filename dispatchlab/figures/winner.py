"""Figure `winner-map`: which way wins, over the skew of the traffic and the number of handlers."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle

from .. import when
from ..recording import Recording
from ..when import Cell
from .notes import note
from .style import FAINT, INK, PAPER, frame

# Okabe and Ito's, lightened until black text on them is easily read.
FILLS = {"scan": "#e9a77c", "scan-ordered": "#f3cf80", "scan-simd": "#dcb0cb", "table-compact": "#8fc1e3"}
OTHER = "#cfcbc2"


def has_winners(recording: Recording) -> bool:
    """A loop beside the table over several skews and several numbers of handlers."""
    found = when.cells(recording)
    return len({c.exponent for c in found}) > 1 and len({c.handlers for c in found}) > 1


def winner_map(recording: Recording) -> Figure:
    """A field for each cell in the colour of its winner, hatched where that is not resolved; in it the fastest loop's time over
    the table's, with its interval, and which loop that is."""
    found = when.cells(recording)
    exponents, counts = sorted({c.exponent for c in found}), sorted({c.handlers for c in found})
    figure, axes = frame(
        0.72 * len(counts) + 1.1,
        when.sentence(found),
        note(recording, when.measurements(recording), 4 * len(found)),
        aside="number: time of the fastest loop / table's, below 1 the loop is right; hatched: the winner is not told apart",
    )
    for c in found:
        _field(axes, exponents.index(c.exponent), counts.index(c.handlers), c)
    axes.set_xlim(-0.5, len(exponents) - 0.5)
    axes.set_ylim(-0.5, len(counts) - 0.5)
    axes.set_xticks(range(len(exponents)), ["0 (uniform)" if s == 0 else f"{s:g}" for s in exponents])
    axes.set_yticks(range(len(counts)), [str(n) for n in counts])
    axes.set_xlabel("skew of the traffic (zipf exponent)")
    axes.set_ylabel("registered handlers")
    axes.grid(visible=False)
    axes.tick_params(length=0)
    arms = [arm for arm in when.SAYS if any(c.winner == arm for c in found)]
    keys = [Patch(facecolor=FILLS.get(arm, OTHER), edgecolor=FAINT, label=arm) for arm in arms]
    axes.legend(handles=keys, loc="center left", bbox_to_anchor=(1.01, 0.5), title="fastest")
    return figure


def _field(axes: Axes, column: int, row: int, c: Cell) -> None:
    axes.add_patch(Rectangle((column - 0.5, row - 0.5), 1, 1, facecolor=FILLS.get(c.winner, OTHER), edgecolor=PAPER, linewidth=2))
    if not c.resolved:
        hatch = Rectangle((column - 0.5, row - 0.5), 1, 1, fill=False, edgecolor=FAINT, linewidth=0, hatch="///", alpha=0.6)
        axes.add_patch(hatch)
    e = c.ratio
    box = {"facecolor": FILLS.get(c.winner, OTHER), "edgecolor": "none", "pad": 1.5}
    axes.text(column, row + 0.2, f"{e.value:.2f}", ha="center", va="center", size=11, weight="bold", color=INK, bbox=box)
    sure = f"{e.low:.2f} to {e.high:.2f}" if e.bounded else "no interval"
    small = f"{sure}\n{when.SAYS.get(c.loop, c.loop)}"
    axes.text(column, row - 0.2, small, ha="center", va="center", size=7.5, color=INK, bbox=box, linespacing=1.5)
