"""Animations out of a recording: packets on their way through a list, a sorted list and a table, and code on its way into a cache.

What moves is enumerated: the same packets as were measured, made again from the recording's seed. How fast it moves is the
recording's: ns per packet of each arm, spread over the predicates that each packet asks. Nothing is measured here.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.container import BarContainer
from matplotlib.figure import Figure
from numpy.typing import NDArray
from PIL import Image

from .. import wording
from ..handlers import HandlerSet, handlers
from ..probes import expected_probes, sorted_order
from ..recording import Recording
from ..scenes import Scene, scenes
from ..summary import ns
from ..traffic import Traffic, make, zipf
from .style import COLOURS, FAINT, GRID, INK, frame, settle, style

FRAMES, PER_SECOND = 72, 12
DPI = 80
NEAR = "#a8c8dd"
FEW, MANY = 9, 72
"""Packets that the slowest lane finishes while it is looked at: predicate by predicate, and one a frame."""

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Lane:
    """One arm on its way. ends: when each packet is done, ns; places: what each packet looks at in turn, a list for each packet."""

    name: str
    colour: str
    ends: Floats
    places: list[NDArray[np.int64]]

    def at(self, t: float) -> tuple[int, float]:
        """How many packets are done at time t, and which part of the next one."""
        done = int(np.searchsorted(self.ends, t, side="right"))
        begin = self.ends[done - 1] if done else 0.0
        return done, (t - begin) / (self.ends[min(done, len(self.ends) - 1)] - begin)


def races(recording: Recording) -> Scene | None:
    """The scene that packets can be followed through: 100 handlers or fewer, chain bodies, scan and table, made by a seed."""
    found = [s for m in recording.measurements for s in scenes(m) if s.has("scan", "table-compact")]
    fit = [s for s in found if s.slot.handlers <= 100 and s.slot.body == "chain" and s.slot.traffic in ("uniform", "zipf")]
    return max(fit, key=lambda s: (s.slot.handlers, s.slot.size == "fat"), default=None)


def sorts(recording: Recording) -> Scene | None:
    """The same with a sorted list, under zipf traffic."""
    found = [s for m in recording.measurements for s in scenes(m) if s.has("scan", "scan-ordered", "table-compact")]
    return next((s for s in found if s.slot.traffic == "zipf" and s.slot.handlers <= 100), None)


def caches(recording: Recording) -> Scene | None:
    """Mixed packets through fat branchy or wide bodies, where there is a hot scene beside it."""
    found = [s for m in recording.measurements for s in scenes(m) if m.name == "mechanism" and s.has("erasure")]
    fat = [s for s in found if s.slot.size == "fat" and s.slot.body in ("branchy", "wide") and s.slot.traffic == "mixed"]
    return fat[-1] if fat and (recording.environment.get("caches") or {}).get("L1i") else None


def scan_vs_table(recording: Recording) -> Iterator[Figure]:
    """The brief's loop beside the table, the same packets in both."""
    return _listed(recording, races(recording), ("scan", "table-compact"))


def ordering(recording: Recording) -> Iterator[Figure]:
    """The list as it was registered, the list sorted by frequency, and the table."""
    return _listed(recording, sorts(recording), ("scan", "scan-ordered", "table-compact"))


def _listed(recording: Recording, scene: Scene | None, arms: tuple[str, ...]) -> Iterator[Figure]:
    assert scene is not None, "asked only where the recording has it"
    slot = scene.slot
    hs = handlers(slot.handlers, body=slot.body, size=slot.size, residual=slot.residual)
    tr = make(slot.traffic, hs, seed=recording.seed)
    lanes = [_lane(scene, arm, hs, tr) for arm in arms]
    cost = [ns(scene.measurement, scene.arms[arm]) for arm in arms]
    title = f"{slot.handlers} handlers, {slot.traffic} traffic: " + ", ".join(
        f"{arm} {wording.measured(e)} ns" for arm, e in zip(arms, cost, strict=True)
    )
    what = "place in the handler list; lit: predicates asked, then the handler that runs"
    return _frames(recording, title, lanes, slot.handlers, what)


def _lane(scene: Scene, arm: str, hs: HandlerSet, tr: Traffic) -> Lane:
    """Each packet takes what the table takes, and a part of the rest for every predicate that it asks."""
    m = scene.measurement
    asked = expected_probes(arm, hs, tr).astype(np.float64)
    table, own = (ns(m, scene.arms[a]).value for a in ("table-compact", arm))
    each = (own - table) / asked.mean() if asked.mean() and arm != "table-compact" else 0.0
    takes = np.maximum(table + each * asked[:4096], 1.0)
    order = sorted_order(hs, hs.frequency(tr.packets)) if arm == "scan-ordered" else hs.order
    owner, place = hs.select(tr.packets[:4096]), np.argsort(order)
    looks = [np.arange(int(n)) if arm != "table-compact" else place[[max(int(i), 0)]] for n, i in zip(asked, owner, strict=False)]
    return Lane(arm, COLOURS[arm], np.cumsum(takes), looks[:4096])


