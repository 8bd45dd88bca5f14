"""The measuring half of `calibrate`: many short comparisons of an arm with itself, some of them slowed on purpose."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from . import _engine
from .calibration import Calibration, Compared, calibrate
from .handlers import handlers
from .intervals import Estimate, locate
from .measure import BLOCK, Cell, Rounds, Runner, as_measurement, prepare_cells, shortest_block
from .recording import Measurement
from .studies.options import Options
from .summary import CONFIDENCE, ratio
from .traffic import uniform
from .verdicts import verdict

ARM, COPY = "table-compact", "table-compact-copy"
LONGER = 4
"""The smallest effect is also looked for in this many times the measuring time."""


@dataclass(frozen=True)
class Kind:
    """A kind of run: the arm, its twin, the arm slowed by each of `delays` (ppm), and on request its copy, all interleaved.
    times: how often the measuring time asked for; share: runs per comparison asked for."""

    delays: tuple[int, ...]
    times: int
    share: float
    copy: bool = False


PLAN = (Kind((), 1, 5 / 8, copy=True), Kind((10_000, 20_000), 1, 1 / 4), Kind((5_000,), LONGER, 1 / 8))


def calibrate_here(options: Options, comparisons: int, seconds: float) -> Calibration:
    """Run `comparisons` A/A comparisons of `seconds` each (an eighth of them four times as long), and with a quarter of them
    +1 % and +2 %, with an eighth +0.5 %. A comparison's time is what its two slots ran."""
    found: dict[tuple[float, float], list[tuple[Estimate, float]]] = defaultdict(list)
    copies: list[bool] = []
    todo = [max(1, round(comparisons * kind.share)) for kind in PLAN]
    turns = sorted((i / n, kind) for kind, n in enumerate(todo) for i in range(n))  # all kinds see all spells
    runs = [_runner(options, kind) for kind in PLAN]
    with options.progress("calibrate") as progress:
        for done, (_, which) in enumerate(turns):
            kind = PLAN[which]
            m, done_here = _measure(runs[which], seconds * kind.times, options.seed + done)
            pairs = [(0.0, m.twin), *((d / 1e6, i + 1) for i, d in enumerate(kind.delays))]
            for effect, slot in pairs:
                found[effect, seconds * kind.times].append((ratio(m, slot, 0), _injected(m, done_here, slot)))
            if kind.copy:
                copies.append(verdict(m, m.twin - 1, 0).kind in ("faster", "slower"))
            if progress is not None:
                progress(done + 1, len(turns))
    compared = [Compared(e, s, tuple(x for x, _ in v), tuple(t for _, t in v)) for (e, s), v in found.items()]
    return calibrate(compared, CONFIDENCE, copies)


def _injected(m: Measurement, done: Rounds, slot: int) -> float:
    """The share by which the slot's blocks were really made longer, located like a ratio: reading the clock takes time, so no
    delay ends exactly where it was asked to."""
    return math.expm1(locate(np.log(done.ticks[:, slot] / done.undelayed[:, slot]), m.placement).value)


def _runner(options: Options, kind: Kind) -> tuple[Runner, float]:
    """A warm runner over the reference, the slowed slots, the copy and the twin; and the seconds that one block takes."""
    hs = handlers(options.handlers)
    tr = uniform(hs, seed=options.seed)
    cells = [Cell(ARM, hs, tr, ARM), *(Cell(ARM, hs, tr, f"{ARM} +{d} ppm", delay_ppm=d) for d in kind.delays)]
    cells += [Cell(COPY, hs, tr, COPY)] if kind.copy else []
    clock = _engine.clock_info()
    runner = Runner(prepare_cells(cells, 0, BLOCK), BLOCK, options.pinned, options.seed, clock["ticks_per_ns"])
    runner.lengthen(shortest_block(clock))
    per_round = runner.pilot(shortest_block(clock), "calibrate")
    return runner, per_round / clock["ticks_per_ns"] / 1e9 / (len(cells) + 1)


def _measure(warm: tuple[Runner, float], seconds: float, seed: int) -> tuple[Measurement, Rounds]:
    """Rounds in which every pair of slots runs for `seconds`."""
    runner, per_block = warm
    done = runner.rounds(max(8, round(seconds / 2 / per_block)), None, seed)
    if done.interrupted:
        raise KeyboardInterrupt
    return as_measurement("calibrate", runner.prepared, runner, done, 0, {}), done
