"""Recordings for other tools: tidy rows for pandas and CSV, and pyperf's benchmark suite."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .errors import Error, UsageError, explain
from .recording import Slot
from .strictjson import dumps

if TYPE_CHECKING:
    import pandas

    from .recording import Measurement, Recording

Columns = dict[str, NDArray[Any]]


def columns(recording: Recording) -> Columns:
    """One array per column, one row per measurement, round and slot; ledger entries not kept are -1.

    ns_per_packet is ticks / ticks_per_ns / block; position is where in its round the slot ran.
    """
    parts = [_measurement(m) for m in recording.measurements]
    if not parts:
        raise Error(explain("no measurement to export", f"recording of {recording.study}"))
    names = list(dict.fromkeys(name for part in parts for name in part))
    lengths = [len(part["round"]) for part in parts]
    return {
        name: np.concatenate(
            [
                part.get(name, np.full(length, -1, np.int64))
                for part, length in zip(parts, lengths, strict=True)
            ]
        )
        for name in names
    }


def to_pandas(recording: Recording) -> pandas.DataFrame:
    """`columns` as a data frame. UsageError without pandas."""
    try:
        import pandas
    except ImportError as error:
        raise UsageError(
            explain("to_pandas needs pandas", remedy="pip install 'dispatchlab[pandas]', or use to_csv")
        ) from error
    return pandas.DataFrame(columns(recording))


def csv_bytes(recording: Recording) -> bytes:
    """`columns` as CSV, UTF-8; the first line names the columns."""
    out = io.StringIO(newline="")
    writer = csv.writer(out, lineterminator="\n")
    table = columns(recording)
    writer.writerow(table)
    writer.writerows(zip(*(column.tolist() for column in table.values()), strict=True))
    return out.getvalue().encode("utf-8", "backslashreplace")


def pyperf_bytes(recording: Recording) -> bytes:
    """A suite of pyperf's JSON format 1.0. Error when a block took no tick: pyperf knows no value of zero.

    Source: https://pyperf.readthedocs.io/en/latest/api.html (BenchmarkSuite.dump, load).
    """
    several = len(recording.measurements) > 1
    benchmarks = []
    for m in recording.measurements:
        seconds = m.ticks / m.ticks_per_ns / m.block * 1e-9
        if not seconds.all():
            raise Error(
                explain("a block took 0 ticks, which pyperf cannot hold", m.name, remedy="use to_csv")
            )
        for index, slot in enumerate(m.slots):
            name = f"{m.name}/{slot.label}" if several else slot.label
            benchmarks.append(_benchmark(name, slot, m.block, seconds[:, index].tolist()))
    if not benchmarks:
        raise Error(explain("no measurement to export", f"recording of {recording.study}"))
    metadata = {
        "unit": "second",
        "loops": 1,
        "study": recording.study,
        "dispatchlab_version": recording.package["version"],
        "dispatchlab_commit": recording.package["commit"],
        "recording_digest": recording.digest,
        "recording_created": recording.created,
        **{f"environment_{key}": value for key, value in recording.environment.items()},
    }
    suite = {"version": "1.0", "metadata": _scalars(metadata), "benchmarks": benchmarks}
    return (dumps(suite) + "\n").encode("ascii")


def _measurement(m: Measurement) -> Columns:
    rounds, slots = m.ticks.shape

    def by_round(column: NDArray[Any]) -> NDArray[Any]:
        return np.repeat(column, slots)

    position = np.empty((rounds, slots), np.int64)
    np.put_along_axis(position, m.order.astype(np.int64), np.arange(slots)[None, :], axis=1)
    per_slot = {f.name: np.tile([getattr(s, f.name) for s in m.slots], rounds) for f in fields(Slot)}
    return {
        "measurement": np.full(rounds * slots, m.name),
        "round": by_round(np.arange(rounds)),
        "position": position.ravel(),
        **per_slot,
        "placement": by_round(m.placement),
        "window": by_round(m.window),
        "flagged": by_round(m.flagged),
        "ticks": m.ticks.ravel(),
        "ns_per_packet": (m.ticks / m.ticks_per_ns / m.block).ravel(),
        **{f"ledger_{name}": by_round(column) for name, column in m.ledger.items()},
    }


def _benchmark(name: str, slot: Slot, block: int, seconds: list[float]) -> dict[str, Any]:
    about = {f.name: getattr(slot, f.name) for f in fields(slot) if f.name != "label"}
    metadata = _scalars({"name": name, "packets_per_block": block, **about})
    return {"metadata": metadata, "runs": [{"values": seconds}]}


def _scalars(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """pyperf takes numbers and one-line, non-empty texts; other values become JSON, null is left out."""
    found = {}
    for key, value in metadata.items():
        if isinstance(value, (bool, list, Mapping)):
            found[key] = dumps(value)
        elif isinstance(value, str):
            found[key] = " ".join(value.split())
        elif value is not None:
            found[key] = value
    return {key: value for key, value in found.items() if value != ""}
