"""Measuring: slots, an untimed pass that checks and counts, then interleaved rounds in the engine.

This module only drives. The loop that is timed is csrc/core/measure.c; what the numbers mean is summary.py's affair.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from . import _engine
from .arms import find, prepare
from .design import placements, schedule, windows
from .environment import environment, package
from .errors import UsageError, explain
from .handlers import HandlerSet
from .probes import expected_probes
from .recording import Measurement, Recording, Slot
from .traffic import Traffic

BLOCK = 2048
"""Packets per block unless the clock needs more. Short blocks make more rounds out of a second, and what strikes a round (a
timer, a neighbour) strikes fewer packets: the interval is a third of that of blocks of 16384."""
LONG_BLOCK = 8192
"""For studies of many slots whose differences are many times their intervals: a quarter of the rounds to keep."""
LEAD = 256
"""Packets that every block runs before its clock starts; see `lead_in` in csrc/core/measure.c."""
LEAST_ROUNDS = 8
MOST_ROUNDS = 20_000
PLACEMENTS = 4
PILOT_ROUNDS = 4
WARM_UP_NS = 200e6
LEAST_TICKS, LEAST_COSTS = 1000, 100
"""A block must last so many of the clock's ticks and so many times what reading it takes: good to 0.1 % and to 1 %."""

Progress = Callable[[int, int], object]
"""Called outside of everything timed with (rounds done, rounds planned)."""


@dataclass(frozen=True)
class Cell:
    """What one slot runs: an arm over a handler set and a traffic. `label` is made up when it is empty.

    trained: the traffic that an arm which sorts was sorted for, when that is not the traffic it runs.
    """

    arm: str
    handlers: HandlerSet
    traffic: Traffic
    label: str = ""
    delay_ppm: int = 0
    trained: Traffic | None = None

    def slot(self, role: Literal["arm", "twin", "control"], label: str) -> Slot:
        """How the recording names this cell."""
        hs, tr = self.handlers, self.traffic
        return Slot(
            arm=self.arm,
            label=label,
            role=role,
            handlers=hs.count,
            body=hs.body,
            size=hs.size,
            order=hs.order_name,
            residual=hs.residual,
            overlap=hs.overlap,
            predicates=hs.placement,
            traffic=tr.name,
            pool=len(tr),
            delay_ppm=self.delay_ppm,
            state=hs.state,
            objects=hs.objects,
            plugins=len(hs.foreign),
        )


def measure(
    arm_names: str | Sequence[str],
    handlers: HandlerSet | Sequence[HandlerSet],
    traffic: Traffic | Sequence[Traffic],
    *,
    budget: str | float = "2s",
    rounds: int | None = None,
    cpu: int | None = None,
    seed: int = 0,
    block: int | None = None,
    progress: Progress | None = None,
) -> Recording:
    """Measure arms over one handler set and traffic, or over several given pairwise.

    budget   seconds of measuring ("2s", "500ms", 1.5), or rounds= to say how many
    cpu      the CPU to pin to; the last of the allowed ones unless given
    block    packets that each slot runs in a round; 2048, or as many as the clock needs, unless given

    Returns a Recording with one measurement, every slot in every round. An interrupt keeps the rounds that are whole.
    Raises UsageError, and TrafficError from the traffic.
    """
    names = [arm_names] if isinstance(arm_names, str) else list(arm_names)
    sets = [handlers] if isinstance(handlers, HandlerSet) else list(handlers)
    traffics = [traffic] if isinstance(traffic, Traffic) else list(traffic)
    if len(sets) != len(traffics):
        raise UsageError(explain("handler sets and traffics go in pairs", "measure", str(len(sets)), str(len(traffics))))
    cells = [Cell(name, hs, tr) for hs, tr in zip(sets, traffics, strict=True) for name in names]
    chosen = choose_cpu(cpu)
    measurement = measure_cells(
        "measure", cells, budget=budget, rounds=rounds, cpu=chosen, seed=seed, block=block, progress=progress
    )
    used = {p.path: p for hs in sets for p in hs.foreign.plugins}
    extra = {"plugins": [p.described() for p in used.values()]} if used else {}
    return record("measure", [measurement], seed=seed, cpu=chosen, **extra)


