"""Figures out of a recording: `draw(recording, name)`, `names(recording)`, `save_all(recording, folder)`.

Nothing is measured and no global state of Matplotlib is used. The same recording gives the same bytes. A study adds a
figure with one line in DRAWERS: when it can be drawn, and what draws it.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from matplotlib.figure import Figure

from ..errors import UsageError, explain
from ..files import check_writable, write_atomic
from ..recording import Recording
from . import advice, between, boundary, costs, dispatch, machine, mechanism, noise, past, tail, winner
from .style import FORMATS, render, settle, style

__all__ = ["DRAWERS", "Drawer", "draw", "names", "save_all"]


@dataclass(frozen=True)
class Drawer:
    """wants tells whether a recording holds what the figure shows."""

    wants: Callable[[Recording], bool]
    draw: Callable[[Recording], Figure]


DRAWERS = {
    "scan-vs-table": Drawer(dispatch.has_counts, dispatch.scan_vs_table),
    "where-the-win-comes-from": Drawer(dispatch.has_wins, dispatch.where_the_win_comes_from),
    "budget": Drawer(dispatch.has_budget, dispatch.budget),
    "pool": Drawer(machine.has_pools, machine.pool),
    "instrument": Drawer(machine.has_floor, machine.instrument),
    "tail": Drawer(tail.has_tails, tail.tail),
    "mechanism": Drawer(mechanism.has_mechanisms, mechanism.mechanism),
    "body-kinds": Drawer(mechanism.has_mechanisms, mechanism.body_kinds),
    "footprint": Drawer(mechanism.has_footprint, mechanism.footprint),
    "locality": Drawer(mechanism.has_locality, mechanism.locality),
    "boundary": Drawer(boundary.has_boundary, boundary.boundary),
    "arms-past-the-table": Drawer(past.has_past, past.arms_past_the_table),
    "advice-costs": Drawer(advice.has_advice, advice.costs),
    "advice-traffic": Drawer(advice.has_advice, advice.traffic),
    "roundtrip": Drawer(partial(between.has, "roundtrip"), between.roundtrip),
    "ring": Drawer(partial(between.has, "ring"), between.ring),
    "lock": Drawer(partial(between.has, "lock"), between.lock),
    "pipeline": Drawer(partial(between.has, "pipeline"), between.pipeline),
    "costs-latency": Drawer(costs.has_costs, costs.latency),
    "costs-targets": Drawer(costs.has_costs, costs.targets),
    "winner-map": Drawer(winner.has_winners, winner.winner_map),
    "noise-ladder": Drawer(noise.has_noise, noise.ladder),
}


def names(recording: Recording) -> tuple[str, ...]:
    """The figures that this recording holds the cells for."""
    return tuple(name for name, drawer in DRAWERS.items() if drawer.wants(recording))


def draw(recording: Recording, name: str) -> Figure:
    """One figure. UsageError for a name that does not exist, or that this recording has nothing to show for."""
    if name not in DRAWERS:
        near = difflib.get_close_matches(name, DRAWERS, 1, 0.4)
        remedy = f"did you mean {near[0]}?" if near else ""
        raise UsageError(explain("no such figure", expected=", ".join(DRAWERS), got=name, remedy=remedy))
    if not DRAWERS[name].wants(recording):
        can = ", ".join(names(recording)) or "no figure"
        raise UsageError(explain(f"the recording holds no cells for {name}", recording.study, f"one of {can}", name))
    with style():
        figure = DRAWERS[name].draw(recording)
        figure.draw_without_rendering()  # ticks are made when first drawn: now, in our style, and not in the caller's
        settle(figure)
    return figure


def save_all(recording: Recording, folder: str | os.PathLike[str]) -> list[Path]:
    """Every figure as SVG and PNG into `folder`, which is made where missing; the files written, each whole or not at all."""
    out = check_writable(folder)
    written = []
    for name in names(recording):
        figure = draw(recording, name)
        for kind in FORMATS:
            written.append(out / f"{name}.{kind}")
            write_atomic(written[-1], render(figure, kind))
    return written
