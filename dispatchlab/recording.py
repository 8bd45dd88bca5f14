"""The recording: what was measured, raw and unchangeable; everything after it only reads."""

from __future__ import annotations

import gzip
import io
import os
import stat
import zlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np
from numpy.typing import DTypeLike, NDArray

from . import schema, strictjson
from .errors import Error, RecordingError, explain
from .files import write_atomic

if TYPE_CHECKING:
    import pandas

    from .intervals import Estimate

MAX_BYTES = 1 << 28  # unpacked; a full study takes a few MiB, a .gz that unfolds beyond this is no recording
GZIP_MAGIC = b"\x1f\x8b"


@dataclass(frozen=True)
class Slot:
    """One arm over one handler set and one traffic; the unit a round runs once."""

    arm: str
    label: str  # unique within the measurement
    role: Literal["arm", "twin", "control"]
    handlers: int
    body: str
    size: str
    order: str
    residual: float
    overlap: bool
    predicates: Literal["packed", "spread"]
    traffic: str
    pool: int  # packets
    delay_ppm: int = 0  # slowed down on purpose by so many millionths
    state: int = 0  # bytes that each handler owns and changes
    objects: Literal["packed", "scattered"] = "packed"
    plugins: int = 0  # how many of the handlers came from plugins


@dataclass(frozen=True, eq=False)
class Measurement:
    """Rounds in which every slot ran one block; arrays are read-only copies.

    ticks       int64[rounds, slots], raw, by slot (not by position)
    order       int16[rounds, slots], the slot run at each position
    placement   int8[rounds], the code placement that every slot used
    window      int32[rounds], where in the pool the round's packets start
    ledger      name -> int64[rounds], what the system did meanwhile
    flagged     bool[rounds], disturbed according to the ledger; nothing is ever left out
    """

    name: str
    slots: tuple[Slot, ...]
    reference: int  # index of the slot that ratios are against
    twin: int  # index of the second, identical slot: the null control
    block: int  # packets per slot and round
    ticks: NDArray[np.int64]
    order: NDArray[np.int16]
    placement: NDArray[np.int8]
    window: NDArray[np.int32]
    ticks_per_ns: float
    clock: Mapping[str, Any]
    ledger: Mapping[str, NDArray[np.int64]]
    flagged: NDArray[np.bool_]
    checksums: Mapping[str, str]
    expected: Mapping[str, str]
    probes: Mapping[str, float]  # per packet, counted
    expected_probes: Mapping[str, float]  # per packet, enumerated
    footprint: Mapping[str, int]  # bytes
    failures: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name, dtype in _ARRAYS.items():
            object.__setattr__(self, name, _frozen(getattr(self, name), dtype))
        ledger = {name: _frozen(column, np.int64) for name, column in self.ledger.items()}
        object.__setattr__(self, "ledger", ledger)
        object.__setattr__(self, "slots", tuple(self.slots))
        object.__setattr__(self, "failures", tuple(self.failures))

    @property
    def rounds(self) -> int:
        """How many rounds there are."""
        return len(self.ticks)

    def wrong_answers(self) -> list[str]:
        """One line for each slot whose checksum is not the expected one."""
        return [
            f"{self.name}: {label}: checksum {got}, expected {self.expected[label]}"
            for label, got in self.checksums.items()
            if self.expected.get(label, got) != got
        ]