def interleaving(recording: Recording) -> Iterator[Figure]:
    """Hot and mixed packets, and whose code is in the first instruction cache: the least recently used goes."""
    from ..machinecode import code_sizes

    scene = caches(recording)
    assert scene is not None, "asked only where the recording has it"
    m, slot = scene.measurement, scene.slot
    alike = [s for s in scenes(m) if s.has("erasure") and (s.slot.body, s.slot.size) == (slot.body, slot.size)]
    hot = next(s for s in alike if s.slot.traffic == "hot")
    size = (code_sizes().get(f"{slot.body} {slot.size}") or {"bytes": 1784})["bytes"]
    room = int(recording.environment["caches"]["L1i"] // size)
    hs = handlers(slot.handlers, body=slot.body, size=slot.size, residual=0)
    mixed = zipf(hs, seed=recording.seed, shuffle=False, unmatched=0, pool=4096)
    sequence = {"hot": np.zeros(4096, np.int64), "mixed": hs.select(mixed.packets).astype(np.int64)}
    lanes = []
    for name, where, colour in (("hot", hot, "#D55E00"), ("mixed", scene, "#0072B2")):
        takes = ns(m, where.arms["erasure"]).value
        lanes.append(Lane(name, colour, takes * np.arange(1, 4097.0), resident(sequence[name], room)))
    cost = [wording.measured(ns(m, where.arms["erasure"])) for where in (hot, scene)]
    title = f"Code of {slot.handlers} fat {slot.body} handlers, room for {room} in L1i: hot {cost[0]} ns a packet, mixed {cost[1]} ns"
    return _frames(recording, title, lanes, slot.handlers, "handler; lit: its code is in the cache, bright: it runs", whole=True)


def resident(sequence: NDArray[np.int64], room: int) -> list[NDArray[np.int64]]:
    """Before each packet, whose code is in a cache that holds `room` of them, oldest first; the packet's own handler is last."""
    kept: list[int] = []
    found = []
    for i in sequence.tolist():
        if i in kept:
            kept.remove(i)
        kept.append(i)
        del kept[:-room]
        found.append(np.array(kept, np.int64))
    return found


def _frames(recording: Recording, title: str, lanes: list[Lane], cells: int, what: str, whole: bool = False) -> Iterator[Figure]:
    """One drawing, changed from frame to frame."""
    until = max(lane.ends[(MANY if whole else FEW) - 1] for lane in lanes)
    foot = f"Speeds from the recording of {recording.created[:10]}; {recording.environment.get('cpu_model') or 'unknown CPU'}."
    figure, grid = frame(0.62 * len(lanes) + 0.5, title, foot, nrows=len(lanes), squeeze=False)
    bars = [_empty(axes, cells) for axes in grid.flat]
    grid.flat[-1].set_xlabel(what, fontsize=9)
    figure.draw_without_rendering()
    settle(figure)
    for t in np.linspace(0, until, FRAMES, endpoint=False):
        figure.texts[-1].set_text(f"{foot} {t:.0f} ns of {until:.0f}.")
        for lane, axes, row in zip(lanes, grid.flat, bars, strict=True):
            _show(axes, row, lane, float(t), whole)
        yield figure


def _empty(axes: Axes, cells: int) -> BarContainer:
    axes.set_xlim(0, cells + 1)
    axes.set_ylim(0, 1)
    axes.set_yticks([])
    axes.grid(visible=False)
    axes.set_title("0", color=FAINT, size=10)
    return axes.bar(np.arange(1, cells + 1), 1, 0.86)


def _show(axes: Axes, bars: BarContainer, lane: Lane, t: float, whole: bool) -> None:
    done, part = lane.at(t)
    looks = lane.places[min(done, len(lane.places) - 1)]
    shown = looks if whole else looks[: max(1, round(part * len(looks)))]
    colours = np.array([GRID] * len(bars), object)
    colours[shown] = NEAR if whole else lane.colour
    if len(looks) and (whole or part > 0.85):
        colours[looks[-1]] = lane.colour if whole else INK
    for bar, colour in zip(bars, colours, strict=True):
        bar.set_facecolor(colour)
    axes.set_title(f"{lane.name}: {done} packets done", color=FAINT, size=10)


ANIMATIONS: dict[str, tuple[Callable[[Recording], Scene | None], Callable[[Recording], Iterator[Figure]]]] = {
    "scan-vs-table": (races, scan_vs_table),
    "ordering": (sorts, ordering),
    "interleaving": (caches, interleaving),
}


def names(recording: Recording) -> tuple[str, ...]:
    """The animations that this recording holds the cells for."""
    return tuple(name for name, (wants, _) in ANIMATIONS.items() if wants(recording) is not None)


def gif(recording: Recording, name: str) -> bytes:
    """One animation as a GIF that repeats; equal bytes for equal recordings under one Matplotlib and Pillow."""
    pictures = []
    with style():
        for figure in ANIMATIONS[name][1](recording):
            out = io.BytesIO()
            figure.savefig(out, format="png", dpi=DPI)
            pictures.append(Image.open(out).convert("P", palette=Image.Palette.ADAPTIVE, colors=32))
    made = io.BytesIO()
    pictures[0].save(made, "GIF", save_all=True, append_images=pictures[1:], duration=1000 // PER_SECOND, loop=0, optimize=True)
    return made.getvalue()
