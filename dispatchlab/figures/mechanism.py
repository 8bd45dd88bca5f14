"""Figures about calling the handler and the code behind it: mechanism, body kinds, the map of footprints, locality."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from .. import mechanisms, summary, wording
from ..intervals import Estimate
from ..mechanisms import CONTROL, Contrast, contrasts
from ..recording import Measurement, Recording, Slot
from .notes import each, note
from .parts import reach
from .style import INK, PAPER, frame

HOT, MIXED, TARGET, FETCH = "#56B4E9", "#D55E00", "#E69F00", "#0072B2"
BOX = {"facecolor": PAPER, "edgecolor": "none", "pad": 0.6}


def has_mechanisms(recording: Recording) -> bool:
    """A recording of the study `mechanism`."""
    m = mechanisms.find(recording)
    return m is not None and bool(contrasts(m))


def mechanism(recording: Recording) -> Figure:
    """Left: hot and mixed, fat chain bodies, and the difference. Right: the mechanism alone, tiny bodies less direct-call."""
    m = _of(recording, mechanisms.NAME)
    found = [c for c in contrasts(m) if c.body == "chain"]
    figure, (left, right) = frame(
        0.36 * len(found) + 1.0,
        _mechanism_title(found),
        note(recording, [m], mechanisms.ESTIMATES * len(contrasts(m))),
        aside=f"{m.slots[0].handlers} handlers, the same selection for all; hot: one handler, mixed: all by a Zipf law",
        ncols=2,
        sharey=True,
        width_ratios=(3, 2),
    )
    for row, c in enumerate(found):
        for e, colour, place in ((c.hot, HOT, -0.19), (c.mixed, MIXED, 0.19)):
            left.barh(row + place, e.value, 0.34, color=colour, xerr=_whiskers(e), ecolor=INK, error_kw={"linewidth": 1.1})
        left.annotate(
            wording.measured(c.change), (c.mixed.value + reach(c.mixed)[1], row + 0.19), (5, 0),
            textcoords="offset points", va="center", size=8.5, bbox=BOX,
        )  # fmt: skip
        for call, colour, marker in ((c.call, HOT, "o"), (c.call_mixed, MIXED, "D")):
            if call is not None:
                right.errorbar(call.value, row, xerr=_whiskers(call), fmt=marker, color=colour, ecolor=INK)
                right.annotate(f"{call.value:.1f}", (call.value, row), (0, 6), textcoords="offset points", ha="center", size=8)
    for colour, label in ((HOT, "hot"), (MIXED, "mixed; beside it: mixed - hot")):
        left.barh([0], [0], color=colour, label=label)
    _rows(left, [c.arm for c in found])
    right.tick_params(axis="y", length=0)
    right.grid(axis="y", visible=False)
    right.axvline(0, color=INK, linewidth=1.0)
    left.set_xlim(right=left.dataLim.x1 * 1.3)
    left.set_xlabel("ns per packet, fat chain bodies")
    right.set_xlabel("ns more than direct-call, tiny bodies")
    left.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2, fontsize=8.5, borderpad=0)
    return figure


def _mechanism_title(found: list[Contrast]) -> str:
    calls = [(c.call, c.call_mixed) for c in found if c.arm in ("virtual", "erasure", "variant", "static")]
    virtual = next((c for c in found if c.arm == "virtual"), None)
    control = next((c for c in found if c.arm == CONTROL), None)
    hot, mixed = ([e.value for e in column if e is not None] for column in zip(*calls, strict=True)) if calls else ([], [])
    said = "Calling a handler"
    if hot and mixed:
        said += (
            f" costs {min(hot):.1f} to {max(hot):.1f} ns while the target stays, {min(mixed):.1f} to {max(mixed):.1f} ns when it "
            "changes"
        )
    if virtual is not None:
        said += f"; with the code behind, virtual pays {wording.measured(virtual.change)} ns for the change"
    if control is not None:
        said += ", the control nothing" if control.control_ok else "; the control is not zero"
    return said


def body_kinds(recording: Recording) -> Figure:
    """Per body kind and arm: what the mispredicted target costs and what fetching the code costs beyond it."""
    m = _of(recording, mechanisms.NAME)
    every = contrasts(m)
    bodies = list(dict.fromkeys(c.body for c in every))
    shared = [c.arm for c in every if c.body == bodies[-1]]
    figure, grid = frame(
        0.42 * len(shared) + 0.9,
        _bodies_title(every),
        note(recording, [m], mechanisms.ESTIMATES * len(every)),
        aside=_misses(recording, bodies),
        ncols=len(bodies),
        sharey=True,
        sharex=True,
        squeeze=False,
    )
    for axes, body in zip(grid[0], bodies, strict=True):
        for row, arm in enumerate(shared):
            c = next(c for c in every if (c.body, c.arm) == (body, arm))
            for e, colour, place in ((c.target, TARGET, -0.19), (c.fetch, FETCH, 0.19)):
                axes.barh(row + place, e.value, 0.34, color=colour, xerr=_whiskers(e), ecolor=INK, error_kw={"linewidth": 1.1})
        axes.axvline(0, color=INK, linewidth=1.0)
        axes.set_title(f"{body} bodies", color=INK, weight="bold")
        axes.set_xlabel("ns per packet")
        _rows(axes, shared)
    for colour, label in ((TARGET, "mispredicted target"), (FETCH, "fetching the code")):
        grid[0][-1].barh([0], [0], color=colour, label=label)
    grid[0][-1].legend(loc="upper right", fontsize=8.5, borderpad=0, borderaxespad=0)
    return figure


def _bodies_title(every: list[Contrast]) -> str:
    found = [c for c in every if c.arm == "virtual"]
    return "Fetching the code of fat handlers costs " + ", ".join(
        f"{c.body} {wording.measured(c.fetch)} ns" + ("" if c.fetch.low > 0 or c.fetch.high < 0 else " (not told from zero)")
        for c in found
    )


def _misses(recording: Recording, bodies: list[str]) -> str:
    counts = mechanisms.counts_of(recording)
    told = []
    for body in bodies:
        fat, tiny = (mechanisms.more(counts, body, "virtual", size, "l1i_misses") for size in ("fat", "tiny"))
        if fat is not None and tiny is not None:
            told.append(f"{body} {fat - tiny:.1f}")
    return f"simulated L1i misses behind the fetch, virtual, per packet: {', '.join(told)}" if told else "100 handlers, hot and mixed"


def has_footprint(recording: Recording) -> bool:
    """A recording of the study `footprint`."""
    return any(m.name == "footprint" for m in recording.measurements) and bool(recording.extra.get("code"))


def footprint(recording: Recording) -> Figure:
    """A map for each body: handlers x bytes of one, the colour what a packet costs more than with one handler; caches as lines."""
    m = _of(recording, "footprint")
    code = recording.extra["code"]
    at = {(s.body, s.size, s.handlers): i for i, s in enumerate(m.slots) if s.arm != CONTROL and s.role != "twin"}
    bodies = list(dict.fromkeys(body for body, _, _ in at))
    counts = sorted({n for _, _, n in at})
    sizes = sorted({size for _, size, _ in at}, key=lambda size: float(code[f"{bodies[0]} {size}"]["bytes"]))
    cells = [(b, s, n) for b in bodies for s in sizes for n in counts[1:]]
    sure = each(len(cells))
    rise = {c: summary.contrast(m, [(at[c], 1.0), (at[c[0], c[1], counts[0]], -1.0)], confidence=sure) for c in cells}
    most = max(e.value for e in rise.values())
    figure, grid = frame(
        2.9,
        _footprint_title(rise, bodies, counts[-1]),
        note(recording, [m], len(cells)),
        aside="written: ns per packet more than with one handler of that size; grey: the interval holds zero"
        + ("" if recording.extra.get("itlb_reach") else "; iTLB reach: not told by this CPU"),
        ncols=len(bodies),
        squeeze=False,
    )
    for axes, body in zip(grid[0], bodies, strict=True):
        values = np.array([[rise[body, size, n].value for n in counts[1:]] for size in sizes])
        axes.imshow(values, cmap="YlOrRd", vmin=0, vmax=most, aspect="auto", origin="lower")
        for y, size in enumerate(sizes):
            for x, n in enumerate(counts[1:]):
                e = rise[body, size, n]
                dark = e.value > 0.6 * most
                colour = "#5c5c5c" if e.low <= 0 <= e.high and not dark else (PAPER if dark else INK)
                axes.text(x, y, f"{e.value:.0f}" if abs(e.value) >= 9.5 else f"{e.value:.1f}", ha="center", va="center",
                          size=8, color=colour)  # fmt: skip
        _limits(axes, recording, [float(code[f"{body} {size}"]["bytes"]) for size in sizes], counts[1:])
        axes.set_title(f"{body} bodies", color=INK, weight="bold", pad=16)
        axes.set_xticks(range(len(counts) - 1), [str(n) for n in counts[1:]])
        axes.set_yticks(range(len(sizes)), [f"{size}\n{code[f'{body} {size}']['bytes']:.0f} B" for size in sizes])
        axes.set_xlabel("handlers")
        axes.grid(visible=False)
        axes.tick_params(length=0)
    grid[0][0].set_ylabel("bytes of one handler's code")
    return figure


def _limits(axes: Axes, recording: Recording, sizes: list[float], counts: list[int]) -> None:
    """Steps between the cells that fit into a cache and those that do not, for each cache, and the reach of the iTLB."""
    caches = recording.environment.get("caches") or {}
    limits = [("L1i", caches.get("L1i"), "-"), ("L2", caches.get("L2"), "--"), ("iTLB", recording.extra.get("itlb_reach"), ":")]
    for name, limit, stroke in limits:
        if not limit:
            continue
        fits = [sum(size * n <= limit for n in counts) for size in sizes]
        if all(n == len(counts) for n in fits):
            continue
        x, y = [fits[0] - 0.5], [-0.5]
        for row, n in enumerate(fits):
            x += [n - 0.5, n - 0.5]
            y += [row - 0.5, row + 0.5]
        axes.plot(x, y, color=INK, linewidth=1.6, linestyle=stroke)
        late = fits[-1] > len(counts) - 3
        x_text, side = (len(counts) - 0.5, "right") if late else (fits[-1] - 0.5, "center")
        axes.text(x_text, len(sizes) - 0.46, f"{name} {wording.size(limit)}", size=7.5, va="bottom", ha=side, color=INK)


def _footprint_title(rise: dict[tuple[str, str, int], Estimate], bodies: list[str], most: int) -> str:
    parts = [f"{wording.measured(rise[body, 'fat', most])} ns with {body} bodies" for body in bodies]
    return f"{most} fat handlers instead of one cost {', '.join(parts)}"


def has_locality(recording: Recording) -> bool:
    """A recording of the study `locality`."""
    return any(m.name == "locality" for m in recording.measurements)


STYLES = {"virtual": ("#0072B2", "o"), "erasure": ("#D55E00", "s"), "erasure-inline": ("#009E73", "D"), CONTROL: ("#5c5c5c", "v")}


def locality(recording: Recording) -> Figure:
    """A panel for each number of handlers: ns per packet of each arm by the size of the state, packed and scattered."""
    m = _of(recording, "locality")
    slots = [(i, s) for i, s in enumerate(m.slots) if s.role != "twin"]
    counts = sorted({s.handlers for _, s in slots})
    places = list(dict.fromkeys((s.state, s.objects) for _, s in slots))
    sure = each(len(slots))
    figure, grid = frame(
        3.2,
        _locality_title(m, slots, counts[-1]),
        note(recording, [m], len(slots)),
        aside="tiny handlers that change one word of their state for every packet; uniform traffic",
        ncols=len(counts),
        sharey=True,
        squeeze=False,
    )
    for axes, count in zip(grid[0], counts, strict=True):
        for n, (arm, (colour, marker)) in enumerate(STYLES.items()):
            mine = [(places.index((s.state, s.objects)), summary.ns(m, i, confidence=sure))
                    for i, s in slots if s.arm == arm and s.handlers == count]  # fmt: skip
            if mine:
                x = [place + (n - 1.5) * 0.14 for place, _ in mine]
                whiskers = np.array([reach(e) for _, e in mine]).T
                axes.errorbar(x, [e.value for _, e in mine], yerr=whiskers, fmt=marker, color=colour, ecolor=INK, label=arm)
        names = [f"{wording.size(state) if state else 'none'}\n{how}" for state, how in places]
        axes.set_xticks(range(len(places)), names, size=8.5)
        axes.set_xlabel("state of each handler, and where objects lie")
        axes.set_title(f"{count} handlers", color=INK, weight="bold")
        axes.grid(axis="x", visible=False)
    grid[0][0].set_ylim(0, max(axes.dataLim.y1 for axes in grid[0]) * 1.06)
    grid[0][0].set_ylabel("ns per packet")
    grid[0][0].legend(loc="upper left", fontsize=8.5)
    return figure


def _locality_title(m: Measurement, slots: list[tuple[int, Slot]], count: int) -> str:
    at = {(s.arm, s.state, s.objects): i for i, s in slots if s.handlers == count}
    said = []
    for arm in ("virtual", "erasure-inline"):
        pair = [at.get((arm, 64, where)) for where in ("scattered", "packed")]
        if pair[0] is not None and pair[1] is not None:
            e = summary.contrast(m, [(pair[0], 1.0), (pair[1], -1.0)])
            said.append(f"{arm} {wording.measured(e)} ns")
    return f"Scattering {count} objects with a cache line of state each over the heap costs {', '.join(said)} a packet"


def _of(recording: Recording, name: str) -> Measurement:
    return next(m for m in recording.measurements if m.name == name)


def _rows(axes: Axes, names: list[str]) -> None:
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="y", visible=False)


def _whiskers(e: Estimate) -> list[list[float]]:
    return [[end] for end in reach(e)]
