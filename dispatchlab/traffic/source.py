"""Traffic that somebody recorded: the packets of a capture, or a table of how many packets each key had."""

import csv
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dispatchlab.errors import TrafficError, UsageError, explain
from dispatchlab.traffic import streams
from dispatchlab.traffic.capture import I64, Capture
from dispatchlab.traffic.generate import by_rank, checked_number, draw_ids
from dispatchlab.traffic.headers import TRANSPORTS, Parsed, parse
from dispatchlab.traffic.packets import (
    POOL,
    Handlers,
    Ids,
    Packets,
    Traffic,
    checked_pool,
    fill,
    fit,
    registered,
    require_match,
    strays,
)
from dispatchlab.traffic.streams import Lane, checked_seed

UNKEYED = "unkeyed"
"""The name under which a counts table holds the packets that have no key."""

_KEYS: dict[str, tuple[Callable[[Parsed], I64], Callable[[int], str]]] = {
    "service": (lambda p: p.service, lambda code: f"{TRANSPORTS[code >> 16]}/{code & 0xFFFF}"),
    "ip-proto": (lambda p: p.protocol, lambda code: f"ip/{code}"),
    "ethertype": (lambda p: p.ethertype, lambda code: f"0x{code:04x}"),
}


def from_counts(
    hs: Handlers,
    counts: str | PathLike[str] | Mapping[str, int | float],
    *,
    seed: int = 0,
    shuffle: bool = True,
    pool: int = POOL,
    name: str = "",
) -> Traffic:
    """Packets drawn independently, each key as often as in `counts`: a mapping, or a CSV file with columns
    key,packets.

    The key "unkeyed" stands for packets without one. Keys go to handlers by a seeded shuffle
    (`shuffle=False`: the busiest to the first of the list); those beyond the number of handlers, the rarest,
    become unmatched. The packet of a handler with a residual predicate fits it. Raises TrafficError and
    UsageError.
    """
    if isinstance(counts, Mapping):
        table, name = {str(key): value for key, value in counts.items()}, name or "counts"
    else:
        table, name = read_counts(counts), name or Path(counts).name
    for key, value in table.items():
        exact = checked_number(value, f"packets of {key!r}", low=0)
        table[key] = int(exact) if exact.denominator == 1 else float(exact)
    unkeyed = table.pop(UNKEYED, 0)
    spec = {"kind": "counts", "counts": {**table, UNKEYED: unkeyed}}
    return _drawn(hs, table, unkeyed, name, spec, seed, shuffle, pool)


def from_pcap(
    hs: Handlers,
    path: str | PathLike[str],
    key: str = "service",
    replay: bool = True,
    seed: int = 0,
    shuffle: bool = True,
    pool: int = POOL,
) -> Traffic:
    """The packets of a pcap or pcapng file, in its order, again and again until there are `pool`.

    key      "service" (transport and lower port, "tcp/80"), "ip-proto" ("ip/6") or "ethertype" ("0x0800")
    replay   False: draw the packets independently from the capture's counts instead

    Lengths and flows are the capture's; payloads, which captures of headers lack, are seeded, and their first
    byte is the same throughout a flow. Keys go to handlers as in `from_counts`. Raises TrafficError and
    UsageError.
    """
    if key not in _KEYS:
        raise UsageError(
            explain("unknown kind of key", expected=" or ".join(map(repr, _KEYS)), got=repr(key))
        )
    seed, pool = checked_seed(seed), checked_pool(pool)
    label = _KEYS[key][1]
    seen = _tally(Capture(path), _KEYS[key][0], keep=pool)
    counts = {label(code): n for code, n in seen.counts.items()}
    spec = {
        "kind": "capture",
        "file": Path(path).name,
        "sha256": seen.sha256,
        "key": key,
        "replay": bool(replay),
    }
    spec |= {"records": seen.records, "lost": seen.lost}
    if not replay:
        name = f"{Path(path).name} (drawn)"
        return _drawn(hs, counts, seen.unkeyed, name, spec, seed, shuffle, pool, seen.lost)

    assigned = _assign(hs, counts, seed, shuffle, str(path))
    codes, which = np.unique(seen.codes, return_inverse=True)
    ids = np.array([assigned.get(label(code), -1) if code >= 0 else -1 for code in codes.tolist()], np.int64)
    turn = np.resize(np.arange(len(which)), pool)
    ids = ids[which[turn]]
    packets = fill(hs, ids, seed)
    packets["length"], packets["flow"] = seen.lengths[turn], seen.flows[turn]
    by_flow = streams.mix(streams.draw(seed, Lane.FIRST_BYTE, 1) + packets["flow"])
    packets["payload"][:, 0] = by_flow >> np.uint64(56)
    packets["key"] = np.where(
        ids < 0, strays(hs)[(by_flow & np.uint64(0xFF)).astype(np.int64)], packets["key"]
    )
    spec |= {"seed": seed, "pool": pool, "shuffle": bool(shuffle)}
    return _traffic(hs, packets, ids, Path(path).name, spec, counts, seen.unkeyed, assigned, seen.lost)