def record(study: str, measurements: Iterable[Measurement], *, seed: int, cpu: int, **extra: Any) -> Recording:
    """A Recording of these measurements, made here and now."""
    return Recording(
        study=study,
        seed=seed,
        package=package(),
        environment=environment(cpu=cpu),
        measurements=tuple(measurements),
        extra=extra,
    )


def measure_cells(
    name: str,
    cells: Sequence[Cell],
    *,
    budget: str | float = "2s",
    rounds: int | None = None,
    cpu: int | None = None,
    seed: int = 0,
    block: int | None = None,
    reference: int | None = None,
    progress: Progress | None = None,
) -> Measurement:
    """One measurement: every cell, and a twin of the reference cell, interleaved. See `measure`."""
    if not cells:
        raise UsageError(explain("nothing to measure", name, "one arm or more", "none"))
    seconds = parse_budget(budget)
    chosen = choose_cpu(cpu)
    reference = _reference(cells) if reference is None else reference
    prepared = prepare_cells(cells, reference, BLOCK if block is None else block)
    clock = _engine.clock_info()
    run = Runner(prepared, BLOCK if block is None else block, chosen, seed, clock["ticks_per_ns"])
    if block is None:
        run.lengthen(shortest_block(clock))
    per_round = run.pilot(shortest_block(clock), name)
    if rounds is None:
        rounds = _rounds_for(seconds, per_round / clock["ticks_per_ns"] / 1e9, len(prepared.slots), name)
    elif not isinstance(rounds, int) or isinstance(rounds, bool) or not 1 <= rounds <= MOST_ROUNDS:
        raise UsageError(explain("number of rounds out of range", name, f"1..{MOST_ROUNDS}", repr(rounds)))
    done = run.rounds(rounds, progress)
    return as_measurement(name, prepared, run, done, reference, dict(clock))


def shortest_block(clock: _engine.ClockInfo) -> int:
    """Ticks that a block must last at least. A counter's tick is one count; a kernel clock's is the step it shows."""
    tick = clock["step"] if clock["source"] == "monotonic" else 1
    return max(LEAST_TICKS * tick, LEAST_COSTS * clock["cost"])


