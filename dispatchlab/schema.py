"""What a recording of schema 1 must look like: every field, type, shape and range, checked one by one."""

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from .strictjson import short

SCHEMA = 1
INT64 = 2**63 - 1
ROLES = ("arm", "twin", "control")
PREDICATES = ("packed", "spread")


class Mismatch(ValueError):
    """The first thing in a document that schema 1 does not allow."""

    def __init__(self, at: str, expected: str, got: str) -> None:
        super().__init__(f"{at}: expected {expected}, got {got}")
        self.at, self.expected, self.got = at, expected, got


Check = Callable[[Any, str], None]


def check(document: Any) -> None:
    """Raise Mismatch unless `document` is a whole recording of schema 1; its digest is not compared here."""
    _fields(document, "recording", RECORDING)
    for index, measurement in enumerate(document["measurements"]):
        _measurement(measurement, f"measurements[{index}]")
    _distinct([m["name"] for m in document["measurements"]], "measurements", "name")


def _measurement(m: Any, at: str) -> None:
    _fields(m, at, MEASUREMENT)
    for index, slot in enumerate(m["slots"]):
        _fields(slot, f"{at}.slots[{index}]", SLOT, SLOT_OPTIONAL)
    labels = [slot["label"] for slot in m["slots"]]
    _distinct(labels, f"{at}.slots", "label")
    slots, rounds = len(labels), len(m["ticks"])
    if rounds < 2:
        raise Mismatch(f"{at}.ticks", "two rounds at least, one gives no interval", f"{rounds}")
    _table(m["ticks"], f"{at}.ticks", rounds, slots, 0, INT64)
    _table(m["order"], f"{at}.order", rounds, slots, 0, slots - 1)
    for index, row in enumerate(m["order"]):
        if len(set(row)) != slots:
            raise Mismatch(f"{at}.order[{index}]", "every slot once", short(row))
    _row(m["placement"], f"{at}.placement", rounds, 0, 127)
    _row(m["window"], f"{at}.window", rounds, 0, 2**31 - 1)
    _flags(m["flagged"], f"{at}.flagged", rounds)
    for name, row in m["ledger"].items():
        _row(row, f"{at}.ledger[{short(name)}]", rounds, -INT64 - 1, INT64)
    for field in ("checksums", "expected", "probes", "expected_probes", "footprint"):
        for label in m[field]:
            if label not in labels:
                raise Mismatch(f"{at}.{field}", "labels of slots", short(label))
    for label in labels:
        if label not in m["checksums"]:
            raise Mismatch(f"{at}.checksums", "one of every slot", f"none of {short(label)}")
    _twin(m, at, slots)


def _twin(m: Any, at: str, slots: int) -> None:
    """The null control must be a second run of the very cell that ratios are taken against."""
    for field in ("reference", "twin"):
        if m[field] >= slots:
            raise Mismatch(f"{at}.{field}", f"a slot, 0 to {slots - 1}", short(m[field]))
    reference, twin = m["slots"][m["reference"]], m["slots"][m["twin"]]
    if twin["role"] != "twin":
        raise Mismatch(f"{at}.twin", 'a slot of role "twin"', short(twin["role"]))
    for field in (SLOT | SLOT_OPTIONAL).keys() - {"label", "role"}:
        if twin.get(field) != reference.get(field):
            raise Mismatch(f"{at}.twin", f"the {field} of its reference", short(twin.get(field)))


def _fields(value: Any, at: str, spec: dict[str, Check], optional: Mapping[str, Check] = MappingProxyType({})) -> None:
    """An object with exactly the fields of `spec` and any of `optional`, each as its check wants it."""
    if type(value) is not dict:
        raise Mismatch(at, "an object", short(value))
    for name, field in spec.items():
        if name not in value:
            raise Mismatch(at, f'a field "{name}"', "none")
        field(value[name], f"{at}.{name}" if at != "recording" else name)
    for name in value:
        if name in optional:
            optional[name](value[name], f"{at}.{name}")
        elif name not in spec:
            raise Mismatch(at, f"no field that schema {SCHEMA} does not have", short(name))


def _distinct(values: Sequence[str], at: str, what: str) -> None:
    seen: set[str] = set()
    for value in values:
        if value in seen:
            raise Mismatch(at, f"every {what} once", f"{short(value)} twice")
        seen.add(value)


def _table(value: Any, at: str, rows: int, columns: int, low: int, high: int) -> None:
    _sized(value, at, rows, "rounds")
    for index, row in enumerate(value):
        _row(row, f"{at}[{index}]", columns, low, high, "slots")


def _row(value: Any, at: str, length: int, low: int, high: int, unit: str = "rounds") -> None:
    """A list of `length` integers; sets, min and max keep a million ticks well under a second."""
    _sized(value, at, length, unit)
    if not set(map(type, value)) <= {int}:
        wrong = next(i for i, item in enumerate(value) if type(item) is not int)
        raise Mismatch(f"{at}[{wrong}]", "an integer", short(value[wrong]))
    if value and (min(value) < low or max(value) > high):
        wrong = next(i for i, item in enumerate(value) if not low <= item <= high)
        raise Mismatch(f"{at}[{wrong}]", f"{low} to {high}", short(value[wrong]))


def _flags(value: Any, at: str, length: int) -> None:
    _sized(value, at, length, "rounds")
    for index, item in enumerate(value):
        if type(item) is not bool:
            raise Mismatch(f"{at}[{index}]", "true or false", short(item))


