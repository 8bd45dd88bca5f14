"""A recording as text: where it was made, its tables, its claims. Reads the recording and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from tabulate import tabulate

from . import wording
from .claims import claims_table
from .codetables import code_tables
from .crossings import crossing_tables
from .instrument import instrument_lines
from .labs import lab_tables
from .ladder import noise_tables
from .mechanisms import mechanism_tables
from .past import past_tables
from .postclaims import post_tables
from .pricelist import price_tables
from .pythontables import python_tables
from .recording import Recording
from .tables import Table, every_table
from .tails import tail_tables
from .when import when_tables
from .wrongways import lesson_tables

OF_STUDIES: tuple[Callable[[Recording], Iterable[Table]], ...] = (
    tail_tables, mechanism_tables, crossing_tables, code_tables, past_tables, when_tables, lab_tables, post_tables, price_tables,
    noise_tables, lesson_tables, python_tables,
)  # fmt: skip

WIDTH = 38
"""Longest line of a cell; longer ones are folded."""


def tables(recording: Recording) -> str:
    """Everything that a person at a terminal wants to know about a recording."""
    parts = [header(recording)]
    parts += ["\n".join(lines)] if (lines := list(instrument_lines(recording))) else []
    parts += [as_text(table) for table in (*every_table(recording), *study_tables(recording))]
    if claims := claims_table(recording):
        parts.append(as_text(claims))
    return "\n\n".join(parts)


def study_tables(recording: Recording) -> Iterator[Table]:
    """The tables that single studies bring besides what each cell cost."""
    for made in OF_STUDIES:
        yield from made(recording)


def header(recording: Recording) -> str:
    """Study, machine, build: the facts without which the numbers mean nothing."""
    return "\n".join(f"{name:<10} {value}" for name, value in facts(recording))


def facts(recording: Recording) -> Iterator[tuple[str, str]]:
    """(name, value) of what was run where."""
    env, package = recording.environment, recording.package
    yield "study", f"{recording.study}, seed {recording.seed}, {recording.created}"
    yield "machine", _machine(recording)
    yield "build", f"{env.get('compiler') or 'unknown compiler'}; {env.get('flags') or 'unknown flags'}"
    yield "package", f"dispatchlab {package.get('version')}, commit {(package.get('commit') or 'unknown')[:18]}"
    for name, source in (recording.extra.get("sources") or {}).items():
        yield "source", _source(name.removeprefix("traffic "), source)
    failures = recording.failures
    yield "answers", f"{len(failures)} checks FAILED" if failures else "every arm computed the same answers"


def _source(name: str, source: Mapping[str, Any]) -> str:
    parts = [f"{name}: {source['keys']} keys in {source['keyed']} packets, {source['unkeyed']} packets without a key"]
    if source["without_handler"]:
        parts.append(f"{source['without_handler']} rarest keys have no handler")
    if source["lost"]:
        parts.append(f"{source['lost']} records cut or damaged, and left out")
    return "; ".join(parts)


def as_text(table: Table) -> str:
    """Laid out for a terminal."""
    keep = [i for i in range(len(table.heads)) if any(row[i] for row in table.rows)]
    rows = [[row[i] for i in keep] for row in table.rows]
    heads = [table.heads[i] for i in keep]
    align = ["right" if _numeric(column) else "left" for column in zip(*rows, strict=True)]
    body = tabulate(rows, heads, disable_numparse=True, colalign=align, maxcolwidths=WIDTH)
    return "\n".join([table.title, body, *(f"  {note}" for note in table.notes)])


def as_markdown(table: Table) -> str:
    """Laid out for README, notes as a list below."""
    keep = [i for i in range(len(table.heads)) if any(row[i] for row in table.rows)]
    rows = [[row[i] for i in keep] for row in table.rows]
    align = ["right" if _numeric(column) else "left" for column in zip(*rows, strict=True)]
    body = tabulate(rows, [table.heads[i] for i in keep], "pipe", disable_numparse=True, colalign=align)
    lines = [" ".join(line.split()) if line.startswith("|") else line for line in body.splitlines()]
    return "\n".join([f"**{table.title}**", "", *lines, "", *(f"* {note}" for note in table.notes)])


def _machine(recording: Recording) -> str:
    env = recording.environment
    caches = env.get("caches") or {}
    known = [f"{name} {wording.size(size)}" for name, size in caches.items() if size]
    pinned = sorted({str(m.clock["cpu"]) for m in recording.measurements if "cpu" in m.clock})
    parts = [
        str(env.get("cpu_model") or "unknown CPU"),
        f"under {env['hypervisor']}" if env.get("hypervisor") else "",
        ", ".join(known),
        f"pinned to CPU {', '.join(pinned)}" if pinned else "",
    ]
    return "; ".join(part for part in parts if part)


def _numeric(column: tuple[str, ...]) -> bool:
    return all(not cell or cell[0].isdigit() or cell[0] == "-" for cell in column)
