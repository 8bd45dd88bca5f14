"""Whether a list may be sorted, and how long the lists behind a table's keys get: found by evaluating, not by reading predicates."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ..arms import results
from ..handlers import HandlerSet
from ..traffic import PACKET, Traffic, from_packets


def witness(hs: HandlerSet, tr: Traffic) -> dict[str, Any] | None:
    """A packet that another handler answers when the list is put in another order; None when there is none.

    Every key with every first payload byte is sent through the brief's loop: in the list's order, sorted by the frequencies of `tr`,
    and, since traffic that shifts would sort it otherwise, in reverse, which turns every two handlers around. The loop is asked
    through the engine, so it is the predicates themselves that decide.
    """
    every = _every(hs)
    by_count = hs.order[np.argsort(-hs.frequency(tr.packets)[hs.order].astype(np.int64), kind="stable")]
    for how, order in (("sorted by this traffic", by_count), ("reversed", hs.order[::-1])):
        if found := _changed(hs, reordered(hs, order), every, np.unique(tr.packets["key"])):
            return {**found, "how": how, "pairs": len(hs.overlapping)}
    return None


def _changed(hs: HandlerSet, moved: HandlerSet, every: Traffic, arriving: Any) -> dict[str, Any] | None:
    """The first packet, of a key that arrives where there is one, that the two orders give to different handlers."""
    here, there = results("scan", hs, every), results("scan", moved, every)
    first, second = hs.select(every.packets), moved.select(every.packets)
    ours = (first < hs.stamped) & (second < hs.stamped)  # a plugin may answer the same packet differently each time
    differ = np.flatnonzero((first != second) | (ours & (here != there)))
    if not differ.size:
        return None
    n = int(differ[np.argmax(np.isin(every.packets["key"][differ], arriving))])
    packet = every.packets[n]
    return {
        "key": int(packet["key"]),
        "first_byte": int(packet["payload"][0]),
        "in_list_order": int(first[n]),
        "when_moved": int(second[n]),
        "answer_in_list_order": int(here[n]),
        "answer_when_moved": int(there[n]),
        "packets": int(differ.size),
        "of": len(every),
    }


def reordered(hs: HandlerSet, order: Any) -> HandlerSet:
    """The same handlers in another order."""
    return replace(hs, order=np.array(order, np.int32), order_name="permutation", engine=None)


def _every(hs: HandlerSet) -> Traffic:
    """Every key with each of the 256 first payload bytes."""
    keys = np.unique(hs.keys)
    packets = np.zeros(256 * len(keys), PACKET)
    packets["key"] = np.repeat(keys, 256)
    packets["payload"][:, 0] = np.tile(np.arange(256, dtype=np.uint8), len(keys))
    packets["payload"][:, 1:] = np.arange(1, 24)
    packets["length"] = 64
    return from_packets(packets, hs, name="every key and first byte")


def residual_lists(hs: HandlerSet, tr: Traffic) -> dict[str, Any]:
    """How many handlers ask for more than their key, how many of them stand behind one, and what part of the packets meets them."""
    keys, sizes = np.unique(hs.keys[hs.masks > 0], return_counts=True)
    behind = np.isin(tr.packets["key"], keys)
    return {
        "handlers": int((hs.masks > 0).sum()),
        "keys": len(keys),
        "longest": int(sizes.max(initial=0)),
        "share": float(behind.mean()),
    }
