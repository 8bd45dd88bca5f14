"""What has to be measured and enumerated before a verdict can be given; everything left of the recording."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from .. import _engine
from ..cells import Cell
from ..errors import UsageError, explain
from ..handlers import HandlerSet, handlers
from ..machinecode import code_sizes
from ..measure import LONG_BLOCK, measure_cells, record
from ..probes import count_probes, expected_probes
from ..recording import Measurement, Recording
from ..studies.options import Options
from ..studies.past_the_table import latencies as batch_latencies
from ..studies.tail import ARMS as TAIL_ARMS
from ..studies.tail import Day, days, histogram, latencies
from ..studies.traffic import source
from ..traffic import Traffic, flood, make
from ..traffic.describing import describe
from .evidence import BATCH_ARMS
from .legal import residual_lists, witness

NAME = "advise"
LOOPS = ("scan", "scan-ordered")
ARMS = ("table-compact", *LOOPS, "scan-simd", "cache-last-scan", "top-n", *BATCH_ARMS, "null", "table-compact-copy")
PLAIN = ("table-compact", "virtual", "erasure", "static")
"""Over the same handlers without residual predicates: what those cost, and what the way of calling is worth."""

MOST_RATE = 1e9
SPLIT = (0.7, 0.3)
"""Of the time: for the arms under the usual traffic, and for the bad days."""


@dataclass(frozen=True)
class Case:
    """One service. traffic: a capture, a counts table or the name of a generator. rate: packets per second. p999: ns that one in a
    thousand packets may take, None when nothing was promised. budget: seconds of measuring. key: what of a capture is the key."""

    traffic: str
    handlers: int = 100
    residual: float = 0.1
    overlap: bool = False
    body: str = "chain"
    size: str = "fat"
    rate: float = 3e6
    p999: float | None = None
    plugins: tuple[str, ...] = ()
    conflicts: str = "error"
    key: str = "service"
    budget: float = 20.0
    options: Options = field(default_factory=Options)

    def __post_init__(self) -> None:
        if self.p999 is not None and not 0 < self.p999 < 1e12:
            raise UsageError(explain("no time that a packet may take", "--p999", "ns above 0", f"{self.p999:g}"))

    def set(self, **changes: Any) -> HandlerSet:
        """The service's handlers, or some that differ from them."""
        given = {"residual": self.residual, "overlap": self.overlap, "plugins": self.plugins, "conflicts": self.conflicts}
        return handlers(self.handlers, body=self.body, size=self.size, **{**given, **changes})

    def packets(self, hs: HandlerSet) -> Traffic:
        """The service's packets, for these handlers."""
        return make(self.traffic, hs, seed=self.options.seed, key=self.key)


