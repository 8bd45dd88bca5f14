"""The measuring half of `calibrate`: many short comparisons of an arm with itself, some of them slowed on purpose."""

from __future__ import annotations

import time
from collections import defaultdict

from . import _engine
from .calibration import Calibration, Compared, calibrate
from .handlers import handlers
from .intervals import Estimate
from .measure import BLOCK, Cell, Runner, as_measurement, prepare_cells, shortest_block
from .studies.options import Options
from .summary import CONFIDENCE, ratio
from .traffic import uniform

ARM = "table-compact"
LONGER = 4
"""The smallest effect is also looked for in this many times the measuring time."""

PLAN = (
    # injected differences (ppm), times the measuring time, runs per comparison asked for
    ((), 1, 5 / 8),
    ((10_000, 20_000), 1, 1 / 4),
    ((5_000,), LONGER, 1 / 8),
)
"""Three kinds of run. Each compares the arm with its twin; the slowed slots of a run share the same reference rounds."""


def calibrate_here(options: Options, comparisons: int, seconds: float) -> Calibration:
    """Run `comparisons` A/A comparisons of `seconds` each (an eighth of them four times as long), and with a quarter of them
    +1 % and +2 %, with an eighth +0.5 %. A comparison's time is what its two slots ran."""
    found: dict[tuple[float, float], list[Estimate]] = defaultdict(list)
    with options.progress("calibrate") as progress:
        todo = [max(1, round(comparisons * share)) for *_, share in PLAN]
        runs = [_kind(options, delays) for delays, _, _ in PLAN]
        turns = sorted((i / n, kind) for kind, n in enumerate(todo) for i in range(n))  # all kinds see all spells
        for done, (_, kind) in enumerate(turns):
            delays, times, _ = PLAN[kind]
            for effect, estimate in _compare(runs[kind], delays, seconds * times, options.seed + done):
                found[effect, seconds * times].append(estimate)
            if progress is not None:
                progress(done + 1, len(turns))
    return calibrate([Compared(e, s, tuple(v)) for (e, s), v in found.items()], CONFIDENCE)


def _kind(options: Options, delays: tuple[int, ...]) -> tuple[Runner, float]:
    """A warm runner over the reference, the slowed slots and the twin; and the seconds one block takes."""
    hs = handlers(options.handlers)
    tr = uniform(hs, seed=options.seed)
    cells = [Cell(ARM, hs, tr, ARM), *(Cell(ARM, hs, tr, f"{ARM} +{d} ppm", delay_ppm=d) for d in delays)]
    clock = _engine.clock_info()
    runner = Runner(prepare_cells(cells, 0, BLOCK), BLOCK, options.pinned, options.seed, clock["ticks_per_ns"])
    per_round = runner.pilot(shortest_block(clock), "calibrate")
    return runner, per_round / clock["ticks_per_ns"] / 1e9 / (len(cells) + 1)


def _compare(
    kind: tuple[Runner, float], delays: tuple[int, ...], seconds: float, seed: int
) -> list[tuple[float, Estimate]]:
    """One run: (effect, ratio to the reference) for the twin and for every slowed slot."""
    runner, per_block = kind
    start = time.perf_counter()
    rounds = max(8, round(seconds / 2 / per_block))
    done = runner.rounds(rounds, None, seed)
    if done.interrupted:
        raise KeyboardInterrupt
    m = as_measurement("calibrate", runner.prepared, runner, done, 0, {"seconds": time.perf_counter() - start})
    pairs = [(0.0, m.twin), *((d / 1e6, i + 1) for i, d in enumerate(delays))]
    return [(effect, ratio(m, slot, 0)) for effect, slot in pairs]
