"""Probes: how many predicates an arm asks per packet, counted by running it and computed by enumerating."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from .arms import BATCHES, MECHANISMS, find, prepare
from .errors import UsageError, explain
from .handlers import HandlerSet
from .traffic import Traffic

_Model = Callable[[HandlerSet, Traffic, Traffic], NDArray[np.uint32]]


def count_probes(arm: str, hs: HandlerSet, tr: Traffic) -> NDArray[np.uint32]:
    """Predicate calls for each packet, counted in an untimed pass over the pool: uint32[n]."""
    return np.frombuffer(prepare(arm, hs, tr).count()[1], np.uint32)


def expected_probes(
    arm: str, hs: HandlerSet, tr: Traffic, trained: Traffic | None = None
) -> NDArray[np.uint32]:
    """The same numbers without running the arm: from the list, the predicates and each packet's key and first byte.

    `trained` is the traffic that scan-ordered was sorted for, when not this one. scan-mtf is played through in Python, since
    what it asks depends on the packets before. Raises UsageError for an arm whose probes this module has no model of.
    """
    find(arm)
    model = _MODELS.get(arm)
    if model is None:
        raise UsageError(explain("no model of its probes", arm, expected=", ".join(_MODELS)))
    return model(hs, tr, trained or tr)


def mean_by_enumeration(hs: HandlerSet, unmatched: float = 0.02) -> float:
    """Probes per packet of a scan under uniform traffic: every handler's key with each of the 256 first bytes."""
    every = np.array([_scan_cost(hs, hs.order, hs.keys[i]).mean() for i in range(hs.count)])
    return float((1 - unmatched) * every.mean() + unmatched * hs.count)


def _scan_cost(hs: HandlerSet, order: NDArray[np.int32], key: int) -> NDArray[np.uint32]:
    """Predicates a scan in this order asks for a key, by first payload byte: uint32[256]."""
    cost = np.full(256, len(order), np.uint32)
    first = np.arange(256, dtype=np.uint8)
    for place in np.flatnonzero(hs.keys[order] == key)[::-1]:
        i = order[place]
        cost[(first & hs.masks[i]) == hs.values[i]] = place + 1
    return cost


def _list_probes(hs: HandlerSet, tr: Traffic, order: NDArray[np.int32]) -> NDArray[np.uint32]:
    keys, which = np.unique(tr.packets["key"], return_inverse=True)
    cost = np.array([_scan_cost(hs, order, key) for key in keys])
    return _pick(cost, which, tr)


def _pick(cost: NDArray[np.uint32], which: NDArray[np.intp], tr: Traffic) -> NDArray[np.uint32]:
    """The entry of each packet's key and first payload byte."""
    picked: NDArray[np.uint32] = cost[which, tr.packets["payload"][:, 0]]
    return picked


def _scan(hs: HandlerSet, tr: Traffic, trained: Traffic) -> NDArray[np.uint32]:
    return _list_probes(hs, tr, hs.order)


def _scan_ordered(hs: HandlerSet, tr: Traffic, trained: Traffic) -> NDArray[np.uint32]:
    return _list_probes(hs, tr, sorted_order(hs, hs.frequency(trained.packets)))


def sorted_order(hs: HandlerSet, frequency: NDArray[np.uint64]) -> NDArray[np.int32]:
    """The list sorted by frequency, most frequent first, overlapping handlers dealt back in list order: int32[count]."""
    order = hs.order[np.argsort(-frequency[hs.order].astype(np.int64), kind="stable")]
    bound = {i for pair in hs.overlapping for i in pair}
    for key in {int(hs.keys[i]) for i in bound}:
        together = [i for i in hs.order if i in bound and hs.keys[i] == key]
        order[[p for p, i in enumerate(order) if i in together]] = together
    return order


