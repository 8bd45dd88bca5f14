"""The packet record, and a traffic: packets, where they come from, and what they should hit."""

import contextlib
import dataclasses
import hashlib
import mmap
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from dispatchlab.errors import TrafficError, UsageError, explain
from dispatchlab.traffic import streams
from dispatchlab.traffic.streams import Lane

PACKET = np.dtype([("key", "<u2"), ("length", "<u2"), ("flow", "<u4"), ("payload", "u1", (24,))])
"""One packet: 32 bytes, little-endian, laid out as dl_packet is in C."""

POOL = 32768
"""Packets unless asked otherwise: 1 MiB, so that the pool stays in L2 and arms are measured, not DRAM."""

MAX_POOL = 1 << 26
STRAYS = 256
FIRST_STRAY = 4096

Packets = npt.NDArray[np.void]
Ids = npt.NDArray[np.int64]


class Handlers(Protocol):
    """What traffic has to know of a handler set; dispatchlab.handlers.HandlerSet is one."""

    @property
    def count(self) -> int: ...
    @property
    def keys(self) -> npt.NDArray[np.uint16]: ...
    @property
    def masks(self) -> npt.NDArray[np.uint8]: ...
    @property
    def values(self) -> npt.NDArray[np.uint8]: ...
    @property
    def order(self) -> npt.NDArray[np.int32]: ...
    def select(self, packets: Any, /) -> npt.NDArray[np.int32]: ...


@dataclass(frozen=True, eq=False)
class Traffic:
    """Packets to dispatch, and how they were made.

    packets    read-only PACKET[n], C-contiguous
    name       short, for tables; `make` understands it when the traffic was generated
    spec       JSON-able: enough to make the same packets again, given the capture it names
    counts     packets of each key: of the whole capture or counts file, or of the pool if generated
    unkeyed    packets of the source without a key (or, generated, with a key that no handler registered)
    assigned   the handler id that each key of a capture or counts file was given
    lost       records of a capture that were cut or damaged, and not used
    registered the keys that a handler has, whether they occur or not; None when no handler set was named
    """

    packets: Packets
    name: str
    spec: Mapping[str, Any]
    counts: Mapping[str, int | float]
    unkeyed: int | float = 0
    seed: int = 0
    assigned: Mapping[str, int] = field(default_factory=dict)
    lost: int = 0
    registered: frozenset[int] | None = None
    digest: str = field(init=False)
    """SHA-256 of the packets' bytes, in hex."""

    def __post_init__(self) -> None:
        self.packets.setflags(write=False)
        for name in ("counts", "assigned"):
            object.__setattr__(self, name, MappingProxyType(dict(getattr(self, name))))
        object.__setattr__(self, "digest", hashlib.sha256(self.packets.tobytes()).hexdigest())

    def __len__(self) -> int:
        return len(self.packets)

    def __repr__(self) -> str:
        return (
            f"<Traffic {self.name}: {len(self)} packets, {len(self.counts)} keys, sha256 {self.digest[:12]}>"
        )


def checked_pool(pool: int) -> int:
    """The number of packets wanted, or a UsageError."""
    if isinstance(pool, bool) or not isinstance(pool, int | np.integer) or not 1 <= pool <= MAX_POOL:
        raise UsageError(explain("pool out of range", expected=f"1..{MAX_POOL} packets", got=repr(pool)))
    return int(pool)


def strays(hs: Handlers) -> npt.NDArray[np.uint16]:
    """The keys of unmatched packets: the first 256 not registered, from 4096 up, then from 0 up."""
    candidates = np.roll(np.arange(1 << 16), -FIRST_STRAY)
    free = candidates[~np.isin(candidates, np.asarray(hs.keys))]
    return free[:STRAYS].astype(np.uint16)


def fill(hs: Handlers, ids: Ids, seed: int) -> Packets:
    """Packets that carry the keys of the handlers `ids` (-1: a key nobody registered) and a random payload.

    ids: int64[n] -> PACKET[n]. Lengths are random in 64..1500, and a key has up to 64 flows. The payload is
    not made to fit a residual predicate: such a packet may belong to another handler of its key, or to none.
    """
    n = len(ids)
    packets = np.zeros(n, PACKET)
    stray = strays(hs)[streams.below(streams.draw(seed, Lane.STRAY, n), STRAYS)]
    packets["key"] = np.where(ids < 0, stray, np.asarray(hs.keys)[ids])
    packets["length"] = 64 + streams.below(streams.draw(seed, Lane.LENGTH, n), 1437)
    few = streams.draw(seed, Lane.FLOW, n) >> np.uint64(58)
    packets["flow"] = streams.mix(packets["key"].astype(np.uint64) << np.uint64(6) | few).astype(np.uint32)
    packets["payload"] = streams.draw(seed, Lane.PAYLOAD, 3 * n).astype("<u8").view(np.uint8).reshape(n, 24)
    return packets


