"""Scenes: the slots of a measurement that differ in nothing but the arm, so that they can be set side by side."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields

from .recording import Measurement, Recording, Slot

AXES = tuple(f.name for f in fields(Slot) if f.name not in ("arm", "label", "role"))
PACKET_BYTES = 32
USUAL = 100
"""What is said in one sentence is said of so many handlers where they were measured."""


@dataclass(frozen=True)
class Scene:
    """One handler set under one traffic; `arms` maps each arm that ran there to its slot index, no twins."""

    measurement: Measurement
    slot: Slot  # any of them: all agree in AXES
    arms: dict[str, int] = field(default_factory=dict)

    def has(self, *arms: str) -> bool:
        """True when all of these arms ran here."""
        return all(arm in self.arms for arm in arms)

    @property
    def pool_bytes(self) -> int:
        """Size of the packet pool."""
        return self.slot.pool * PACKET_BYTES


def scenes(measurement: Measurement) -> list[Scene]:
    """The scenes of a measurement in the order in which they were set up."""
    found: dict[tuple[object, ...], Scene] = {}
    for index, slot in enumerate(measurement.slots):
        if slot.role == "twin":
            continue
        key = tuple(getattr(slot, axis) for axis in AXES)
        scene = found.setdefault(key, Scene(measurement, slot))
        scene.arms.setdefault(slot.arm, index)
    return list(found.values())


def varying(found: list[Scene]) -> list[str]:
    """The axes in which scenes differ."""
    return [axis for axis in AXES if len({getattr(s.slot, axis) for s in found}) > 1]


def along(recording: Recording, axis: str, *arms: str) -> list[Scene]:
    """Scenes that ran all of `arms`, from the first measurement in which at least two of them differ in `axis` alone."""
    for measurement in recording.measurements:
        those = [s for s in scenes(measurement) if s.has(*arms)]
        if len(those) > 1 and varying(those) == [axis]:
            return sorted(those, key=lambda s: float(getattr(s.slot, axis)))
    return []


def under_every_traffic(recording: Recording, *arms: str) -> list[Scene]:
    """Scenes of as many handlers as most have (USUAL among equals) that ran all of `arms`, one for each traffic: where several
    measurements ran one, that of the measurement with most traffics."""
    several = sorted(recording.measurements, key=lambda m: -len({s.slot.traffic for s in scenes(m)}))
    every = [s for m in several for s in scenes(m) if s.has(*arms)]
    counts = [s.slot.handlers for s in every]
    usual = max(counts, key=lambda n: (counts.count(n), n == USUAL, n), default=0)
    found: dict[str, Scene] = {}
    for scene in every:
        if scene.slot.handlers == usual:
            found.setdefault(scene.slot.traffic, scene)
    return list(found.values())


def each_scene(recording: Recording) -> Iterator[Scene]:
    """All scenes of all measurements."""
    for measurement in recording.measurements:
        yield from scenes(measurement)
