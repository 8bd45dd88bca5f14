"""Does a plugin keep the rules of plugin.h? Inspection, then every rule in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..errors import PluginError, ToolError, explain
from ..tables import Table
from .inspection import ENTRY, canonical, inspect
from .loading import HOST_LEVEL

PROGRAM = "import sys; sys.path.append(sys.argv.pop(1)); from rules.running import main; sys.exit(main(sys.argv[1:]))"
SECONDS = 2.0
"""How long one case may take; the slowest takes a tenth of a second."""
ALTOGETHER = 40.0
"""Seconds for all cases; a plugin that never comes back would else take the limit of one case in each."""


@dataclass(frozen=True)
class Case:
    """outcome: "holds", "broken", or "not asked" where the plugin has not what the rule is about."""

    case: str
    rule: str
    outcome: str
    detail: str


def validate(
    path: str | os.PathLike[str], *, seconds: float = SECONDS, altogether: float = ALTOGETHER, only: Sequence[str] = ()
) -> list[Case]:
    """Every rule, in order, or only those named. A file that inspection refuses gets that case alone: none of its code is run.

    A case may take `seconds`, all of them `altogether`: what is not asked for want of time is told, and the last case is broken.

    Raises ToolError when the program that runs the cases fails itself.
    """
    real = canonical(path)
    found = [_inspected(real)]
    if found[0].outcome == "broken":
        return found
    found.append(_one_symbol(real))
    command = [sys.executable, "-I", "-B", "-c", PROGRAM, str(Path(__file__).parent), str(real), str(seconds), str(altogether), *only]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        last = done.stderr.strip().splitlines()[-1:] or [f"exit code {done.returncode}"]
        raise ToolError(explain("the validator itself fails", str(real), got=last[0]))
    return found + [Case(**json.loads(line)) for line in done.stdout.splitlines()]


def _inspected(real: Path) -> Case:
    rule = "the file can be loaded: its format, its machine, its entry point, all that it needs"
    try:
        inspect(real, host_level=HOST_LEVEL, allow_writable=True)
    except PluginError as error:
        got = f"; got {error.got}" if error.got else ""
        return Case("file", rule, "broken", f"{error.what}{got}")
    return Case("file", rule, "holds", "")


def _one_symbol(real: Path) -> Case:
    rule = f"{ENTRY} is the only symbol that others can see"
    exported = inspect(real, host_level=HOST_LEVEL, allow_writable=True).exported
    others = [s for s in exported if s != ENTRY and not s.startswith(("_init", "_fini", "__bss_start", "_edata", "_end"))]
    if not others:
        return Case("one-symbol", rule, "holds", "")
    return Case("one-symbol", rule, "broken", f"{len(others)} more, {others[0]} for one: compile with -fvisibility=hidden")


def verdict(cases: list[Case]) -> str:
    """All cases in a line."""
    counts = {kind: sum(c.outcome == kind for c in cases) for kind in ("holds", "broken", "not asked")}
    return ", ".join(f"{n} {kind}" for kind, n in counts.items() if n)


def validation_table(path: Path, cases: list[Case]) -> Table:
    """A row for each case."""
    rows = tuple((c.case, c.rule, "BROKEN" if c.outcome == "broken" else c.outcome, c.detail) for c in cases)
    heads, notes = ("case", "rule", "outcome", "detail"), (verdict(cases),)
    return Table("validation", f"{path.name} against the rules of plugin.h", heads, rows, notes)
