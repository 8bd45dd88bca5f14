"""How every figure looks, and how it becomes the same bytes each time: fonts, colours, frame, files."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import matplotlib.style
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

# Opaque and nearly white: read on a dark page as on a light one.
PAPER, INK, FAINT, GRID = "#fcfbf8", "#1d1d1d", "#5c5c5c", "#dedbd4"

# Okabe and Ito (2008): told apart with any colour vision. Markers say the same again.
COLOURS = {
    "scan": "#D55E00",
    "scan-ordered": "#E69F00",
    "scan-mtf": "#CC79A7",
    "table-compact": "#0072B2",
    "table-direct16": "#56B4E9",
    "direct-call": "#009E73",
    "null": "#5c5c5c",
    "null-serial": "#000000",
}
MARKERS = {"scan": "o", "table-compact": "s", "direct-call": "D", "null": "v", "null-serial": "^"}

STYLE: Mapping[str, Any] = {
    "font.family": ["DejaVu Sans"],
    "font.size": 10,
    "text.color": INK,
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
    "axes.labelsize": 10,
    "axes.labelcolor": INK,
    "axes.edgecolor": FAINT,
    "axes.facecolor": PAPER,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": GRID,
    "grid.linewidth": 0.7,
    "xtick.color": FAINT,
    "ytick.color": FAINT,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "legend.frameon": False,
    "lines.linewidth": 1.8,
    "lines.markersize": 6,
    "errorbar.capsize": 3,
    "figure.facecolor": PAPER,
    "figure.dpi": 100,
    "savefig.dpi": 160,
    "savefig.facecolor": PAPER,
    "svg.hashsalt": "dispatchlab",
    "svg.fonttype": "path",
}
FORMATS = ("svg", "png")
WIDTH = 9.0
LINE = 0.21  # inches per line of text in the frame


@contextmanager
def style() -> Iterator[None]:
    """Matplotlib's own defaults and ours, whatever the user's settings are; they are back afterwards."""
    with matplotlib.style.context(["default", dict(STYLE)]):
        yield


class Drawing(Figure):
    """A Figure that a notebook shows by itself, without pyplot."""

    def _repr_png_(self) -> bytes:
        return render(self, "png")


def frame(height: float, title: str, note: str, aside: str = "", **subplots: Any) -> tuple[Drawing, Any]:
    """A drawing with axes between a title (the finding; aside: how to read it) and a note (how sure, measured where).

    subplots go to Figure.subplots. Text is wrapped to the width, and the axes get what is left.
    """
    heads, feet = textwrap.fill(title, 84), textwrap.fill(note, 158)
    top = LINE * 1.25 * (heads.count("\n") + 1) + 0.16 + (LINE if aside else 0)
    bottom = LINE * 0.75 * (feet.count("\n") + 1) + 0.14
    whole = height + top + bottom
    layout = ConstrainedLayoutEngine(rect=(0.005, bottom / whole, 0.99, height / whole), wspace=0.06, hspace=0.06)
    figure = Drawing(figsize=(WIDTH, whole), layout=layout)
    FigureCanvasAgg(figure)
    figure.text(0.012, 1 - 0.12 / whole, heads, size=13, weight="bold", va="top", linespacing=1.3)
    if aside:
        figure.text(0.012, 1 - (top - LINE - 0.02) / whole, aside, size=9.5, color=FAINT, va="top")
    figure.text(0.012, 0.08 / whole, feet, size=7.5, color=FAINT, va="bottom", linespacing=1.4)
    return figure, figure.subplots(**subplots)


def settle(figure: Figure) -> None:
    """Keep what has been laid out, for every format, to five digits: the layout's solver may differ from run to run in the
    last bits, and an SVG names its clip paths by a hash over all of them."""
    figure.set_layout_engine("none")
    for axes in figure.axes:
        left, bottom, width, height = (round(x, 5) for x in axes.get_position(original=True).bounds)
        axes.set_position((left, bottom, width, height))


def plain_log(axes: Axes, which: str, ticks: list[float], labels: list[str]) -> None:
    """A logarithmic axis with these ticks and no others."""
    getattr(axes, f"set_{which}scale")("log")
    axis = getattr(axes, f"{which}axis")
    axis.set_ticks(ticks, labels)
    axis.set_ticks([], minor=True)


def render(figure: Figure, kind: str) -> bytes:
    """The file's bytes; equal for equal drawings under one Matplotlib: no date, no random ids."""
    out = io.BytesIO()
    with style():
        figure.savefig(out, format=kind, metadata={"Date": None} if kind == "svg" else {})
    return out.getvalue()
