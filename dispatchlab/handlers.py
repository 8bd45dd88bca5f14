"""Handler sets: which handlers are registered, under which keys and predicates, in which order.

A handler is a number i in 0..511; it selects stamped code that no other handler shares. What it computes from a packet is
written down in the engine's csrc/core/bodies/ and repeated here in plain Python by `compute`.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _engine
from .design import permutation
from .errors import UsageError, explain
from .plugins import Foreign, Plugin, load_all
from .plugins.adapter import Conflicts, adopt, settle

MAX_HANDLERS = 512
RESIDUAL_KEYS = 3
ORDERS = ("registration", "reverse", "shuffled", "frequency")

Placement = Literal["packed", "spread"]
Objects = Literal["packed", "scattered"]
STATEFUL = "tally"
MOST_STATE = 65536


@dataclass(frozen=True, eq=False)
class HandlerSet:
    """A list of handlers as the engine runs it; made by `handlers`.

    keys     uint16[count], masks uint8[count], values uint8[count], by handler number. Handler i accepts a packet when
             packet.key == keys[i] and (packet.payload[0] & masks[i]) == values[i]; mask 0: the key alone decides.
    order    int32[count]: order[p] is the handler at place p of the list. The first that accepts a packet runs.
    """

    count: int
    body: str
    size: str
    residual: float
    overlap: bool
    order_name: str
    placement: Placement
    seed: int
    keys: NDArray[np.uint16]
    masks: NDArray[np.uint8]
    values: NDArray[np.uint8]
    order: NDArray[np.int32]
    state: int = 0
    objects: Objects = "packed"
    foreign: Foreign = field(default_factory=Foreign, repr=False)
    engine: Any = field(repr=False, default=None)

    def __post_init__(self) -> None:
        for array in (self.keys, self.masks, self.values, self.order):
            array.setflags(write=False)
        if (never := np.flatnonzero(self.values & ~self.masks)).size:
            mask, value = self.masks[never[0]], self.values[never[0]]
            where, expected = f"handler {never[0]}", f"no bit outside mask {mask}"
            raise UsageError(explain("can never accept a packet", where, expected, f"value {value}"))
        engine = _engine.handler_set(
            self.body,
            self.size,
            self.placement == "packed",
            self.keys,
            self.masks,
            self.values,
            self.order,
            self.state,
            self.objects == "scattered",
            self.foreign.engine,
        )
        object.__setattr__(self, "engine", engine)

    @property
    def stamped(self) -> int:
        """How many handlers run code of the engine: those below this number. The others came from plugins."""
        return self.count - len(self.foreign)

    def select(self, packets: Any, /) -> NDArray[np.int32]:
        """The handler that each packet belongs to, first match in the list, or -1: PACKET[n] -> int32[n]. Pure NumPy."""
        packets = np.asarray(packets)
        row, owner = self._owner
        found: NDArray[np.int32] = owner[row[packets["key"]], packets["payload"][:, 0]]
        return found

    def tallies(self) -> NDArray[np.uint64]:
        """What each handler of body "tally" has added to its state since the set was made, modulo 2**64: uint64[count]."""
        return np.frombuffer(self.engine.tallies(), np.uint64)

    def frequency(self, packets: Any, /) -> NDArray[np.uint64]:
        """How many of the packets each handler receives: PACKET[n] -> uint64[count]."""
        found = self.select(packets)
        return np.bincount(found[found >= 0], minlength=self.count).astype(np.uint64)

    @cached_property
    def _owner(self) -> tuple[NDArray[np.int16], NDArray[np.int32]]:
        """int16[65536]: the row of a key, row 0 where nobody has it; int32[rows, 256]: who takes a packet of that row with
        this first payload byte."""
        keys = np.unique(self.keys)
        row = np.zeros(1 << 16, np.int16)
        row[keys] = np.arange(1, len(keys) + 1)
        owner = np.full((len(keys) + 1, 256), -1, np.int32)
        first = np.arange(256, dtype=np.uint8)
        for i in self.order[::-1]:
            owner[row[self.keys[i]], (first & self.masks[i]) == self.values[i]] = i
        return row, owner

    @property
    def overlapping(self) -> list[tuple[int, int]]:
        """Pairs of handlers that some packet could belong to both of: their order in the list is behaviour."""
        pairs = []
        for i in range(self.count):
            for j in np.flatnonzero(self.keys[i + 1 :] == self.keys[i]) + i + 1:
                if not (self.values[i] ^ self.values[j]) & self.masks[i] & self.masks[j]:
                    pairs.append((i, int(j)))
        return pairs


def handlers(
    count: int,
    *,
    body: str = "chain",
    size: str = "fat",
    residual: float = 0.1,
    order: str | Sequence[int] = "registration",
    overlap: bool = False,
    placement: Placement = "packed",
    state: int = 0,
    objects: Objects = "packed",
    keys: ArrayLike | None = None,
    frequency: ArrayLike | None = None,
    seed: int = 0,
    plugins: Sequence[Plugin | str | os.PathLike[str]] = (),
    conflicts: Conflicts = "error",
) -> HandlerSet:
    """A list of `count` handlers, 1..512; 0 where plugins bring all.

    body       what a handler computes; size: how much of it (see `bodies()`)
    residual   the share of handlers whose predicate also tests payload bits. Those share three keys and accept disjoint
               values of the low bits of the first payload byte, two bits or as many as the largest group needs; at 0.1
               they are the handlers whose number ends in 7
    order      the list: "registration" (0, 1, 2 ...), "reverse", "shuffled" (by seed), "frequency" (the most frequent
               first; needs frequency=, one number per handler), or a permutation of 0..count-1
    overlap    True lets residual predicates accept one another's packets, so that order is behaviour
    placement  "packed": the code of the predicates stands side by side; "spread": each beside its handler's body
    state      bytes that each handler of body "tally" owns and changes, one word a packet: 0 (a word in the object) or a power of
               two in 8..65536
    objects    "packed": objects and states side by side; "scattered": each on a memory page of its own, in shuffled order
    keys       uint16 per handler, instead of 257 + 7 i for plain and 4457, 5157, 5857 for residual handlers
    plugins    plugins, or paths to be loaded: each key that one claims becomes a handler behind the `count` built-in ones
    conflicts  what to do about a key that a plugin and somebody else claim: "error", "first", "last", "residual"

    Raises UsageError, and PluginError from the plugins.
    """
    least = 0 if plugins else 1
    if isinstance(count, bool) or not isinstance(count, int | np.integer) or not least <= count <= MAX_HANDLERS:
        raise UsageError(explain("number of handlers out of range", expected=f"{least}..{MAX_HANDLERS}", got=repr(count)))
    _check_choice("body", body, sorted({b for b, _, _ in _engine.stamps()}))
    _check_choice(f"size of body {body}", size, [s for b, s, _ in _engine.stamps() if b == body])
    _check_choice("placement", placement, ["packed", "spread"])
    _check_choice("objects", objects, ["packed", "scattered"])
    _check_state(state, body)
    tested = _residual(int(count), residual)
    if overlap and not tested.any():
        raise UsageError(
            explain("no predicates to overlap", "overlap", "a residual handler", f"{count} handlers, residual={residual}")
        )
    chosen, masks, values = _predicates(tested, overlap)
    if keys is not None:
        chosen = _numbers("keys", keys, count, 0, 65535).astype(np.uint16)
    name = order if isinstance(order, str) else "permutation"
    foreign, places = Foreign(), _order(order, int(count), frequency, seed)
    if plugins:
        foreign = adopt(_loaded(plugins))
        if (total := count + len(foreign)) > MAX_HANDLERS:
            wanted = f"at most {MAX_HANDLERS} with those of plugins"
            raise UsageError(explain("number of handlers out of range", expected=wanted, got=str(total)))
        chosen, masks = np.concatenate([chosen, foreign.keys]), np.concatenate([masks, foreign.masks])
        values = np.concatenate([values, foreign.values])
        places = np.concatenate([places, np.arange(count, count + len(foreign), dtype=np.int32)])
        places = settle(conflicts, int(count), foreign, chosen, masks, values, places)
    return HandlerSet(
        count=int(count) + len(foreign),
        body=body,
        size=size,
        residual=float(residual),
        overlap=bool(overlap),
        order_name=name,
        placement=placement,
        seed=int(seed),
        keys=chosen,
        masks=masks,
        values=values,
        order=places,
        foreign=foreign,
        state=int(state),
        objects=objects,
    )


def _loaded(plugins: Sequence[Plugin | str | os.PathLike[str]]) -> list[Plugin]:
    """The plugins, those given as paths loaded: all or none."""
    fresh = iter(load_all([p for p in plugins if not isinstance(p, Plugin)]))
    return [p if isinstance(p, Plugin) else next(fresh) for p in plugins]


def bodies() -> list[tuple[str, str, int]]:
    """Every body that was built, at every size: (body, size, rounds)."""
    return list(_engine.stamps())


def multiplier(i: int, r: int) -> int:
    """The odd 64-bit constant M(i, r) of handler i in step r, 0 <= r < 64."""
    return (((0x9E3779B97F4A7C15 * (64 * i + r + 1)) & (2**64 - 1)) ^ 0xD6E8FEB86659FD93) | 1


def compute(hs: HandlerSet, i: int, payload: bytes) -> int:
    """What handler i answers for a payload of 24 bytes, in plain Python: the formula of csrc/core/bodies/."""
    rounds = next(n for body, size, n in _engine.stamps() if (body, size) == (hs.body, hs.size))
    if hs.body in LANES:
        return _lanes(i, payload, rounds, *LANES[hs.body])
    h = multiplier(i, 63)
    for r in range(rounds):
        h = ((h ^ payload[r % 24]) * multiplier(i, r)) % 2**64
        h ^= h >> 29
        h = ((h << 17) | (h >> 47)) % 2**64
    return (h ^ (h >> 32)) & 0xFFFFFFFF


LANES = {"wide": (8, 13), "branchy": (4, 11)}
"""Bodies made of independent accumulators: how many, and by how many bits each is rotated in a step."""


def lane_constant(i: int, r: int) -> int:
    """The 31-bit constant C(i, r) of csrc/core/bodies/lanes.h, 0 <= r < 128."""
    return (multiplier(i, r % 64) >> (8 + 24 * (r // 64))) % 2**31


def lane_seed(i: int, k: int) -> int:
    """Where accumulator k of handler i starts: S(i, k)."""
    return (multiplier(i, 63) >> 4 * k) % 2**31


def _lanes(i: int, payload: bytes, rounds: int, lanes: int, by: int) -> int:
    a = [lane_seed(i, k) for k in range(lanes)]
    for r in range(rounds):
        x = ((a[r % lanes] ^ lane_constant(i, r)) + payload[r % 24]) % 2**64
        a[r % lanes] = ((x << by) | (x >> (64 - by))) % 2**64
    h = sum((2 * k + 1) * x for k, x in enumerate(a)) % 2**64
    return (h ^ (h >> 32)) & 0xFFFFFFFF


def _check_state(state: int, body: str) -> None:
    whole = isinstance(state, int | np.integer) and not isinstance(state, bool)
    if not whole or (state and (not 8 <= state <= MOST_STATE or state & (state - 1))):
        raise UsageError(explain("state cannot be used", expected=f"0 or a power of two in 8..{MOST_STATE}", got=repr(state)))
    if state and body != STATEFUL:
        raise UsageError(explain(f"body {body} keeps no state", "state", f"body={STATEFUL!r}, or 0", str(state)))


def _residual(count: int, share: float) -> NDArray[np.bool_]:
    """Which handlers test more than their key: where (i + 3) * share passes a whole number."""
    try:
        part = Fraction(str(share))
    except ValueError:
        part = Fraction(-1)
    if not 0 <= part <= 1:
        raise UsageError(explain("residual share out of range", expected="a number in 0..1", got=repr(share)))
    steps = [(i * part.numerator) // part.denominator for i in range(2, count + 3)]
    return np.diff(steps) > 0


def _predicates(
    tested: NDArray[np.bool_], overlap: bool
) -> tuple[NDArray[np.uint16], NDArray[np.uint8], NDArray[np.uint8]]:
    """Keys, masks and values of the default predicates.

    Overlapping ones test one bit less than they need to stay apart, and every other one takes the key of its neighbour,
    a handler that accepts whatever carries that key.
    """
    count = len(tested)
    keys = (257 + 7 * np.arange(count)).astype(np.uint16)
    masks, values = np.zeros(count, np.uint8), np.zeros(count, np.uint8)
    residual = np.flatnonzero(tested)
    turn = np.arange(len(residual))
    largest = -(-len(residual) // RESIDUAL_KEYS)
    bits = max(2, (largest - 1).bit_length()) - overlap
    keys[residual] = 4457 + 700 * (turn % RESIDUAL_KEYS)
    masks[residual] = (1 << bits) - 1
    values[residual] = (turn // RESIDUAL_KEYS) & ((1 << bits) - 1)
    if overlap:
        beside = residual[::2]
        keys[beside] = keys[np.where(beside > 0, beside - 1, min(1, count - 1))]
    return keys, masks, values


def _order(order: str | Sequence[int], count: int, frequency: ArrayLike | None, seed: int) -> NDArray[np.int32]:
    if not isinstance(order, str):
        places = _numbers("order", order, count, 0, count - 1)
        if len(set(places.tolist())) != count:
            raise UsageError(explain("not a permutation", "order", f"each of 0..{count - 1} once", "a repeated number"))
        return places.astype(np.int32)
    _check_choice("order", order, list(ORDERS))
    if order == "frequency":
        if frequency is None:
            raise UsageError(explain("no frequencies", "order", "frequency=, one number per handler", "none"))
        return np.argsort(-np.asarray(frequency, np.float64), kind="stable").astype(np.int32)
    if order == "shuffled":
        return permutation(seed, count).astype(np.int32)
    return np.arange(count, dtype=np.int32)[:: -1 if order == "reverse" else 1].copy()


def _numbers(what: str, given: ArrayLike, count: int, low: int, high: int) -> NDArray[np.int64]:
    try:
        numbers = np.asarray(given)
        whole = numbers.astype(np.int64)
        fits = numbers.shape == (count,) and bool((whole == numbers).all())
    except (TypeError, ValueError, OverflowError):
        fits = False
    if not fits or whole.min() < low or whole.max() > high:
        wanted = f"{count} whole numbers in {low}..{high}"
        raise UsageError(explain(f"{what} cannot be used", expected=wanted, got=f"{given!r:.60}"))
    return whole


def _check_choice(what: str, got: object, known: list[str]) -> None:
    if got in known:
        return
    near = difflib.get_close_matches(str(got), known, 2, 0.5)
    remedy = f"did you mean {' or '.join(near)}?" if near else ""
    raise UsageError(explain(f"unknown {what} {got!r}", expected=", ".join(known), remedy=remedy))