def parse_budget(budget: str | float) -> float:
    """Seconds out of "2s", "500ms", "1m" or a number; UsageError unless it is above 0."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*(ms|s|m|min)?\s*", str(budget))
    seconds = float(match[1]) * {"ms": 1e-3, "m": 60, "min": 60}.get(match[2] or "s", 1) if match else 0.0
    if isinstance(budget, int | float) and not isinstance(budget, bool):  # which str() may write with an exponent
        seconds = float(budget)
    if not 0 < seconds <= 86400:
        raise UsageError(explain("budget cannot be used", expected='a time such as "2s" or "500ms"', got=repr(budget)))
    return seconds


def choose_cpu(cpu: int | None) -> int:
    """The CPU to pin to: the one asked for, or the last of the allowed ones (the first serves most interrupts)."""
    allowed = _engine.allowed_cpus()
    if cpu is None:
        return max(allowed)
    if isinstance(cpu, bool) or not isinstance(cpu, int) or cpu not in allowed:
        raise UsageError(
            explain("cannot pin there", "cpu", f"one of the allowed CPUs {_ranges(allowed)}", repr(cpu))
        )
    return cpu


@dataclass(frozen=True)
class Prepared:
    """Cells with what the untimed pass found out about them; the twin is the last."""

    cells: tuple[Cell, ...]
    slots: tuple[Slot, ...]
    engine: tuple[Any, ...]
    checksums: dict[str, str]
    expected: dict[str, str]
    probes: dict[str, float]
    expected_probes: dict[str, float]
    footprint: dict[str, int]
    failures: list[str]


def prepare_cells(cells: Sequence[Cell], reference: int, block: int) -> Prepared:
    """Build every arm and run it once untimed; the twin of the reference comes last."""
    if not isinstance(block, int) or isinstance(block, bool) or block < 1:
        raise UsageError(explain("block cannot be used", expected="1 packet or more", got=repr(block)))
    for cell in cells:
        if len(cell.traffic) < block and block % len(cell.traffic):
            raise UsageError(
                explain(
                    "a block must hold the pool a whole number of times, or the pool the block",
                    cell.traffic.name,
                    f"a pool of {block} packets or more, or a divisor of it",
                    f"{len(cell.traffic)} packets",
                )
            )
    labels = _labels(cells)
    engine = _engine_slots(cells)
    found = Prepared((*cells, cells[reference]), (), (), {}, {}, {}, {}, {}, [])
    for cell, label, slot in zip(cells, labels, engine, strict=True):
        _check_untimed(found, cell, label, slot)
    roles = ["control" if find(c.arm).family == "control" else "arm" for c in cells]
    named = [c.slot(role, label) for c, role, label in zip(cells, roles, labels, strict=True)]  # type: ignore[arg-type]
    twin = cells[reference].slot("twin", f"{labels[reference]} (twin)")
    found.checksums[twin.label] = f"{engine[reference].run(0):016x}"
    found.expected[twin.label] = found.expected[labels[reference]]
    return Prepared(
        found.cells,
        (*named, twin),
        (*engine, engine[reference]),
        found.checksums,
        found.expected,
        found.probes,
        found.expected_probes,
        found.footprint,
        found.failures,
    )


def _engine_slots(cells: Sequence[Cell]) -> list[Any]:
    """One for each cell. A cell that is another one slowed down shares that one's arm: two of the same over data at other
    addresses can differ by more than what is to be detected."""
    made: dict[tuple[str, int, int, int], Any] = {}
    slots = []
    for c in cells:
        key = (c.arm, id(c.handlers), id(c.traffic), id(c.trained))
        if c.delay_ppm and key in made:
            slots.append(made[key].slowed(c.delay_ppm))
            continue
        slots.append(prepare(c.arm, c.handlers, c.traffic, c.delay_ppm, c.trained))
        made.setdefault(key, slots[-1])
    return slots


def _check_untimed(found: Prepared, cell: Cell, label: str, slot: Any) -> None:
    """Run every packet once, untimed: checksum against the reference scan, probes against the model."""
    checksum, counted = slot.count()
    probes = np.frombuffer(counted, np.uint32)
    expected = int(np.frombuffer(slot.expected(len(cell.traffic)), np.uint64)[0])
    found.checksums[label], found.expected[label] = f"{checksum:016x}", f"{expected:016x}"
    for placement in range(PLACEMENTS):
        if slot.run(placement) != expected:
            found.failures.append(f"{label}: code placement {placement} gives another checksum than the reference scan")
    found.probes[label] = float(probes.mean())
    found.footprint[label] = slot.footprint
    modelled = expected_probes(cell.arm, cell.handlers, cell.traffic, cell.trained)
    found.expected_probes[label] = float(modelled.mean())
    if (wrong := int((modelled != probes).sum())) > 0:
        found.failures.append(f"{label}: probes differ from the enumeration on {wrong} of {len(probes)} packets")


class Runner:
    """The engine with everything that stays the same from call to call."""

    def __init__(self, prepared: Prepared, block: int, cpu: int, seed: int, ticks_per_ns: float) -> None:
        self.prepared = prepared
        self.block = block
        self.cpu = cpu
        self.seed = seed
        self.ticks_per_ns = ticks_per_ns
        self.columns = _engine.ledger_columns()

    def lengthen(self, shortest: int) -> None:
        """Double the block until it lasts twice as long as the clock needs, as far as the pools divide."""
        while float(self._warm(PILOT_ROUNDS).min()) < 2 * shortest and all(
            len(c.traffic) % (2 * self.block) == 0 for c in self.prepared.cells
        ):
            self.block *= 2

    def pilot(self, shortest: int, name: str) -> float:
        """Warm the process and the slots up; what a round takes with all that is between its blocks, in ticks. UsageError when
        the clock is too coarse for the block."""
        first = self._warm(PILOT_ROUNDS)
        missing = WARM_UP_NS * self.ticks_per_ns - float(first.sum())
        rounds = int(missing / float(first.sum(axis=1).mean())) + 1
        ticks = self._warm(min(rounds, MOST_ROUNDS)) if rounds > 0 else first
        fastest = float(ticks.min())
        if fastest < shortest:
            raise UsageError(
                explain(
                    "the block is too short for this clock",
                    name,
                    f"{shortest} ticks",
                    f"{fastest:.0f} ticks",
                    f"use a block of {int(self.block * shortest / fastest) + 1} packets or more",
                )
            )
        few, many = (self._wall(n) for n in (PILOT_ROUNDS, 5 * PILOT_ROUNDS))  # what one call costs is in both
        wall = (many - few) * 1e9 * self.ticks_per_ns / (4 * PILOT_ROUNDS)
        return max(wall, float(ticks[-PILOT_ROUNDS:].sum(axis=1).mean()))

    def _wall(self, rounds: int) -> float:
        begin = time.perf_counter()
        self._warm(rounds)
        return time.perf_counter() - begin

    def _warm(self, rounds: int) -> NDArray[np.int64]:
        done = self.rounds(rounds, None)
        if done.interrupted or len(done.ticks) < rounds:
            raise KeyboardInterrupt
        return done.ticks

    def shift(self) -> list[int]:
        """By how many blocks each slot's packets come later in the pool than the round's: 0, but for slots that run the same
        code over the same handlers and traffic. What runs a packet sequence second finds it in the predictor's memory if the
        same code ran it just before; a reference must not be the faster for having a twin."""
        alike: dict[tuple[str, int, int], int] = {}
        keys = [(c.arm, id(c.handlers), id(c.traffic)) for c in self.prepared.cells]
        shifts = []
        for key, cell in zip(keys, self.prepared.cells, strict=True):
            windows, rank = max(1, len(cell.traffic) // self.block), alike.get(key, 0)
            shifts.append(rank * windows // keys.count(key))
            alike[key] = rank + 1
        return shifts

    def rounds(self, count: int, progress: Progress | None, seed: int | None = None) -> Rounds:
        """`count` rounds by the schedule of the seed."""
        slots = len(self.prepared.slots)
        seed = self.seed if seed is None else seed
        order = schedule(slots, count, seed)
        placed = placements(count, seed)
        window = windows(count, seed)
        shift = np.array(self.shift(), np.int32)
        report = None if progress is None else lambda n: progress(n, count)
        out = _engine.measure(
            self.prepared.engine,
            self.block,
            count,
            np.ascontiguousarray(order),
            placed,
            window,
            shift,
            LEAD,
            self.cpu,
            self.ticks_per_ns,
            report,
        )
        n = out["rounds"]
        ledger = np.frombuffer(out["ledger"], np.int64).reshape(n, len(self.columns))
        return Rounds(
            ticks=np.frombuffer(out["ticks"], np.int64).reshape(n, slots),
            undelayed=np.frombuffer(out["undelayed"], np.int64).reshape(n, slots),
            order=order[:n],
            placement=placed[:n],
            window=window[:n],
            ledger={name: ledger[:, i] for i, name in enumerate(self.columns)},
            mismatches=out["mismatches"],
            interrupted=out["interrupted"],
        )


@dataclass(frozen=True)
class Rounds:
    """Rounds as the engine returned them."""

    ticks: NDArray[np.int64]
    undelayed: NDArray[np.int64]
    order: NDArray[np.int16]
    placement: NDArray[np.int8]
    window: NDArray[np.int32]
    ledger: dict[str, NDArray[np.int64]]
    mismatches: list[int]
    interrupted: bool


def _rounds_for(seconds: float, per_round: float, slots: int, name: str) -> int:
    """Rounds that fit the budget, in whole cycles of the design where one fits."""
    rounds = min(int(seconds / per_round), MOST_ROUNDS)
    if rounds < LEAST_ROUNDS:
        raise UsageError(
            explain(
                f"the budget is too small for {LEAST_ROUNDS} rounds of {slots} slots",
                name,
                f"{np.ceil(LEAST_ROUNDS * per_round * 1e4) / 1e4:g} s or more",
                f"{seconds:g} s",
            )
        )
    cycle = slots if slots % 2 == 0 else 2 * slots
    return rounds if rounds < cycle else rounds - rounds % cycle


def as_measurement(
    name: str, prepared: Prepared, run: Runner, done: Rounds, reference: int, clock: dict[str, Any]
) -> Measurement:
    """Rounds with all that is known about them. KeyboardInterrupt when too few are whole to be recorded."""
    failures = list(prepared.failures)
    for slot, wrong in zip(prepared.slots, done.mismatches, strict=True):
        if wrong:
            failures.append(f"{slot.label}: {wrong} timed blocks gave another checksum than the reference scan")
    if len(done.ticks) < 2:
        raise KeyboardInterrupt
    clock["interrupted"] = done.interrupted
    clock["cpu"] = run.cpu
    clock["lead"] = LEAD
    clock["shift"] = run.shift()
    return Measurement(
        name=name,
        slots=prepared.slots,
        reference=reference,
        twin=len(prepared.slots) - 1,
        block=run.block,
        ticks=done.ticks,
        order=done.order,
        placement=done.placement,
        window=done.window,
        ticks_per_ns=run.ticks_per_ns,
        clock=clock,
        ledger=done.ledger,
        flagged=flag(done.ledger, done.ticks.sum(axis=1) / run.ticks_per_ns),
        checksums=prepared.checksums,
        expected=prepared.expected,
        probes=prepared.probes,
        expected_probes=prepared.expected_probes,
        footprint=prepared.footprint,
        failures=tuple(failures),
    )


SKEW_PPB = 100_000
SKEW_NOISE_NS = 200.0


def flag(ledger: dict[str, NDArray[np.int64]], round_ns: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Which rounds were disturbed: the thread was preempted, slept, moved or faulted, or its CPU was stolen, or the clock
    drifted against the kernel's by more than 100 ppm beyond what reading both costs. Values of -1 are unknown."""
    disturbed = np.zeros(len(round_ns), bool)
    for name, column in ledger.items():
        if name == "skew_ppb":
            disturbed |= column > SKEW_PPB + SKEW_NOISE_NS / np.maximum(round_ns, 1) * 1e9
        else:
            disturbed |= column > 0
    return disturbed