def parse_rate(text: str) -> float:
    """Packets per second out of "3M", "250k", "3e6", "3_000_000"; UsageError for anything else and for what is not above 0."""
    match = re.fullmatch(r"([0-9][0-9_]*(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)([kKMG]?)", text.strip())
    try:
        rate = float(match[1]) * {"k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9}.get(match[2], 1.0) if match else 0.0
    except (ValueError, OverflowError):
        rate = 0.0
    if not 0 < rate <= MOST_RATE:
        wanted = f"packets per second above 0, at most {MOST_RATE:g}, such as 3M, 3e6 or 3_000_000"
        raise UsageError(explain("rate cannot be used", "--rate", wanted, repr(text)))
    return rate


def measure(case: Case) -> Recording:
    """Every arm that matters for the case under its own traffic and on bad days; answers checked as in every measurement."""
    hs = case.set()
    usual = case.packets(hs)
    bad = dict(days(hs, usual, case.options.seed))
    if hs.masks.any():  # the table's own worst, too
        against_table = flood(hs, "residual", case.options.seed, pool=len(usual))
        bad["attack-residual"] = Day(replace(against_table, name="attack-residual"), usual)
    cells = [Cell(arm, hs, usual, arm) for arm in ARMS]
    cells += _plain(case)
    daily = [Cell(arm, hs, d.traffic, f"{arm} {name}", trained=d.trained) for name, d in bad.items() for arm in TAIL_ARMS]
    measurements: list[Measurement] = []
    short = ""
    try:
        for name, own, share in ((NAME, cells, SPLIT[0]), ("tail", daily, SPLIT[1])):
            measurements.append(_measured(case, name, own, share * case.budget))
    except UsageError as error:
        if "budget is too small" not in str(error):
            raise
        short = str(error)
    facts = {NAME: {**_facts(case, hs, usual), "too_short": short}}
    if not short:
        facts |= _timed_facts(case, cells, daily)
    sources = {usual.name: source(usual)} if usual.assigned else {}
    return record(NAME, measurements, seed=case.options.seed, cpu=case.options.pinned, sources=sources, **facts)


def _plain(case: Case) -> list[Cell]:
    """The same service if no predicate asked for more than its key, and nothing came from a library."""
    hs = case.set(residual=0, overlap=False, plugins=())
    if not hs.count:
        return []
    tr = replace(case.packets(hs), name="keys alone")
    return [Cell(arm, hs, tr, f"{arm} keys alone") for arm in PLAIN]


def _measured(case: Case, name: str, cells: Sequence[Cell], seconds: float) -> Measurement:
    with case.options.progress(name) as progress:
        return measure_cells(
            name,
            cells,
            budget=seconds,
            rounds=case.options.rounds,
            cpu=case.options.pinned,
            seed=case.options.seed,
            block=LONG_BLOCK,
            reference=[c.arm for c in cells].index("table-compact"),
            progress=progress,
        )


def _facts(case: Case, hs: HandlerSet, usual: Traffic) -> dict[str, Any]:
    """What is known without a clock."""
    wanted = ("handlers", "residual", "overlap", "body", "size", "rate", "p999", "key", "budget")
    codes = code_sizes().get(f"{hs.body} {hs.size}")
    received = hs.frequency(usual.packets)
    order = hs.order.tolist()
    return {
        "case": {name: getattr(case, name) for name in wanted} | {"plugins": len(case.plugins)},
        "traffic": describe(usual, hs).to_dict(),
        "probes": {arm: _probes(arm, hs, usual) for arm in ("scan", "scan-ordered", "table-compact")},
        "witness": witness(hs, usual),
        "lists": residual_lists(hs, usual),
        "code": {"handler_bytes": codes["bytes"] if codes else None, "reached": int((received > 0).sum())},
        "registered": [int(received[i]) for i in order],
    }


def _probes(arm: str, hs: HandlerSet, usual: Traffic) -> dict[str, Any]:
    counted, computed = count_probes(arm, hs, usual), expected_probes(arm, hs, usual)
    return {
        "mean": float(counted.mean()),
        "worst": int(counted.max()),
        "computed_mean": float(computed.mean()),
        "differ": int((counted != computed).sum()),
        "histogram": histogram(counted),
    }


def _timed_facts(case: Case, cells: Sequence[Cell], daily: list[Cell]) -> dict[str, Any]:
    """Latencies packet by packet: on every day, and from handing a batch over to its results."""
    quick = replace(case.options, quick=True)
    own = [c for c in cells if c.traffic is cells[0].traffic and c.arm in ("table-compact", *BATCH_ARMS)]
    ticks = _engine.clock_info()["ticks_per_ns"]
    return {
        "tail": {"probes": _daily_probes(daily), **latencies(quick, daily)},
        "batches": {"ticks_per_ns": ticks, "delays": batch_latencies(quick, own)},
    }


def _daily_probes(daily: list[Cell]) -> dict[str, list[list[int]]]:
    return {c.label: histogram(expected_probes(c.arm, c.handlers, c.traffic, c.trained)) for c in daily}