def fit(hs: Handlers, ids: Ids, packets: Packets) -> None:
    """Change first payload bytes, in place, so that the handlers given in `ids` accept the packets."""
    known = np.flatnonzero(ids >= 0)
    mask, value = np.asarray(hs.masks)[ids[known]], np.asarray(hs.values)[ids[known]]
    first = packets["payload"][known, 0]
    packets["payload"][known, 0] = (first & ~mask) | value


def registered(hs: Handlers) -> frozenset[int]:
    """The keys that a handler has."""
    return frozenset(np.asarray(hs.keys).tolist())


def require_match(hs: Handlers, packets: Packets, where: str) -> None:
    """A TrafficError unless some packet has a handler: what no handler takes measures no handler."""
    step = 4096
    if not any((hs.select(packets[i : i + step]) >= 0).any() for i in range(0, len(packets), step)):
        raise TrafficError(
            explain(
                "not one packet matches a handler",
                where,
                expected="some matched packets",
                got=f"{len(packets)} unmatched",
                remedy="check the keys, `unmatched=` and `pool=`",
            )
        )


def by_key(hs: Handlers, packets: Packets) -> tuple[dict[str, int], int]:
    """Packets of each registered key, as "key/N", and those with any other key."""
    keys, counts = np.unique(packets["key"], return_counts=True)
    known = np.isin(keys, np.asarray(hs.keys))
    table = {f"key/{k}": int(c) for k, c in zip(keys[known], counts[known], strict=True)}
    return table, int(counts[~known].sum())


HUGE_PAGE = 1 << 21


def together(*traffics: Traffic) -> tuple[Traffic, ...]:
    """The same traffics, their packets side by side and, where the system gives one, on a huge page.

    Two pools of the same size can differ by half a percent under the cheapest arms, by which sets of the caches their pages happen to
    fall on. Physically contiguous memory falls on all sets alike.
    """
    size = sum(t.packets.nbytes for t in traffics)
    room = mmap.mmap(-1, -(-size // HUGE_PAGE) * HUGE_PAGE + HUGE_PAGE)
    with contextlib.suppress(AttributeError, OSError):  # a system without, or one that was told not to
        room.madvise(mmap.MADV_HUGEPAGE)
    memory = np.frombuffer(room, np.uint8)
    at = -memory.ctypes.data % HUGE_PAGE
    placed = []
    for t in traffics:
        own = memory[at : at + t.packets.nbytes].view(PACKET)
        own[:] = t.packets
        placed.append(dataclasses.replace(t, packets=own))
        at += t.packets.nbytes
    return tuple(placed)


def from_packets(packets: Any, hs: Handlers | None = None, *, name: str = "packets") -> Traffic:
    """Traffic out of packets of your own: PACKET[n], n >= 1, of any strides, read-only or not (they are
    copied).

    With a handler set, packets of which not one has a handler are refused. Raises TrafficError.
    """
    if not isinstance(packets, np.ndarray) or packets.dtype != PACKET:
        got = f"dtype {packets.dtype}" if isinstance(packets, np.ndarray) else type(packets).__name__
        raise TrafficError(
            explain(
                "not packets",
                name,
                "a NumPy array of dtype dispatchlab.traffic.PACKET",
                got,
                "use .astype or fill one",
            )
        )
    if packets.ndim != 1 or not len(packets):
        raise TrafficError(
            explain(
                "no packets" if not packets.size else "not a list of packets",
                name,
                "shape (n,), n >= 1",
                f"shape {packets.shape}",
            )
        )
    if len(packets) > MAX_POOL:
        raise TrafficError(explain("too many packets", name, f"at most {MAX_POOL}", str(len(packets))))
    own = np.array(packets, PACKET, order="C", copy=True)
    keys, counts = np.unique(own["key"], return_counts=True)
    table, unkeyed = {f"key/{k}": int(c) for k, c in zip(keys, counts, strict=True)}, 0
    if hs is not None:
        require_match(hs, own, name)
        table, unkeyed = by_key(hs, own)
    digest = hashlib.sha256(own.tobytes()).hexdigest()
    known = None if hs is None else registered(hs)
    spec = {"kind": "packets", "pool": len(own), "sha256": digest}
    return Traffic(own, name, spec, table, unkeyed, registered=known)
