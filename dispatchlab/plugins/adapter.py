"""Plugins as handlers of a set: which keys they own, under which predicate, and who gives way when two claim the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ..errors import UsageError, explain
from .loading import Plugin

Conflicts = Literal["error", "first", "last", "residual"]
POLICIES = ("error", "first", "last", "residual")


@dataclass(frozen=True, eq=False)
class Foreign:
    """The handlers of a set that came from plugins: one for each claimed key, and one instance of each plugin.

    owner    int32[n]: which of `plugins` handler stamped + i belongs to
    keys     uint16[n], masks uint8[n], values uint8[n]: as in HandlerSet
    """

    plugins: tuple[Plugin, ...] = ()
    owner: NDArray[np.int32] = field(default_factory=lambda: np.zeros(0, np.int32))
    keys: NDArray[np.uint16] = field(default_factory=lambda: np.zeros(0, np.uint16))
    masks: NDArray[np.uint8] = field(default_factory=lambda: np.zeros(0, np.uint8))
    values: NDArray[np.uint8] = field(default_factory=lambda: np.zeros(0, np.uint8))
    instances: tuple[Any, ...] = ()

    def __len__(self) -> int:
        return len(self.owner)

    @property
    def engine(self) -> tuple[Any, ...]:
        """The instance of every handler."""
        return tuple(self.instances[i] for i in self.owner)

    def answers(self, which: NDArray[np.int32], packets: NDArray[Any]) -> NDArray[np.uint32]:
        """What handlers `which` (int32[n], counted from 0 here) make of packets (PACKET[n]), asked of the plugins directly."""
        out = np.zeros(len(which), np.uint32)
        for i, instance in enumerate(self.instances):
            mine = self.owner[which] == i
            if mine.any():
                out[mine] = np.frombuffer(instance.run(np.ascontiguousarray(packets[mine]), 0), np.uint32)
        return out


def adopt(plugins: Sequence[Plugin]) -> Foreign:
    """One instance of each plugin, and the handlers that it makes. Raises PluginError from create, UsageError where the same
    plugin is given twice or its predicate cannot be tabulated."""
    paths = [str(p.path) for p in plugins]
    if twice := next((p for i, p in enumerate(paths) if p in paths[:i]), None):
        raise UsageError(explain("the same plugin twice", "plugins", "each file once, links resolved", twice))
    instances = tuple(p.instance() for p in plugins)
    rows = [
        (i, int(key), *_predicate(p, instance, int(key)))
        for i, (p, instance) in enumerate(zip(plugins, instances, strict=True))
        for key in p.keys
    ]
    owner, keys, masks, values = zip(*rows, strict=True) if rows else ((), (), (), ())
    return Foreign(
        tuple(plugins),
        np.array(owner, np.int32),
        np.array(keys, np.uint16),
        np.array(masks, np.uint8),
        np.array(values, np.uint8),
        instances,
    )


def _predicate(plugin: Plugin, instance: Any, key: int) -> tuple[int, int]:
    """Mask and value of the first payload byte that the plugin's predicate amounts to: (0, 0) when the key alone decides."""
    accepted = np.flatnonzero(np.frombuffer(instance.accepts(key), np.uint8)).astype(np.uint8)
    if accepted.size:
        mask = 0xFF & ~int(np.bitwise_or.reduce(accepted ^ accepted[0]))
        if accepted.size == 1 << (8 - mask.bit_count()):
            return mask, int(accepted[0]) & mask
    got = "none of 256" if not accepted.size else f"{accepted.size} of 256 first bytes that no mask describes"
    raise UsageError(
        explain("the predicate cannot be tabulated", f"{plugin.path}: key {key}", "(first payload byte & mask) == value", got)
    )


def conflicts(keys: NDArray[np.uint16], masks: NDArray[np.uint8], values: NDArray[np.uint8]) -> list[tuple[int, int]]:
    """Pairs of handlers (numbers, the smaller first) that claim the same key."""
    order = np.argsort(keys, kind="stable")
    pairs = []
    for place, i in enumerate(order):
        for j in order[place + 1 :]:
            if keys[j] != keys[i]:
                break
            pairs.append((int(i), int(j)))
    return pairs


def settle(
    policy: Conflicts, stamped: int, foreign: Foreign, keys: NDArray[np.uint16], masks: NDArray[np.uint8], values: NDArray[np.uint8],
    order: NDArray[np.int32],
) -> NDArray[np.int32]:  # fmt: skip
    """The order of the list under a policy for keys that a plugin and somebody else claim: int32[count].

    error: refused, both owners named. first: who was registered first is asked first. last: who was registered last is.
    residual: both stay, and are refused unless no packet belongs to both. Raises UsageError.
    """
    if policy not in POLICIES:
        raise UsageError(explain(f"unknown policy {policy!r}", "conflicts", ", ".join(POLICIES)))
    found = [(i, j) for i, j in conflicts(keys, masks, values) if j >= stamped]
    clash = [(i, j) for i, j in found if not (values[i] ^ values[j]) & masks[i] & masks[j]]
    refused = {"error": found, "residual": clash}.get(policy, [])
    if refused:
        i, j = refused[0]
        wanted = "every key once" if policy == "error" else "disjoint predicates"
        owners = f"{_owner(i, stamped, foreign)} and {_owner(j, stamped, foreign)}"
        remedy = 'choose with conflicts="first", "last" or "residual"'
        raise UsageError(explain(f"two handlers claim key {keys[i]}", "plugins", wanted, owners, remedy))
    if policy != "last" or not found:
        return order
    late = {j for _, j in found}
    return np.array([*sorted(late, reverse=True), *(i for i in order.tolist() if i not in late)], np.int32)


def _owner(i: int, stamped: int, foreign: Foreign) -> str:
    return f"built-in handler {i}" if i < stamped else str(foreign.plugins[foreign.owner[i - stamped]].path)
