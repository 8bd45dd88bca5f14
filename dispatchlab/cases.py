"""Handler sets and packets made to be got wrong: what the checks and the tests run every arm over."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .design import permutation, stream
from .handlers import ORDERS, HandlerSet, handlers
from .traffic import PACKET, Traffic, from_packets

COUNTS = (1, 2, 10, 100, 512)
RESIDUALS = (0, 0.1, 1)


@dataclass(frozen=True)
class Case:
    """A handler set, and packets that hit, miss and nearly hit it."""

    name: str
    handlers: HandlerSet
    traffic: Traffic


def _wrapping(i: NDArray[np.int64]) -> NDArray[np.int64]:
    """Eight keys on each of the last places of a table of 8192 slots: walks run on and wrap around its end."""
    return 8191 - i // 8 + 8192 * (i % 8)


KEYS: dict[str, Callable[[NDArray[np.int64]], NDArray[np.int64]]] = {
    "equal in 10 bits": lambda i: 5 + 1024 * (i % 64) + 16 * (i // 64),
    "equal in 13 bits": lambda i: 77 + 8192 * (i % 8) + 3 * (i // 8),
    "wrapping": _wrapping,
    "spread": lambda i: np.sort(np.concatenate([[0, 65535], 1 + permutation(9, 65534)])[: len(i)])[permutation(4, len(i))],
    "shared": lambda i: 40_000 + i % max(1, len(i) // 4),
}
"""Keys uint16 for handlers 0..count-1. "shared": four handlers to a key, so that the order in the list decides."""


def matrix(counts: tuple[int, ...], packets: int) -> Iterator[Case]:
    """Every count with every residual share, order, overlap and choice of keys; `packets` to each."""
    seed = 0
    for count in counts:
        for keys_name, settings in _settings(count):
            seed += 1
            hs = handlers(count, seed=seed, frequency=np.arange(count) * 7 % 13, **settings)
            yield Case(_name(hs, keys_name), hs, awkward(hs, packets, seed))


def _settings(count: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """What to call the keys, and arguments of `handlers`."""
    for residual in RESIDUALS:
        for order in ORDERS:
            yield "", {"size": "tiny", "residual": residual, "order": order}
    for residual in (0.1, 1) if count >= 10 else (1,):  # a tenth of fewer is nobody
        for order in ("registration", "reverse", "shuffled"):
            yield "", {"size": "tiny", "residual": residual, "order": order, "overlap": True}
    for name, keys in KEYS.items():
        for residual in (0, 0.4):
            yield name, {"size": "tiny", "residual": residual, "order": "shuffled", "keys": keys(np.arange(count))}
    yield "", {"size": "fat", "placement": "spread"}


def _name(hs: HandlerSet, keys: str) -> str:
    words = [f"{hs.count} handlers", f"residual {hs.residual:g}", hs.order_name]
    words += ["overlapping"] * hs.overlap + [f"keys {keys}"] * bool(keys) + ["spread"] * (hs.placement == "spread")
    return ", ".join(words)


def awkward(hs: HandlerSet, packets: int, seed: int) -> Traffic:
    """Random packets: of 16, eleven carry a registered key, one a registered key with one bit flipped, two one that is equal
    to a registered one in the low ten bits or more, two any key."""
    word = stream(seed, 6 * packets).reshape(6, packets)
    own = hs.keys[(word[0] % np.uint64(hs.count)).astype(np.intp)].astype(np.uint64)
    near = own ^ (np.uint64(1) << (word[1] % np.uint64(16)))
    alias = own ^ (word[1] % np.uint64(64) << np.uint64(10))
    kind = word[2] % np.uint64(16)
    made = np.zeros(packets, PACKET)
    made["key"] = np.select([kind < 11, kind < 12, kind < 14], [own, near, alias], word[1] & np.uint64(0xFFFF))
    made["length"] = 64
    made["flow"] = word[2] >> np.uint64(32)
    made["payload"] = np.ascontiguousarray(word[3:].T).astype("<u8").view(np.uint8).reshape(packets, 24)
    return from_packets(made, name="awkward")
