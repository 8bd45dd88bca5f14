"""The studies: each builds slots, measures them and returns a Recording.

Each is a module with run(options), and can be called: `dl.studies.scan(quick=True)`.
"""

from __future__ import annotations

import difflib
import importlib
import pkgutil
import sys
from types import ModuleType
from typing import Any

from ..errors import UsageError, explain
from ..recording import Recording
from .options import Options

__all__ = ["NAMES", "Options", "run"]

NAMES = tuple(sorted(m.name for m in pkgutil.iter_modules(__path__) if m.name != "options"))


def run(name: str, options: Options | None = None, **settings: Any) -> Recording:
    """Run one study: `run("scan", quick=True)`. UsageError with the nearest names when there is no such study."""
    name = name.replace("-", "_")
    if name not in NAMES:
        near = difflib.get_close_matches(name, NAMES, 2, 0.4)
        remedy = f"did you mean {' or '.join(near)}?" if near else ""
        raise UsageError(explain(f"unknown study {name!r}", expected=", ".join(NAMES), remedy=remedy))
    recording: Recording = __getattr__(name).run(options or Options(**settings))
    return recording


class _Study(ModuleType):
    """A study's module that can be called with the settings of Options."""

    def __call__(self, **settings: Any) -> Recording:
        recording: Recording = self.run(Options(**settings))
        return recording


class _Studies(ModuleType):
    """This package. A study becomes callable when it is bound here, however it was first imported."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name in NAMES and type(value) is ModuleType:
            value.__class__ = _Study
        super().__setattr__(name, value)


def __getattr__(name: str) -> Any:
    """The module of a study, loaded when first used."""
    if name not in NAMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return importlib.import_module(f"{__name__}.{name}")


sys.modules[__name__].__class__ = _Studies
