"""The engine with everything that stays the same from call to call, and what comes back from it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _engine
from .cells import Prepared
from .design import placements, schedule, windows
from .errors import UsageError, explain
from .recording import Measurement

LEAD = 256
"""Packets that every block runs before its clock starts; see `lead_in` in csrc/core/measure.c."""
MOST_ROUNDS = 20_000
PILOT_ROUNDS = 4
WARM_UP_NS = 200e6
LEAST_TICKS, LEAST_COSTS = 1000, 100
"""A block must last so many of the clock's ticks and so many times what reading it takes: good to 0.1 % and to 1 %."""

Progress = Callable[[int, int], object]
"""Called outside of everything timed with (rounds done, rounds planned)."""


def shortest_block(clock: _engine.ClockInfo) -> int:
    """Ticks that a block must last at least. A counter's tick is one count; a kernel clock's is the step it shows."""
    tick = clock["step"] if clock["source"] == "monotonic" else 1
    return max(LEAST_TICKS * tick, LEAST_COSTS * clock["cost"])


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
