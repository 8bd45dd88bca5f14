"""Figure `boundary`: what a plugin costs more than the same handler inside, packet by packet and in batches."""

from __future__ import annotations

from matplotlib.figure import Figure

from .. import crossings
from ..crossings import Crossing
from ..recording import Recording
from .notes import note
from .parts import reach
from .style import INK, frame

SINGLE, BATCHED = "#D55E00", "#0072B2"


def has_boundary(recording: Recording) -> bool:
    """A recording of the study `boundary`."""
    m = crossings.find(recording)
    return m is not None and bool(crossings.crossings(m))


def boundary(recording: Recording) -> Figure:
    """One panel for each body size; zero is the handler inside."""
    m = crossings.find(recording)
    assert m is not None
    found = crossings.crossings(m)
    sizes = list(dict.fromkeys(c.size for c in found))
    figure, grid = frame(
        3.4,
        crossings.sentence(found),
        note(recording, [m], crossings.estimates(len(found))),
        aside="one handler, the same work on both sides; views filled in and results brought back inside of what is timed",
        ncols=len(sizes),
        squeeze=False,
    )
    for axes, size in zip(grid[0], sizes, strict=True):
        ways = [c for c in found if c.size == size]
        for place, c in enumerate(ways):
            down, up = reach(c.more)
            axes.errorbar(
                place, c.more.value, yerr=[[down], [up]], fmt="s" if c.batch else "o",
                color=BATCHED if c.batch else SINGLE, ecolor=INK,
            )  # fmt: skip
        axes.axhline(0, color=INK, linewidth=1.0)
        axes.set_xticks(range(len(ways)), [_tick(c) for c in ways])
        axes.set_xlim(-0.5, len(ways) - 0.5)
        axes.set_ylim(bottom=min(0.0, axes.get_ylim()[0]))
        axes.grid(axis="x", visible=False)
        axes.set_xlabel("packets handed over in one call")
        axes.set_title(f"{size} body, {ways[0].inside.value:.1f} ns inside", color=INK, weight="bold")
    grid[0][0].set_ylabel("ns per packet more than inside")
    return figure


def _tick(c: Crossing) -> str:
    return f"batch\n{c.batch}" if c.batch else "one by\none"
