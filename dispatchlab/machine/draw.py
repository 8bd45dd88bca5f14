"""A machine drawn as nested boxes: packages, NUMA nodes, caches, cores, threads, and the CPU to pin to."""

from collections.abc import Iterator
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from ..figures.style import FAINT, INK, PAPER, WIDTH, frame, render, settle, style
from .boxes import DETAILED, LETTER, Placed, arrange, boxes, framed, place
from .report import Machine

FILLS = {"package": "#f1eee6", "node": "#e6e2d6", "cache": "#ffffff", "core": "#dcd8cc", "thread": PAPER, "more": "#f7f5ef"}
KIND_FILLS = ("#a9d0ee", "#b4dfc8", "#f0d3e5", "#f4e7b0", "#d9d9d9")
"""Fastest first. Told apart with any colour vision by their lightness too; and the names stand there."""
CHOSEN, BARRED, FRAME = "#E69F00", "#d3cfc4", "#f8f6f1"
MARKS = {"chosen": CHOSEN, "barred": BARRED}
ROOM = WIDTH - 0.3
LEGEND = 0.3


def draw(m: Machine) -> Figure:
    """The drawing. Legible on light and dark pages."""
    laid = arrange(boxes(m), ROOM)
    height = laid.height + LEGEND + 0.1
    with style():
        figure, axes = frame(height, title(m), _note(m))
        axes.set_axis_off()
        axes.set_xlim(-0.03, max(ROOM, laid.width) + 0.03)
        axes.set_ylim(height, -0.03)
        fills = {kind.name: fill for kind, fill in zip(m.kinds or (), KIND_FILLS * len(m.kinds or ()), strict=False)}
        for placed in place(laid):
            _box(axes, placed, fills)
        _legend(axes, m, laid.height + 0.12)
        figure.draw_without_rendering()
        settle(figure)
    return figure


def rendered(figure: Figure, kind: str) -> bytes:
    """The file's bytes: svg or png."""
    return render(figure, kind)


def title(m: Machine) -> str:
    """What it is made of, in numbers; what is not known is not counted."""
    counts = (("package", m.packages), ("NUMA node", m.nodes), ("core", m.cores), ("thread", m.online))
    parts = [f"{len(found)} {name}{'s' if len(found) != 1 else ''}" for name, found in counts if found]
    if m.kinds and len(m.kinds) > 1:
        parts.append(f"{len(m.kinds)} kinds of cores")
    built = ", ".join(parts) or "Nothing is told of this machine"
    return built if m.choice.cpu is None else f"{built}; measure on CPU {m.choice.cpu}"


def _note(m: Machine) -> str:
    condensed = "Of boxes that are alike one is drawn. " if len(m.online or ()) > DETAILED else ""
    return f"{m.cpu_model or 'unknown CPU'}. {condensed}CPU {m.choice.cpu}: {'; '.join(m.choice.why)}."


def _box(axes: Axes, p: Placed, fills: dict[str, str]) -> None:
    role, mark = p.box.role, p.box.mark
    if role == "machine":
        return
    if framed(p.box):
        _patch(axes, p, p.height, facecolor=FRAME, edgecolor=FAINT, linewidth=0.5)
    face = MARKS[mark] if mark else fills.get(p.box.kind, FILLS["core"]) if role == "core" else FILLS.get(role, PAPER)
    strong = mark == "chosen"
    _patch(
        axes, p, p.head if role == "cache" else p.height,
        facecolor=face, edgecolor=INK if strong else FAINT, linewidth=1.8 if strong else 0.7,
        hatch="////" if role == "offline" else None, linestyle="--" if role == "more" else "-",
    )  # fmt: skip
    band = p.head if p.head else p.height
    axes.text(
        p.x + p.width / 2, p.y + band / 2 + (0.03 if p.head and role != "cache" else 0), p.box.label,
        size=7, ha="center", va="center", linespacing=1.15, weight="bold" if strong else "normal",
        color=FAINT if mark == "barred" else INK,
        bbox={"facecolor": PAPER, "edgecolor": "none", "pad": 1.0} if role == "offline" else None,
    )  # fmt: skip


def _patch(axes: Axes, p: Placed, height: float, **look: Any) -> None:
    axes.add_patch(Rectangle((p.x, p.y), p.width, height, **look))


def _legend(axes: Axes, m: Machine, y: float) -> None:
    x = 0.0
    for text, look in _entries(m):
        axes.add_patch(Rectangle((x, y), 0.2, 0.14, linewidth=0.7, **{"edgecolor": FAINT, **look}))
        axes.text(x + 0.26, y + 0.075, text, size=7.5, va="center")
        x += 0.45 + len(text) * LETTER * 1.07


def _entries(m: Machine) -> Iterator[tuple[str, dict[str, Any]]]:
    if m.choice.cpu is not None:
        yield f"CPU {m.choice.cpu}: pin here", {"facecolor": CHOSEN, "edgecolor": INK}
    if m.kinds and len(m.kinds) > 1:
        for kind, fill in zip(m.kinds, KIND_FILLS * len(m.kinds), strict=False):
            yield kind.name, {"facecolor": fill}
    if (m.online or m.allowed.cpus) - m.allowed.cpus:
        yield "not allowed", {"facecolor": BARRED}
    if m.offline:
        yield "offline", {"facecolor": PAPER, "hatch": "////"}