def read_counts(path: str | PathLike[str]) -> dict[str, int | float]:
    """The table of a counts file: CSV with the columns key and packets; lines that begin with # are comments.

    Raises TrafficError that names the line.
    """
    try:
        lines = Path(path).read_text("utf-8-sig").splitlines()
    except (OSError, ValueError) as error:
        got = getattr(error, "strerror", None) or "not UTF-8 text"
        raise TrafficError(explain("cannot read the counts", str(path), got=got)) from None
    table: dict[str, int | float] = {}
    rows = [
        (n, line) for n, line in enumerate(lines, 1) if line.strip() and not line.lstrip().startswith("#")
    ]
    for i, (n, line) in enumerate(rows):
        try:
            row = [cell.strip() for cell in next(csv.reader([line]))]
            if i == 0 and row == ["key", "packets"]:
                continue
            key, cell = row
            packets = int(cell) if cell.isascii() and cell.isdigit() else float(cell)
        except (ValueError, csv.Error):
            raise TrafficError(
                explain(
                    "not a row of counts",
                    f"{path}, line {n}",
                    "key,packets with a number of packets",
                    repr(line[:60]),
                )
            ) from None
        if key in table:
            raise TrafficError(explain(f"key {key!r} twice", f"{path}, line {n}", remedy="add the two up"))
        table[key] = packets
    return table


@dataclass(frozen=True)
class _Tally:
    """What is kept of a capture: all its counts, and its first records one by one (code -1: no key)."""

    counts: Counter[int]
    unkeyed: int
    records: int
    lost: int
    sha256: str
    codes: I64
    lengths: npt.NDArray[np.uint16]
    flows: npt.NDArray[np.uint32]


def _tally(capture: Capture, key: Callable[[Parsed], I64], keep: int) -> _Tally:
    """Read a capture to its end. Memory grows with `keep` and with the number of keys, not with the file."""
    counts: Counter[int] = Counter()
    kept: list[tuple[I64, I64, npt.NDArray[np.uint32]]] = []
    for batch in capture:
        parsed = parse(batch, str(capture.path))
        codes = key(parsed)
        for code, n in zip(*(a.tolist() for a in np.unique(codes, return_counts=True)), strict=True):
            counts[code] += n
        if keep > 0:
            kept.append((codes[:keep].copy(), batch.wire[:keep].copy(), parsed.flow[:keep].copy()))
            keep -= len(codes)
    if not kept:
        got = "none that is whole, and one cut or damaged" if capture.lost else "none"
        raise TrafficError(
            explain("no packets in the capture", str(capture.path), "at least one record", got)
        )
    unkeyed = counts.pop(-1, 0)
    codes, wire, flows = (np.concatenate(column) for column in zip(*kept, strict=True))
    lengths = np.minimum(wire, 0xFFFF).astype(np.uint16)
    return _Tally(counts, unkeyed, capture.records, capture.lost, capture.sha256, codes, lengths, flows)


def _ranked(counts: Mapping[str, int | float]) -> list[str]:
    """The keys that occur, the most frequent first; equal ones by name."""
    return sorted((key for key in counts if counts[key] > 0), key=lambda key: (-counts[key], key))


def _assign(
    hs: Handlers, counts: Mapping[str, int | float], seed: int, shuffle: bool, where: str
) -> dict[str, int]:
    """The handler of each key that gets one: no two share a handler, the rarest may find none left."""
    ranked = _ranked(counts)
    if not ranked:
        raise TrafficError(
            explain("every packet is without a key", where, "at least one key that has packets")
        )
    return dict(zip(ranked, by_rank(hs, seed, shuffle).tolist(), strict=False))


def _drawn(
    hs: Handlers,
    counts: Mapping[str, int | float],
    unkeyed: int | float,
    name: str,
    spec: dict[str, Any],
    seed: int,
    shuffle: bool,
    pool: int,
    lost: int = 0,
) -> Traffic:
    """Packets drawn independently from counts, those without a handler included."""
    seed, pool = checked_seed(seed), checked_pool(pool)
    weights = {key: checked_number(value, key, low=0) for key, value in counts.items()}
    assigned = _assign(hs, counts, seed, shuffle, name)
    spare = checked_number(unkeyed, UNKEYED, low=0)
    spare += sum(weights[key] for key in counts if key not in assigned)
    ids = np.array([*assigned.values(), -1], np.int64)
    ids = ids[draw_ids([*(weights[key] for key in assigned), spare], seed, pool)]
    spec |= {"seed": seed, "pool": pool, "shuffle": bool(shuffle)}
    return _traffic(hs, fill(hs, ids, seed), ids, name, spec, counts, unkeyed, assigned, lost)


def _traffic(
    hs: Handlers,
    packets: Packets,
    ids: Ids,
    name: str,
    spec: dict[str, Any],
    counts: Mapping[str, int | float],
    unkeyed: int | float,
    assigned: dict[str, int],
    lost: int,
) -> Traffic:
    fit(hs, ids, packets)
    require_match(hs, packets, name)
    return Traffic(packets, name, spec, counts, unkeyed, spec["seed"], assigned, lost, registered(hs))