@dataclass(frozen=True, eq=False)
class Recording:
    """A finished study: measurements with where, when and how they were made. Equal when the digests are."""

    study: str
    seed: int
    package: Mapping[str, str | None]  # version, commit
    environment: Mapping[str, Any]
    measurements: tuple[Measurement, ...]
    extra: Mapping[str, Any] = field(default_factory=dict)  # what the study found out without timing
    created: str = field(default_factory=lambda: datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"))
    schema: int = schema.SCHEMA

    def __post_init__(self) -> None:
        object.__setattr__(self, "measurements", tuple(self.measurements))

    def __eq__(self, other: object) -> bool:
        return self.digest == other.digest if isinstance(other, Recording) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.digest)

    @cached_property
    def digest(self) -> str:
        """sha256 over all that is recorded, in hex."""
        return strictjson.digest(self._document())

    @property
    def failures(self) -> tuple[str, ...]:
        """Every check that failed, one line each, wrong checksums among them."""
        return tuple(
            line for m in self.measurements for line in dict.fromkeys([*m.failures, *m.wrong_answers()])
        )

    @property
    def ok(self) -> bool:
        """True when no check failed."""
        return not self.failures

    @property
    def checksums(self) -> dict[str, str]:
        """Label -> checksum in hex; "measurement/label" when there are several measurements."""
        return self._by_label("checksums")

    @property
    def probes(self) -> dict[str, float]:
        """Label -> predicate calls per packet, counted; keys as in `checksums`."""
        return self._by_label("probes")

    @property
    def controls(self) -> dict[str, Estimate]:
        """The null control, twin over reference ("label / label"), and ns/packet of each control slot."""
        from . import summary

        found = {}
        for m in self.measurements:
            prefix = f"{m.name}/" if len(self.measurements) > 1 else ""
            twin = f"{m.slots[m.twin].label} / {m.slots[m.reference].label}"
            found[prefix + twin] = summary.ratio(m, m.twin, m.reference)
            for index, slot in enumerate(m.slots):
                if slot.role == "control":
                    found[prefix + slot.label] = summary.ns(m, index)
        return found

    def ns(self, name: str, **where: object) -> Estimate:
        """ns/packet of the one slot called `name` (arm or label) for which `where` holds.

        `where` names fields of Slot, or measurement=: `ns("scan", handlers=100, traffic="zipf")`. None
        or several such slots: UsageError that names what there is.
        """
        from . import summary
        from .selection import one

        measurement, index = one(self, name, where)
        return summary.ns(measurement, index)

    def ratio(self, a: str, b: str, **where: object) -> Estimate:
        """ns of `a` over ns of `b`, paired per round; both out of one measurement, chosen as in `ns`."""
        from . import summary
        from .selection import pair

        measurement, first, second = pair(self, a, b, where)
        return summary.ratio(measurement, first, second)

    def to_pandas(self) -> pandas.DataFrame:
        """One row per measurement, round and slot: its fields, position, ticks, ns_per_packet, ledger."""
        from .export import to_pandas

        return to_pandas(self)

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """The rows of `to_pandas` as a CSV file; needs no pandas."""
        from .export import csv_bytes

        write_atomic(path, csv_bytes(self))

    def to_pyperf(self, path: str | os.PathLike[str]) -> None:
        """A pyperf suite (JSON, 1.0): a benchmark per slot, a value (seconds per packet) per round."""
        from .export import pyperf_bytes

        write_atomic(path, pyperf_bytes(self))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it whole or not at all, packed when the name ends in .gz. Same recording, same bytes.

        What `load` would refuse is refused here, too: Error.
        """
        document = self._document()
        try:
            document["digest"] = strictjson.digest(document)
            schema.check(document)
        except (schema.Mismatch, ValueError, TypeError, RecursionError) as error:
            raise Error(explain(f"not a recording that could be loaded again: {error}", str(path))) from error
        data = (strictjson.render(document) + "\n").encode("ascii")
        write_atomic(path, _pack(data) if os.fspath(path).endswith(".gz") else data)

    def _document(self) -> dict[str, Any]:
        """What is written, without the digest."""
        document = {f.name: strictjson.plain(getattr(self, f.name)) for f in fields(self)}
        document["measurements"] = [_measurement_document(m) for m in self.measurements]
        return document

    def _by_label(self, name: str) -> dict[str, Any]:
        several = len(self.measurements) > 1
        return {
            f"{m.name}/{label}" if several else label: value
            for m in self.measurements
            for label, value in getattr(m, name).items()
        }


def load(path: str | os.PathLike[str]) -> Recording:
    """Read a recording, packed or not. RecordingError, one line, when it is not as it was written."""
    document = _read(Path(path))
    version = document.get("schema")
    if type(version) is not int or version < 1:
        raise _refused(path, "not a dispatchlab recording", 'a field "schema"', strictjson.short(version))
    if version > schema.SCHEMA:
        raise _refused(
            path,
            f"made by a newer dispatchlab: schema {version}, this one reads {schema.SCHEMA}",
            remedy="upgrade dispatchlab",
        )
    genuine = document.get("digest") == strictjson.digest(document)
    remedy = "measure again" if genuine else "it was changed after it was saved: take the original"
    try:
        schema.check(document)
    except schema.Mismatch as error:
        raise _refused(path, error.at, error.expected, error.got, remedy) from error
    except RecursionError as error:
        raise _refused(path, "values nested too deeply", remedy=remedy) from error
    if not genuine:
        raise _refused(path, "digest", strictjson.digest(document)[:16], document["digest"][:16], remedy)
    return _recording(document)


_ARRAYS: dict[str, DTypeLike] = {
    "ticks": np.int64,
    "order": np.int16,
    "placement": np.int8,
    "window": np.int32,
    "flagged": np.bool_,
}


def _frozen(values: Any, dtype: DTypeLike) -> NDArray[Any]:
    array = np.array(values, dtype=dtype)
    array.setflags(write=False)
    return array


_DEFAULTS = {f.name: f.default for f in fields(Slot)}


def _measurement_document(m: Measurement) -> dict[str, Any]:
    document = {f.name: strictjson.plain(getattr(m, f.name)) for f in fields(m)}
    document["slots"] = [strictjson.plain(asdict(slot)) for slot in m.slots]
    for slot in document["slots"]:
        slot["residual"] = float(slot["residual"])
        for name in schema.SLOT_OPTIONAL:  # written only where it says something, as in recordings from before there was state
            if slot[name] == _DEFAULTS[name]:
                del slot[name]
    for name in ("probes", "expected_probes"):
        document[name] = {label: float(value) for label, value in document[name].items()}
    document["ticks_per_ns"] = float(m.ticks_per_ns)
    return document


def _recording(document: dict[str, Any]) -> Recording:
    found = {key: value for key, value in document.items() if key != "digest"}
    found["measurements"] = [
        Measurement(**{**m, "slots": tuple(Slot(**slot) for slot in m["slots"])})
        for m in document["measurements"]
    ]
    recording = Recording(**found)
    recording.__dict__["digest"] = document["digest"]  # fills the cached property: load has just computed it
    return recording


def _read(path: Path) -> dict[str, Any]:
    try:
        # A pipe or a device could be read for ever.
        if not stat.S_ISREG(path.stat().st_mode):
            raise _refused(path, "cannot be read", "a file", "something else")
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
        if data.startswith(GZIP_MAGIC):
            data = _unpack(data)
        if len(data) > MAX_BYTES:
            raise _refused(path, "too long for a recording", f"{MAX_BYTES} bytes at most", "more")
        document = strictjson.parse(data.decode("utf-8"))
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise _refused(path, f"the packed data is damaged or cut short: {error}", remedy=_RETAKE) from error
    except strictjson.Malformed as error:
        what = "the file is cut short" if error.cut else "not strict JSON"
        raise _refused(path, what, got=str(error), remedy=_RETAKE) from error
    except UnicodeDecodeError as error:
        raise _refused(path, "not a recording", "text", "other bytes", _RETAKE) from error
    except OSError as error:
        raise _refused(path, "cannot be read", got=error.strerror or str(error)) from error
    except ValueError as error:  # a NUL in the name
        raise _refused(path, "cannot be read", got=str(error)) from error
    if not isinstance(document, dict):
        raise _refused(path, "not a dispatchlab recording", "an object", strictjson.short(document))
    return cast(dict[str, Any], document)


_RETAKE = "take another copy of it or measure again"


def _refused(
    path: str | os.PathLike[str], what: str, expected: str = "", got: str = "", remedy: str = ""
) -> RecordingError:
    return RecordingError(explain(what, str(path), expected, got, remedy))


def _pack(data: bytes) -> bytes:
    """gzip without time or name, so that the same recording gives the same bytes."""
    out = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", fileobj=out, mtime=0) as file:
        file.write(data)
    return out.getvalue()


def _unpack(data: bytes) -> bytes:
    with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
        return file.read(MAX_BYTES + 1)