def _sized(value: Any, at: str, length: int, unit: str) -> None:
    if type(value) is not list:
        raise Mismatch(at, "a list", short(value))
    if len(value) != length:
        raise Mismatch(at, f"{length} {unit}", str(len(value)))


def _text(value: Any, at: str) -> None:
    if type(value) is not str or not value:
        raise Mismatch(at, "a text", short(value))


def _text_or_null(value: Any, at: str) -> None:
    if value is not None:
        _text(value, at)


def _boolean(value: Any, at: str) -> None:
    if type(value) is not bool:
        raise Mismatch(at, "true or false", short(value))


def _list(value: Any, at: str) -> None:
    if type(value) is not list:
        raise Mismatch(at, "a list", short(value))


def _json(value: Any, at: str) -> None:
    """Anything strict JSON can hold: true of all that was parsed, not of all that a study hands over."""
    if isinstance(value, dict):
        for key, item in value.items():
            _json(item, f"{at}[{short(key)}]")
    elif isinstance(value, list):
        for item in value:
            _json(item, at)
    elif not (value is None or type(value) in (str, int, bool) or _is_finite(value)):
        raise Mismatch(at, "a finite number, text, list or object", short(value))


def _object(value: Any, at: str) -> None:
    if type(value) is not dict:
        raise Mismatch(at, "an object", short(value))
    _json(value, at)


def _is_finite(value: Any) -> bool:
    return type(value) is float and math.isfinite(value)


@dataclass(frozen=True)
class _Integer:
    low: int
    high: int = INT64

    def __call__(self, value: Any, at: str) -> None:
        if type(value) is not int or not self.low <= value <= self.high:
            raise Mismatch(at, f"an integer, {self.low} to {self.high}", short(value))


@dataclass(frozen=True)
class _Number:
    low: float
    above: bool = False

    def __call__(self, value: Any, at: str) -> None:
        fits = _is_finite(value) and (value > self.low if self.above else value >= self.low)
        if not fits:
            raise Mismatch(at, f"a number {'above' if self.above else 'from'} {self.low:g}", short(value))


@dataclass(frozen=True)
class _OneOf:
    words: Iterable[str]

    def __call__(self, value: Any, at: str) -> None:
        if type(value) is not str or value not in self.words:
            raise Mismatch(at, " or ".join(f'"{word}"' for word in self.words), short(value))


@dataclass(frozen=True)
class _Pattern:
    pattern: str
    what: str

    def __call__(self, value: Any, at: str) -> None:
        if type(value) is not str or not re.fullmatch(self.pattern, value, re.ASCII):
            raise Mismatch(at, self.what, short(value))


@dataclass(frozen=True)
class _Record:
    spec: dict[str, Check]

    def __call__(self, value: Any, at: str) -> None:
        _fields(value, at, self.spec)


@dataclass(frozen=True)
class _MapOf:
    item: Check

    def __call__(self, value: Any, at: str) -> None:
        if type(value) is not dict:
            raise Mismatch(at, "an object", short(value))
        for key, item in value.items():
            self.item(item, f"{at}[{short(key)}]")


@dataclass(frozen=True)
class _ListOf:
    item: Check

    def __call__(self, value: Any, at: str) -> None:
        _list(value, at)
        for index, item in enumerate(value):
            self.item(item, f"{at}[{index}]")


_HEX = _Pattern("[0-9a-f]{1,64}", "lower-case hexadecimal digits")

SLOT: dict[str, Check] = {
    "arm": _text,
    "label": _text,
    "role": _OneOf(ROLES),
    "handlers": _Integer(0, 65536),
    "body": _text,
    "size": _text,
    "order": _text,
    "residual": _Number(0.0),
    "overlap": _boolean,
    "predicates": _OneOf(PREDICATES),
    "traffic": _text,
    "pool": _Integer(1),
    "delay_ppm": _Integer(0),
}

SLOT_OPTIONAL: dict[str, Check] = {"state": _Integer(1, 65536), "objects": _OneOf(("scattered",)), "plugins": _Integer(1, 512)}
"""Left out where handlers have no state, stand side by side, and are the engine's own."""

MEASUREMENT: dict[str, Check] = {
    "name": _text,
    "slots": _list,
    "reference": _Integer(0),
    "twin": _Integer(0),
    "block": _Integer(1),
    "ticks": _list,
    "order": _list,
    "placement": _list,
    "window": _list,
    "ticks_per_ns": _Number(0.0, above=True),
    "clock": _object,
    "ledger": _MapOf(_list),
    "flagged": _list,
    "checksums": _MapOf(_HEX),
    "expected": _MapOf(_HEX),
    "probes": _MapOf(_Number(0.0)),
    "expected_probes": _MapOf(_Number(0.0)),
    "footprint": _MapOf(_Integer(0)),
    "failures": _ListOf(_text),
}

RECORDING: dict[str, Check] = {
    "schema": _Integer(SCHEMA, SCHEMA),
    "study": _text,
    "created": _Pattern(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", "a time in UTC such as 2026-01-31T12:00:00Z"),
    "seed": _Integer(0, 2**64 - 1),
    "package": _Record({"version": _text, "commit": _text_or_null}),
    "environment": _object,
    "measurements": _list,
    "extra": _object,
    "digest": _Pattern("[0-9a-f]{64}", "64 hexadecimal digits"),
}
