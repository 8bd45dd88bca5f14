"""Dispatch in pure Python: the list asked one by one, and a dict. Nothing of the engine runs here.

A packet is a pair (key, payload); a predicate and a handler are functions made for it, as a Python program would have them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .errors import UsageError, explain
from .handlers import HandlerSet, bodies, multiplier

Packet = tuple[int, bytes]
Predicate = Callable[[Packet], bool]
Handler = Callable[[bytes], int]
Dispatch = Callable[[Packet], int]
Who = Callable[[Packet], int]

WORD = 2**64 - 1
UNMATCHED = 0
NOBODY = -1


def packets_of(packets: Any) -> list[Packet]:
    """PACKET[n] as n pairs."""
    return list(zip(packets["key"].tolist(), map(bytes, packets["payload"]), strict=True))


def predicates(hs: HandlerSet) -> list[Predicate]:
    """What each handler asks of a packet, by handler number."""
    facts = zip(hs.keys.tolist(), hs.masks.tolist(), hs.values.tolist(), strict=True)
    return [_predicate(key, mask, value) for key, mask, value in facts]


def _predicate(key: int, mask: int, value: int) -> Predicate:
    def by_key(packet: Packet) -> bool:
        return packet[0] == key

    def by_key_and_payload(packet: Packet) -> bool:
        return packet[0] == key and packet[1][0] & mask == value

    return by_key_and_payload if mask else by_key


def computations(hs: HandlerSet) -> list[Handler]:
    """What each handler computes, by handler number. UsageError for a body other than chain."""
    if hs.body != "chain":
        raise UsageError(explain("no such body in Python", "interpreted", "chain", hs.body))
    rounds = next(n for body, size, n in bodies() if (body, size) == (hs.body, hs.size))
    return [_chain(i, rounds) for i in range(hs.count)]


def _chain(i: int, rounds: int) -> Handler:
    first: int = multiplier(i, 63)
    steps = [(r % 24, multiplier(i, r)) for r in range(rounds)]

    def compute(payload: bytes) -> int:
        h: int = first
        for at, factor in steps:
            h = ((h ^ payload[at]) * factor) & WORD
            h ^= h >> 29
            h = ((h << 17) | (h >> 47)) & WORD
        return (h ^ (h >> 32)) & 0xFFFFFFFF

    return compute


def loop(hs: HandlerSet) -> tuple[Dispatch, Who]:
    """Ask each handler's predicate in list order: what the packet's handler answers, and which one it is."""
    asked, run = predicates(hs), computations(hs)
    table: list[tuple[Predicate, Handler]] = [(asked[i], run[i]) for i in hs.order.tolist()]
    numbered: list[tuple[Predicate, int]] = [(asked[i], i) for i in hs.order.tolist()]

    def dispatch(packet: Packet) -> int:
        for matches, handler in table:
            if matches(packet):
                return handler(packet[1])
        return UNMATCHED

    def who(packet: Packet) -> int:
        return next((i for matches, i in numbered if matches(packet)), NOBODY)

    return dispatch, who


def look_up(hs: HandlerSet) -> tuple[Dispatch, Who]:
    """A dict from key to the handlers of that key, in list order; what needs no predicate is called at once."""
    asked, run = predicates(hs), computations(hs)
    table: dict[int, list[tuple[Predicate | None, Handler]]] = {}
    numbered: dict[int, list[tuple[Predicate | None, int]]] = {}
    for i in hs.order.tolist():
        matches = asked[i] if hs.masks[i] else None
        table.setdefault(int(hs.keys[i]), []).append((matches, run[i]))
        numbered.setdefault(int(hs.keys[i]), []).append((matches, i))

    def dispatch(packet: Packet) -> int:
        for matches, handler in table.get(packet[0], ()):
            if matches is None or matches(packet):
                return handler(packet[1])
        return UNMATCHED

    def who(packet: Packet) -> int:
        own = numbered.get(packet[0], ())
        return next((i for matches, i in own if matches is None or matches(packet)), NOBODY)

    return dispatch, who
