"""Animations out of a recording, as GIF: `names(recording)`, `save_all(recording, folder)`. Nothing is measured.

Each shows one thing that a table of numbers does not: predicates walked packet by packet, a list that is sorted, rounds that add up.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

from matplotlib.figure import Figure

from ..errors import UsageError, explain
from ..figures.style import style
from ..files import check_writable, write_atomic
from ..recording import Recording
from . import rounds, sorting, walk
from .film import gif

Frames = Callable[[Recording], Iterator[tuple[Figure, int]] | None]

ANIMATIONS: dict[str, Frames] = {"walk": walk.frames, "sorting": sorting.frames, "rounds": rounds.frames}
"""Name -> what yields (figure, milliseconds it is shown) for each frame; None for a recording that has nothing to show."""


def save_all(recording: Recording, folder: str | os.PathLike[str]) -> list[Path]:
    """Every animation that the recording holds the cells for; the files written. UsageError when there is none."""
    out = check_writable(folder)
    written = []
    for name, frames in ANIMATIONS.items():
        with style():
            found = frames(recording)
            if found is None:
                continue
            data = gif(found)
        written.append(out / f"{name}.gif")
        write_atomic(written[-1], data)
    if not written:
        wanted = "a scan beside table-compact under generated traffic, or 16 rounds"
        raise UsageError(explain("nothing to animate", recording.study, wanted))
    return written
