"""What every arm must answer, computed without the engine: the oracle that `dispatchlab check` holds the arms against.

Selection is `HandlerSet.select`, handlers compute by the formula in csrc/core/bodies/, and the checksum is that of
csrc/core/checksum.h, written out once more in NumPy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .handlers import LANES, HandlerSet, bodies, compute, lane_constant, lane_seed, multiplier

UNMATCHED = 0
CHECKSUM_FIRST = 0x9E3779B97F4A7C15
CHECKSUM_STEP = 0xBF58476D1CE4E5BA
_WORD = (1 << 64) - 1


def answers(hs: HandlerSet, packets: Any, kind: str = "list") -> NDArray[np.uint32]:
    """What an arm of this kind (`Arm.answers`) makes of each packet: PACKET[n] -> uint32[n]."""
    if kind.startswith("key"):
        keys: NDArray[np.uint32] = packets["key"].astype(np.uint32)
        return keys
    selected = np.zeros(len(packets), np.int32) if kind == "handler 0" else hs.select(packets)
    found = np.full(len(packets), UNMATCHED, np.uint32)
    outside = selected >= hs.stamped
    found[outside] = hs.foreign.answers(selected[outside] - hs.stamped, packets[outside])
    matched = (selected >= 0) & ~outside
    found[matched] = compute_many(hs, selected[matched], packets["payload"][matched])
    return found


def compute_many(hs: HandlerSet, ids: NDArray[np.int32], payloads: NDArray[np.uint8]) -> NDArray[np.uint32]:
    """What handler ids[n] answers for payloads[n]: int32[n], uint8[n, 24] -> uint32[n].

    `handlers.compute` for many packets at once where the body is one of known word operations; else packet by packet.
    """
    rounds = next(n for body, size, n in bodies() if (body, size) == (hs.body, hs.size))
    if hs.body in ("chain", "tally"):
        return _chain(ids, payloads, rounds)
    if hs.body in LANES:
        return _lanes(ids, payloads, rounds, *LANES[hs.body])
    return np.array([compute(hs, int(i), p.tobytes()) for i, p in zip(ids, payloads, strict=True)], np.uint32)


def _chain(ids: NDArray[np.int32], payloads: NDArray[np.uint8], rounds: int) -> NDArray[np.uint32]:
    who, which = np.unique(ids, return_inverse=True)

    def constants(step: int) -> NDArray[np.uint64]:
        return np.array([multiplier(int(i), step) for i in who], np.uint64)[which]

    h = constants(63) if len(who) else np.zeros(0, np.uint64)
    for step in range(rounds if len(who) else 0):
        h = (h ^ payloads[:, step % 24].astype(np.uint64)) * constants(step)
        h ^= h >> np.uint64(29)
        h = (h << np.uint64(17)) | (h >> np.uint64(47))
    return (h ^ (h >> np.uint64(32))).astype(np.uint32)


def _lanes(ids: NDArray[np.int32], payloads: NDArray[np.uint8], rounds: int, lanes: int, by: int) -> NDArray[np.uint32]:
    who, which = np.unique(ids, return_inverse=True)

    def constants(of: Callable[[int, int], int], step: int) -> NDArray[np.uint64]:
        return np.array([of(int(i), step) for i in who], np.uint64)[which]

    a = [constants(lane_seed, k) if len(who) else np.zeros(0, np.uint64) for k in range(lanes)]
    for r in range(rounds if len(who) else 0):
        x = (a[r % lanes] ^ constants(lane_constant, r)) + payloads[:, r % 24].astype(np.uint64)
        a[r % lanes] = (x << np.uint64(by)) | (x >> np.uint64(64 - by))
    h = sum((np.uint64(2 * k + 1) * x for k, x in enumerate(a)), np.zeros(len(ids), np.uint64))
    return (h ^ (h >> np.uint64(32))).astype(np.uint32)


def checksum(results: NDArray[np.uint32], kind: str = "list") -> int:
    """The checksum over results in this order, as the arm of that kind feeds it: uint32[n] -> 0..2**64-1."""
    if kind == "key, serial checksum":
        return _fnv1a(results)
    n = np.arange(len(results), dtype=np.uint64)
    weights = np.uint64(CHECKSUM_FIRST) + n * np.uint64(CHECKSUM_STEP)
    total = int((results.astype(np.uint64) * weights).sum(dtype=np.uint64))
    mixed = total ^ ((CHECKSUM_FIRST + len(results) * CHECKSUM_STEP) * CHECKSUM_FIRST & _WORD)
    return mixed ^ (mixed >> 32)


def _fnv1a(results: NDArray[np.uint32]) -> int:
    h = 0xCBF29CE484222325
    for result in results.tolist():
        h = (h ^ result) * 0x100000001B3 & _WORD
    return h