def _reference(cells: Sequence[Cell]) -> int:
    """Ratios are against the compact table where it is measured, else against the first arm."""
    for i, cell in enumerate(cells):
        if cell.arm == "table-compact" and not cell.delay_ppm:
            return i
    return 0


def _labels(cells: Sequence[Cell]) -> list[str]:
    """A label per cell, unique: the arm alone where that is enough, else with what differs."""
    labels = [cell.label or cell.arm for cell in cells]
    for describe in _DETAILS:
        if len(set(labels)) == len(labels):
            break
        if len({describe(cell) for cell in cells}) > 1:
            labels = [f"{label} {describe(cell)}" for label, cell in zip(labels, cells, strict=True)]
    if len(set(labels)) != len(labels):
        labels = [f"{label} #{i}" for i, label in enumerate(labels)]
    return labels


_DETAILS: tuple[Callable[[Cell], str], ...] = (
    lambda c: str(c.handlers.count),
    lambda c: c.traffic.name,
    lambda c: c.handlers.body,
    lambda c: c.handlers.size,
    lambda c: c.handlers.placement,
    lambda c: f"pool {len(c.traffic)}",
    lambda c: f"+{c.delay_ppm} ppm",
)


def _ranges(cpus: Iterable[int]) -> str:
    """1, 2, 3, 8 -> "1-3,8"."""
    groups: list[list[int]] = []
    for cpu in sorted(cpus):
        if groups and cpu == groups[-1][-1] + 1:
            groups[-1].append(cpu)
        else:
            groups.append([cpu])
    return ",".join(f"{g[0]}-{g[-1]}" if len(g) > 1 else str(g[0]) for g in groups)
