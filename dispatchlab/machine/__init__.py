"""The machine below the measurement: what it is, how to make it repeatable, and how to put it back."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from .report import Machine

__all__ = ["drawing", "examine", "keep"]


def examine(root: str | os.PathLike[str] = "/") -> Machine:
    """How the machine, or a recorded tree, is built and set, and which CPU to pin to. UsageError where `root` is no folder."""
    from .report import machine, tree_of

    return machine(tree_of(root))


def keep(folder: str | os.PathLike[str], root: str | os.PathLike[str] = "/") -> int:
    """Write the files that `examine` reads into an empty folder, for `examine(folder)`; their number. Nothing in them names the
    machine or anybody. UsageError, Error."""
    from .record import record
    from .report import machine, tree_of

    tree = tree_of(root)
    machine(tree)
    return record(tree, Path(folder))


def drawing(m: Machine) -> Figure:
    """The machine as nested boxes."""
    from .draw import draw

    return draw(m)