def _scan_mtf(hs: HandlerSet, tr: Traffic, trained: Traffic) -> NDArray[np.uint32]:
    bound = {i for pair in hs.overlapping for i in pair}
    keys = hs.keys.tolist()
    order, place = hs.order.tolist(), np.argsort(hs.order).tolist()
    probes = np.full(len(tr.packets), hs.count, np.uint32)
    candidates = {key: np.flatnonzero(hs.keys == key).tolist() for key in set(keys)}
    masks, values = hs.masks.tolist(), hs.values.tolist()
    for n, (key, byte) in enumerate(
        zip(tr.packets["key"].tolist(), tr.packets["payload"][:, 0].tolist(), strict=True)
    ):
        fits = [i for i in candidates.get(key, ()) if byte & masks[i] == values[i]]
        if not fits:
            continue
        i = min(fits, key=place.__getitem__)
        at = place[i]
        probes[n] = at + 1
        if at and not (i in bound and order[at - 1] in bound and keys[order[at - 1]] == key):
            before = order[at - 1]
            order[at - 1], order[at] = i, before
            place[i], place[before] = at - 1, at
    return probes


def _table(hs: HandlerSet, tr: Traffic, trained: Traffic) -> NDArray[np.uint32]:
    """None for a key whose first handler is plain; else the length of its own short list up to the match."""
    keys, which = np.unique(tr.packets["key"], return_inverse=True)
    cost = np.zeros((len(keys), 256), np.uint32)
    for row, key in enumerate(keys):
        own = hs.order[hs.keys[hs.order] == key]
        if not len(own) or hs.masks[own[0]] == 0:
            continue
        plain = np.flatnonzero(hs.masks[own] == 0)
        cost[row] = _scan_cost(hs, own[: plain[0] + 1] if len(plain) else own, key)
    return _pick(cost, which, tr)


def _simd(hs: HandlerSet, tr: Traffic, trained: Traffic) -> NDArray[np.uint32]:
    """Of the handlers with the packet's key, those with a residual predicate that stand before the match, and the match's own."""
    keys, which = np.unique(tr.packets["key"], return_inverse=True)
    cost = np.zeros((len(keys), 256), np.uint32)
    first = np.arange(256, dtype=np.uint8)
    for row, key in enumerate(keys):
        looking = np.ones(256, np.bool_)
        for i in hs.order[hs.keys[hs.order] == key]:
            cost[row] += looking & bool(hs.masks[i])
            looking &= (first & hs.masks[i]) != hs.values[i]
    return _pick(cost, which, tr)


FLOWS = 64
"""Flows that the arms cache-last remember."""


def _cached(behind: _Model) -> _Model:
    def model(hs: HandlerSet, tr: Traffic, trained: Traffic) -> NDArray[np.uint32]:
        """What the arm behind asks, but nothing for a packet that the memory knows: played through."""
        probes = behind(hs, tr, trained).copy()
        first = {int(hs.keys[i]): bool(hs.masks[i] == 0) for i in hs.order[::-1]}
        last, flows = -1, [(-1, -1)] * FLOWS
        for n, (key, flow) in enumerate(zip(tr.packets["key"].tolist(), tr.packets["flow"].tolist(), strict=True)):
            if not first.get(key, False):
                continue
            if key == last or flows[flow % FLOWS] == (key, flow):
                probes[n] = 0
            else:
                flows[flow % FLOWS] = (key, flow)
            last = key
        return probes

    return model


def _none(hs: HandlerSet, tr: Traffic, trained: Traffic) -> NDArray[np.uint32]:
    return np.zeros(len(tr.packets), np.uint32)


_MODELS = {
    "scan": _scan,
    "scan-ordered": _scan_ordered,
    "scan-mtf": _scan_mtf,
    "table-direct16": _table,
    "table-compact": _table,
    "table-compact-copy": _table,
    "scan-simd": _simd,
    **dict.fromkeys(("hash", "hash-chained", "binary-search", "perfect-hash", "top-n", "switch", *BATCHES), _table),
    "cache-last": _cached(_table),
    "cache-last-scan": _cached(_scan),
    "direct-call": _none,
    "null": _none,
    "null-serial": _none,
    **dict.fromkeys(MECHANISMS, _none),
}
