"""What an arm makes a simulated CPU do, counted without any clock: deterministic where no hardware counter exists.

The simulator is valgrind's cachegrind with its branch simulation. Its CPU is simple and always the same: see CACHES; a
conditional branch is guessed from the last outcomes, an indirect branch goes where the branch at its address (of 512) went
last. Today's CPUs remember paths through the code and guess more of them: the simulated count is of surprises, not of their cost.
"""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from . import _engine, simulated
from .arms import find, prepare
from .errors import ChecksumError, ToolError, UsageError, explain
from .handlers import HandlerSet
from .traffic import Traffic

TOOL = "valgrind"
CACHES = {"I1": "32768,8,64", "D1": "32768,8,64", "LL": "8388608,16,64"}
"""Bytes, ways, bytes of a line. Given, because cachegrind would take those of the machine it runs on."""

PACKETS = 8192
"""A pass: some simulated seconds for the slowest arm. A power of two, so that counts per packet are exact as floats."""


@dataclass(frozen=True)
class Counted:
    """One arm's events per packet over one warm pass; loop and checksum are in them.

    conditional, indirect are branches executed, *_mispredicted those the simulated predictor got wrong; an indirect branch is a
    call or jump through a pointer. l1i_misses and l1d_misses are of fetches, and of reads and writes.
    """

    arm: str
    handlers: int
    body: str
    size: str
    traffic: str
    packets: int
    instructions: float
    conditional: float
    conditional_mispredicted: float
    indirect: float
    indirect_mispredicted: float
    l1i_misses: float
    l1d_misses: float


_EVENTS = {
    "instructions": ("Ir",),
    "conditional": ("Bc",),
    "conditional_mispredicted": ("Bcm",),
    "indirect": ("Bi",),
    "indirect_mispredicted": ("Bim",),
    "l1i_misses": ("I1mr",),
    "l1d_misses": ("D1mr", "D1mw"),
}


def count(arms: Sequence[str], hs: HandlerSet, tr: Traffic) -> list[Counted]:
    """Run each arm over the first PACKETS packets under the simulator, one Counted per arm in the order given.

    Two runs that differ in nothing but the counted pass are subtracted, so that start-up, warm-up and the interpreter cancel to
    the last event. Raises UsageError for an unknown arm, ToolError where valgrind is missing or fails, and ChecksumError when an
    arm answered wrongly.
    """
    if not arms:
        raise UsageError(explain("nothing to count", "count", "one arm or more", "none"))
    names = list(dict.fromkeys(find(arm).name for arm in arms))
    tool = _tool()
    packets = tr.packets[:PACKETS]
    with tempfile.TemporaryDirectory(prefix="dispatchlab-") as folder:
        _write(Path(folder), names, hs, tr)
        with_pass, without = _run_both(tool, Path(folder), names, hs)
    found = {}
    for name in names:
        events = {event: n - without[name][event] for event, n in with_pass[name].items()}
        per_packet = {key: sum(events[e] for e in parts) / len(packets) for key, parts in _EVENTS.items()}
        found[name] = Counted(name, hs.count, hs.body, hs.size, tr.name, len(packets), **per_packet)
    return [found[arm] for arm in arms]


def document(counted: Sequence[Counted]) -> dict[str, Any]:
    """The counts as JSON values with the CPU they were simulated on: what a recording keeps under extra["counts"]."""
    version = subprocess.run([_tool(), "--version"], capture_output=True, text=True).stdout.strip()
    return {"simulator": version, "caches": dict(CACHES), "cells": [asdict(c) for c in counted]}


def _tool() -> str:
    if path := shutil.which(TOOL):
        return path
    raise ToolError(
        explain(
            f"{TOOL} is not installed",
            "count",
            "its cachegrind to simulate the CPU",
            remedy="install your system's valgrind package",
        )
    )


def _write(folder: Path, names: Sequence[str], hs: HandlerSet, tr: Traffic) -> None:
    """Everything the simulated program reads."""
    packets = tr.packets[:PACKETS]
    for array in simulated.ARRAYS:
        (folder / array).write_bytes(getattr(hs, array).tobytes())
    (folder / "packets").write_bytes(packets.tobytes())
    (folder / "frequency").write_bytes(hs.frequency(packets).tobytes())
    for name in names:
        expected = np.frombuffer(prepare(name, hs, tr).expected(len(packets)), np.uint64)[0]
        (folder / f"expected.{name}").write_text(str(expected))


def _run_both(
    tool: str, folder: Path, names: Sequence[str], hs: HandlerSet
) -> tuple[dict[str, dict[str, int]], dict[str, dict[str, int]]]:
    """Events of each arm with the counted pass and without; both runs at the same time."""
    with contextlib.ExitStack() as stack:
        runs = [stack.enter_context(_started(tool, folder, last, names, hs)) for last in ("packets", "nothing")]
        return _events(runs[0], folder, "packets", names), _events(runs[1], folder, "nothing", names)


@contextlib.contextmanager
def _started(
    tool: str, folder: Path, last: str, names: Sequence[str], hs: HandlerSet
) -> Iterator[subprocess.Popen[str]]:
    """The simulated program, stopped when it is not waited for. Environment, folder and streams are always the same kind: the
    interpreter's start differs with each of them."""
    simulator = [tool, "-q", "--tool=cachegrind", "--cache-sim=yes", "--branch-sim=yes", f"--cachegrind-out-file={last}.%p"]
    caches = [f"--{cache}={shape}" for cache, shape in CACHES.items()]
    program = [sys.executable, "-S", "-s", "-P", simulated.__file__, str(_engine.__file__), last]
    run = subprocess.Popen(
        [*simulator, *caches, *program, hs.body, hs.size, hs.placement, *names],
        cwd=folder,
        env={"PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with run:
        try:
            yield run
        finally:
            run.kill()


def _events(run: subprocess.Popen[str], folder: Path, last: str, names: Sequence[str]) -> dict[str, dict[str, int]]:
    """What one run counted for each arm."""
    out, err = run.communicate()
    ended = [line.split() for line in out.splitlines()]
    if run.returncode or len(ended) != len(names):
        said = (err.strip().splitlines() or ["nothing on its standard error"])[-1]
        raise ToolError(explain(f"{TOOL} failed", "count", "exit code 0", f"{run.returncode}: {said}"))
    found = {}
    for name, (process, status) in zip(names, ended, strict=True):
        if status != "0":
            raise ChecksumError(explain("another checksum than the reference scan under the simulator", name))
        found[name] = _read(folder / f"{last}.{process}")
    return found


def _read(path: Path) -> dict[str, int]:
    """The totals of a cachegrind file: its `events:` and `summary:` lines."""
    try:
        lines = dict(line.split(":", 1) for line in path.read_text("utf-8", "replace").splitlines() if line[:8] in _LINES)
        return dict(zip(lines["events"].split(), map(int, lines["summary"].split()), strict=True))
    except (OSError, KeyError, ValueError) as error:
        raise ToolError(explain(f"{TOOL} left no totals", "count", got=str(error))) from error


_LINES = ("events: ", "summary:")
