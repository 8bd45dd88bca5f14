"""Finding slots in a recording by arm or label and by what they ran over."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING

from .errors import UsageError, explain
from .recording import Slot

if TYPE_CHECKING:
    from .recording import Measurement, Recording

FIELDS = ("measurement", *(f.name for f in fields(Slot)))
SHOWN = 6  # candidates named in an error line


def one(recording: Recording, name: str, where: Mapping[str, object]) -> tuple[Measurement, int]:
    """The measurement and index of the only slot that fits. UsageError for none, and for several."""
    found = list(_matching(recording, name, where))
    if len(found) == 1:
        return found[0]
    raise _several(name, found) if found else _nothing(recording, name, where)


def pair(recording: Recording, a: str, b: str, where: Mapping[str, object]) -> tuple[Measurement, int, int]:
    """The measurement that ran both, with their indexes: only rounds of one measurement can be paired."""
    first, second = list(_matching(recording, a, where)), list(_matching(recording, b, where))
    for name, found in ((a, first), (b, second)):
        if not found:
            raise _nothing(recording, name, where)
    pairs = [(m, i, j) for m, i in first for other, j in second if m is other]
    if len(pairs) == 1:
        return pairs[0]
    if not pairs:
        raise UsageError(
            explain(
                f"{a} and {b} were not measured in the same rounds",
                remedy="measure them together, or use compare",
            )
        )
    for name, indexes in ((a, {(id(m), i) for m, i, _ in pairs}), (b, {(id(m), j) for m, _, j in pairs})):
        if len(indexes) > 1:
            raise _several(name, first if name == a else second)
    raise AssertionError("two pairs differ in one of their members")


def _matching(
    recording: Recording, name: str, where: Mapping[str, object]
) -> Iterator[tuple[Measurement, int]]:
    """Slots with this label; else of this arm, twins only when asked for by role."""
    unknown = [key for key in where if key not in FIELDS]
    if unknown:
        raise UsageError(
            explain("no such field of a slot", got=unknown[0], remedy=_nearest(unknown[0], FIELDS))
        )
    fitting = [
        (m, index)
        for m in recording.measurements
        for index, slot in enumerate(m.slots)
        if all(_field(m, slot, key) == value for key, value in where.items())
    ]
    labelled = [(m, index) for m, index in fitting if m.slots[index].label == name]
    return iter(
        labelled
        or [
            (m, index)
            for m, index in fitting
            if m.slots[index].arm == name and (m.slots[index].role != "twin" or "role" in where)
        ]
    )


def _field(measurement: Measurement, slot: Slot, key: str) -> object:
    return measurement.name if key == "measurement" else getattr(slot, key)


def _nothing(recording: Recording, name: str, where: Mapping[str, object]) -> UsageError:
    """Why nothing fits: the name is unknown, or one of the values is, or they never meet."""
    slots = [(m, slot) for m in recording.measurements for slot in m.slots]
    names = sorted({n for _, slot in slots for n in (slot.arm, slot.label)})
    if name not in names:
        return UsageError(
            explain("nothing in the recording is called so", got=name, remedy=_nearest(name, names))
        )
    for key, value in where.items():
        there = {_field(m, slot, key) for m, slot in slots if name in (slot.arm, slot.label)}
        if value not in there:
            known = sorted(map(str, there))
            return UsageError(
                explain(f"{name} was not measured with {key}={value}", remedy=_nearest(str(value), known))
            )
    wanted = ", ".join(f"{key}={value}" for key, value in where.items())
    return UsageError(
        explain(f"{name} was not measured with {wanted} together", remedy="leave one of them out")
    )


def _several(name: str, found: Sequence[tuple[Measurement, int]]) -> UsageError:
    """Names the fields in which the candidates differ, so that the reader knows what to add."""
    values = [{key: _field(m, m.slots[i], key) for key in FIELDS} for m, i in found]
    keys = [key for key in FIELDS if len({value[key] for value in values}) > 1]
    telling = [key for key in keys if key != "label"] or keys
    shown = [", ".join(f"{key}={value[key]}" for key in telling) for value in values[:SHOWN]]
    more = f" and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
    return UsageError(
        explain(
            f"{name} was measured {len(found)} times",
            got=" | ".join(shown) + more,
            remedy=f"choose one by {', '.join(f'{key}=' for key in telling)}",
        )
    )


def _nearest(got: str, known: Sequence[str]) -> str:
    near = difflib.get_close_matches(got, known, SHOWN, 0.5) or list(known[:SHOWN])
    return f"there is {', '.join(near)}{', ...' if len(known) > len(near) == SHOWN else ''}"
