"""A grid of cells, each combination measured once and kept in a file of its own, so that a sweep can stop and go on.

A combination is a handler count, a traffic, a body and a residual share; all arms of one are measured together, interleaved, so
that their ratios are paired. What a folder already holds whole, and for the same plan, is never measured again.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any

from . import strictjson
from .arms import find, prepare
from .errors import Error, RecordingError, UsageError, explain
from .files import check_writable, write_atomic
from .handlers import HandlerSet, handlers
from .measure import Cell, choose_cpu, measure_cells, parse_budget, record
from .recording import Recording, load
from .runner import MOST_ROUNDS
from .traffic import Traffic, make

PLAN = "sweep.json"
CSV = "cells.csv"
BASE = "table-compact"
LEFT_OVER = re.compile(r"\.[0-9a-f]{16}\.tmp")


@dataclass(frozen=True)
class Combination:
    """What the arms of one file run over. traffic: a name or a file, as `traffic.make` takes it."""

    handlers: int
    traffic: str
    body: str
    residual: float

    def build(self, seed: int) -> tuple[HandlerSet, Traffic]:
        """Its handlers and packets."""
        hs = handlers(self.handlers, body=self.body, residual=self.residual)
        return hs, make(self.traffic, hs, seed=seed)

    def __str__(self) -> str:
        return f"{self.handlers} handlers, {self.traffic}, {self.body}, residual {self.residual:g}"


@dataclass(frozen=True)
class Plan:
    """The whole grid. budget: seconds for each combination; rounds: so many instead. files: sha256 of each traffic that is one."""

    handlers: tuple[int, ...]
    traffic: tuple[str, ...]
    body: tuple[str, ...]
    arm: tuple[str, ...]
    residual: tuple[float, ...]
    budget: float = 1.0
    rounds: int | None = None
    seed: int = 0
    files: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        for name in ("handlers", "traffic", "body", "arm", "residual"):
            values = getattr(self, name)
            if not values:
                raise UsageError(explain(f"no {name} to sweep over", "sweep", "one or more", "none"))
            if twice := [v for v in dict.fromkeys(values) if values.count(v) > 1]:
                raise UsageError(explain(f"{name} {twice[0]} twice", "sweep", "every value once"))
        if self.rounds is not None and not 2 <= self.rounds <= MOST_ROUNDS:
            raise UsageError(explain("number of rounds out of range", "sweep", f"2..{MOST_ROUNDS}", str(self.rounds)))
        object.__setattr__(self, "residual", tuple(float(r) for r in self.residual))
        object.__setattr__(self, "budget", parse_budget(self.budget))
        object.__setattr__(self, "files", tuple((t, _sha256(t)) for t in self.traffic if os.path.isfile(t)))

    def combinations(self) -> list[Combination]:
        """In the order in which they are measured."""
        return [
            Combination(n, t, b, r) for n in self.handlers for t in self.traffic for b in self.body for r in self.residual
        ]

    def document(self) -> dict[str, Any]:
        """As PLAN holds it."""
        return {"kind": "dispatchlab sweep", **strictjson.plain(asdict(self))}

    def digest(self) -> str:
        """sha256 over all of it, in hex."""
        return strictjson.digest(self.document())

    def file_of(self, c: Combination) -> str:
        """The name of a combination's file: readable, and different for all that differ."""
        words = re.sub(r"[^A-Za-z0-9.,]+", "-", f"{c.handlers}-{Path(c.traffic).name}-{c.body}-{c.residual:g}")
        return f"{words}-{strictjson.digest(asdict(c))[:8]}.json"


def _sha256(path: str) -> str:
    try:
        return hashlib.sha256(Path(path).read_bytes()).hexdigest()
    except OSError as error:
        raise UsageError(explain("cannot read the traffic", path, got=error.strerror or str(error))) from error


def measure(plan: Plan, c: Combination, cpu: int | None = None) -> Recording:
    """One combination, measured here, one at a time on this machine. KeyboardInterrupt unless all its rounds are whole."""
    for traffic, digest in plan.files:
        if traffic == c.traffic and (not os.path.isfile(traffic) or _sha256(traffic) != digest):
            raise UsageError(explain("not the file that the sweep was planned with", traffic, digest[:16], "another or none here"))
    with alone():
        hs, tr = c.build(plan.seed)
        cells = [Cell(arm, hs, tr, arm) for arm in plan.arm]
        reference = plan.arm.index(BASE) if BASE in plan.arm else 0
        m = measure_cells(
            "sweep", cells, budget=plan.budget, rounds=plan.rounds, cpu=cpu, seed=plan.seed, reference=reference
        )
    if m.clock["interrupted"]:
        raise KeyboardInterrupt
    facts = {"plan": plan.digest(), "cell": asdict(c), "host": host(), "traffic_sha256": tr.digest}
    return record("sweep", [m], seed=plan.seed, cpu=m.clock["cpu"], sweep=facts)


