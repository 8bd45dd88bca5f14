"""What a slot runs, built and held against the reference before anything is timed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from .arms import find, prepare
from .errors import UsageError, explain
from .handlers import HandlerSet
from .probes import expected_probes
from .recording import Slot
from .traffic import Traffic

PLACEMENTS = 4


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
