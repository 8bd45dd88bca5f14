"""The studies: each builds slots, measures them and returns a Recording."""

from __future__ import annotations

import difflib
import importlib
import pkgutil
from typing import Any

from ..errors import UsageError, explain
from ..recording import Recording
from .options import Options

__all__ = ["NAMES", "Options", "run"]

NAMES = tuple(sorted(m.name for m in pkgutil.iter_modules(__path__) if m.name != "options"))


def run(name: str, options: Options | None = None, **settings: Any) -> Recording:
    """Run one study: `run("scan", quick=True)`. UsageError with the nearest names when there is no such study."""
    if name not in NAMES:
        near = difflib.get_close_matches(name, NAMES, 2, 0.4)
        remedy = f"did you mean {' or '.join(near)}?" if near else ""
        raise UsageError(explain(f"unknown study {name!r}", expected=", ".join(NAMES), remedy=remedy))
    study = importlib.import_module(f"{__name__}.{name}")
    recording: Recording = study.run(options or Options(**settings))
    return recording
