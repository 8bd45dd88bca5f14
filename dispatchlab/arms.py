"""The arms that the engine has, and an arm prepared over handlers and traffic."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _engine
from .errors import UsageError, explain
from .handlers import HandlerSet
from .traffic import Traffic

MECHANISMS = tuple(row[0] for row in _engine.arms() if row[1] == "mechanism")
"""The arms that differ only in how they call: one selection, by key alone, so they hold no residual predicates."""

BATCHES = tuple(row[0] for row in _engine.arms() if row[1] == "batch")
"""The arms that answer packets together, as many as their name ends in, where the clock tells them that it pays."""

CLOSED = ("variant", "static", "computed-goto", "switch")
"""Those whose handlers were all known when they were compiled."""

ANSWERS = ("list", "handler 0", "key", "key, serial checksum")


@dataclass(frozen=True)
class Arm:
    """One complete way to find a handler and to call it.

    answers: "list" when every packet gets what the first match in the list answers; the controls answer otherwise.
    """

    name: str
    family: str
    guarantee: str
    description: str
    answers: str


def arms() -> list[Arm]:
    """Every arm, in the order of the engine's arms.def."""
    return [Arm(name, family, guarantee, text, ANSWERS[a]) for name, family, guarantee, text, a in _engine.arms()]


def find(name: str) -> Arm:
    """The arm of that name; UsageError with the nearest names when there is none."""
    known = {arm.name: arm for arm in arms()}
    if name in known:
        return known[name]
    near = difflib.get_close_matches(str(name), known, 3, 0.4)
    remedy = f"did you mean {' or '.join(near)}?" if near else ""
    raise UsageError(explain(f"unknown arm {name!r}", expected=", ".join(known), remedy=remedy))


def prepare(
    name: str, hs: HandlerSet, tr: Traffic, delay_ppm: int = 0, trained: Traffic | None = None
) -> Any:
    """An engine slot: the arm's own data built over the handlers, ready to run the packets.

    Arms that sort get the frequencies of `trained`; of the very packets they will run when that is None, which is every
    advantage that sorting could have.
    Raises UsageError when the arm is unknown or cannot hold such a set.
    """
    find(name)
    try:
        return _engine.slot(name, hs.engine, tr.packets, hs.frequency((trained or tr).packets), delay_ppm)
    except ValueError as error:
        raise UsageError(explain("cannot hold these handlers", name, got=str(error))) from error


def results(name: str, hs: HandlerSet, tr: Traffic) -> NDArray[np.uint32]:
    """What the arm answers for each packet: uint32[n], 0 where no handler accepts."""
    return np.frombuffer(prepare(name, hs, tr).results(), np.uint32)