@contextmanager
def alone() -> Iterator[None]:
    """Wait until no other sweep of this user measures on this machine; two at once would measure each other."""
    path = Path(tempfile.gettempdir()) / f"dispatchlab-{os.getuid()}.lock"
    with open(path, "a", encoding="ascii") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def host() -> str:
    """Which machine, since which start of it, without a name: 16 hex digits over boot id and CPU model."""
    from .environment import environment

    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        boot = "unknown"
    return hashlib.sha256(f"{boot} {environment()['cpu_model']}".encode()).hexdigest()[:16]


class Folder:
    """Where a sweep keeps its files; held by one sweep at a time. Use as a context."""

    def __init__(self, path: str | os.PathLike[str], plan: Plan) -> None:
        self.path = check_writable(path)
        self.plan = plan
        self._lock: IO[str] | None = None

    def __enter__(self) -> Folder:
        lock = open(self.path / ".sweep.lock", "a", encoding="ascii")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            lock.close()
            what = explain("another sweep is at work there", str(self.path), remedy="wait for it or choose another folder")
            raise UsageError(what) from None
        self._lock = lock
        try:
            self._agree()
        except BaseException:
            self.__exit__()
            raise
        for file in self.path.iterdir():  # of a sweep that was killed while it wrote
            if LEFT_OVER.fullmatch(file.name):
                file.unlink()
        return self

    def __exit__(self, *_: object) -> None:
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def _agree(self) -> None:
        """Write the plan, or find the same one."""
        file = self.path / PLAN
        if not file.exists():
            write_atomic(file, (strictjson.render(self.plan.document()) + "\n").encode("ascii"))
            return
        try:
            known = strictjson.parse(file.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise UsageError(explain("cannot read the plan of the sweep", str(file), got=str(error))) from error
        wanted = self.plan.document()
        if not isinstance(known, dict) or known.get("kind") != wanted["kind"]:
            raise UsageError(explain("not the plan of a sweep", str(file), remedy="choose another folder"))
        if unlike := next((name for name, value in wanted.items() if known.get(name) != value), None):
            expected, got = (f"{unlike} {strictjson.short(d.get(unlike), 60)}" for d in (known, wanted))
            what = "holds a sweep of another plan"
            raise UsageError(explain(what, str(self.path), expected, got, "choose another folder, or the same options"))

    def finished(self, c: Combination) -> Recording | None:
        """The recording of a combination, if it is there, whole and of this plan. Error when it is whole and of another."""
        file = self.path / self.plan.file_of(c)
        if not file.exists():
            return None
        try:
            found = load(file)
        except RecordingError:
            return None  # cut or damaged: it is measured again and replaced
        facts = found.extra.get("sweep") or {}
        if facts.get("plan") != self.plan.digest() or facts.get("cell") != asdict(c):
            raise UsageError(explain("is not of this sweep", str(file), self.plan.digest()[:16], str(facts.get("plan"))[:16]))
        return found

    def keep(self, c: Combination, recording: Recording) -> Path:
        """Write one, whole or not at all."""
        file = self.path / self.plan.file_of(c)
        recording.save(file)
        return file


def check(plan: Plan, missing: list[Combination]) -> None:
    """Build everything that will be measured, so that what cannot be is refused at once. UsageError, TrafficError."""
    for arm in plan.arm:
        find(arm)
    for c in missing:
        hs, tr = c.build(plan.seed)
        for arm in plan.arm:
            prepare(arm, hs, tr)


Done = Callable[[Combination, Recording | None, str], None]
"""Called for every combination: with its recording and whether it was "kept" or "measured", or with None and why it failed."""


def run(plan: Plan, folder: Folder, done: Done, cpu: int | None = None) -> None:
    """Measure here what the folder lacks, one after the other. An Error of one is told and the others go on."""
    chosen = choose_cpu(cpu)
    for c in pending(plan, folder, done):
        try:
            recording = measure(plan, c, chosen)
        except Error as error:
            done(c, None, str(error))
            continue
        folder.keep(c, recording)
        done(c, recording, "measured")


def pending(plan: Plan, folder: Folder, done: Done) -> list[Combination]:
    """What is missing, checked to be measurable; what is there has been told."""
    missing = []
    for c in plan.combinations():
        found = folder.finished(c)
        if found is None:
            missing.append(c)
        else:
            done(c, found, "kept")
    check(plan, missing)
    return missing
