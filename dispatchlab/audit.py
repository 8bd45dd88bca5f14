"""Predicates that do not factor into a key: how long the lists behind a table get, and when the table is the loop again.

A table can look up the key alone. What is left of a predicate, and a predicate without a key, has to be asked one by one: behind
each key stands a list of the handlers that could take a packet with that key, in the order of registration. Pure arithmetic over
a description of the handlers; nothing is run.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from .errors import UsageError, explain

HOLD = 0.99
DEGENERATE = 0.5
"""A table that asks at least this part of what the sorted list asks is called degenerate: lookup and list then cost alike."""

MOST_PAIRS = 20


@dataclass(frozen=True)
class Handler:
    """key: 0..65535, or None for a predicate that names none; residual: the predicate tests more than the key; share: part of the
    packets that it takes, of 1; where: the file and line that it comes from."""

    name: str
    key: int | None
    residual: bool
    share: float
    where: str = ""


@dataclass(frozen=True)
class Bucket:
    """What a packet with this key (None: any key that nobody names) meets in the table.

    names    the handlers that can take it, in order, up to the first that takes whatever comes
    asked    how many predicates at most; 0 where the first of them needs none
    share    part of the packets that are known to come here
    """

    key: int | None
    names: tuple[str, ...]
    asked: int
    share: float


@dataclass(frozen=True)
class Probes:
    """Predicates per packet. high is the mean when the packets of handlers without a key carry the keys with the longest lists,
    mean when they carry keys that nobody names; worst: the most that one packet can need."""

    mean: float
    high: float
    worst: int


@dataclass(frozen=True)
class Audit:
    """What the predicates allow.

    order       names, sorted by share as far as nothing changes what handler a packet gets
    rivals      pairs that can both match; swapped: those that sorting by share alone would turn round, MOST_PAIRS at most
    degenerate  "yes", "no", or "depends" on the keys that the packets of handlers without a key carry
    bound       the shortest limit on lists that still holds `hold` of the packets; over: keys whose lists are longer
    unreachable handlers behind one that takes all they could get
    """

    handlers: tuple[Handler, ...]
    buckets: tuple[Bucket, ...]
    scan: Probes
    ordered: Probes
    table: Probes
    order: tuple[str, ...]
    rivals: int
    swapped: tuple[tuple[str, str], ...]
    swaps: int
    degenerate: str
    hold: float
    bound: int
    over: tuple[int | None, ...]
    unreachable: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {**asdict(self), "sorting_is_legal": self.swaps == 0}


def audit(handlers: Sequence[Handler], hold: float = HOLD) -> Audit:
    """Enumerate what every packet can meet. Shares are scaled to add up to 1.

    Raises UsageError: no handlers, shares that are negative, endless or all 0, a name twice, a handler that takes packets though
    it cannot be reached, hold outside of 0..1.
    """
    found = _scaled(handlers)
    if not 0 < hold <= 1:
        raise UsageError(explain("part of the packets out of range", "hold", "a number above 0, at most 1", repr(hold)))
    unreachable = _unreachable(found)
    buckets = [_bucket(found, key) for key in dict.fromkeys((*(h.key for h in found), None))]
    order = sorted_legally(found)
    table, lengths = _table(found, buckets)
    scan, ordered = _list(found, found), _list(order, found)
    swapped = list(_swapped(found))
    bound = _bound(found, lengths, hold)
    return Audit(
        handlers=tuple(found),
        buckets=tuple(buckets),
        scan=scan,
        ordered=ordered,
        table=table,
        order=tuple(h.name for h in order),
        rivals=_rivals(found),
        swapped=tuple((a.name, b.name) for a, b in swapped[:MOST_PAIRS]),
        swaps=len(swapped),
        degenerate=_degenerate(table, ordered),
        hold=hold,
        bound=bound,
        over=tuple(b.key for b in buckets if b.asked > bound),
        unreachable=unreachable,
    )


def _scaled(handlers: Sequence[Handler]) -> list[Handler]:
    if not handlers:
        raise UsageError(explain("no handlers", "audit", "one or more", "none"))
    seen: set[str] = set()
    for h in handlers:
        if h.name in seen:
            raise UsageError(explain(f"handler {h.name!r} twice", _where(h), "every name once"))
        if not (math.isfinite(h.share) and h.share >= 0):
            raise UsageError(explain("share cannot be used", _where(h), "a number, 0 or more", repr(h.share)))
        if h.key is not None and not 0 <= h.key <= 0xFFFF:
            raise UsageError(explain("key out of range", _where(h), "0..65535, or none", repr(h.key)))
        seen.add(h.name)
    if not (total := sum(h.share for h in handlers)):
        raise UsageError(explain("no traffic: all shares are 0", "audit", "one above 0"))
    return [Handler(h.name, h.key, h.residual, h.share / total, h.where) for h in handlers]


def _where(h: Handler) -> str:
    return h.where or f"handler {h.name!r}"


def compatible(h: Handler, key: int | None) -> bool:
    """Whether it could take a packet with this key (None: one that nobody names)."""
    return h.key is None or h.key == key


def _unreachable(found: Sequence[Handler]) -> tuple[str, ...]:
    """Handlers behind one that takes everything, or everything of their key. UsageError when one has a share all the same."""
    takers: dict[int | None, Handler] = {}
    never = []
    for h in found:
        taker = takers.get(None) or (takers.get(h.key) if h.key is not None else None)
        if taker is not None:
            if h.share:
                what = f"handler {h.name!r} can take nothing: {taker.name!r} before it takes all that it could get"
                raise UsageError(explain(what, _where(h), "share 0", f"{h.share:.3g}", "put it in front of that one"))
            never.append(h.name)
        elif not h.residual:
            takers[h.key] = h
    return tuple(never)


def _members(found: Iterable[Handler], key: int | None) -> list[Handler]:
    members = []
    for h in found:
        if compatible(h, key):
            members.append(h)
            if not h.residual:
                break
    return members


def _bucket(found: Sequence[Handler], key: int | None) -> Bucket:
    members = _members(found, key)
    asked = len(members) if members and members[0].residual else 0
    return Bucket(key, tuple(h.name for h in members), asked, sum(h.share for h in members if h.key == key))


def _table(found: Sequence[Handler], buckets: Sequence[Bucket]) -> tuple[Probes, dict[str, int]]:
    """Probes of the table, and for each handler the longest list that its packets can meet."""
    places: dict[str, dict[int | None, int]] = {h.name: {} for h in found}
    lengths = dict.fromkeys(places, 0)
    for b in buckets:
        for place, name in enumerate(b.names, 1):
            places[name][b.key] = place if b.asked else 0
    for b in buckets:
        for name in b.names:
            lengths[name] = max(lengths[name], b.asked)
    mean = sum(h.share * places[h.name].get(h.key, 0) for h in found)
    high = sum(h.share * max(places[h.name].values(), default=0) for h in found)
    return Probes(mean, high, max(b.asked for b in buckets)), lengths


def _list(order: Sequence[Handler], found: Sequence[Handler]) -> Probes:
    """Probes of a list asked from the front; a packet nobody wants goes to its end, or to the first that takes whatever comes."""
    mean = sum(h.share * place for place, h in enumerate(order, 1))
    ends = [place for place, h in enumerate(order, 1) if h.key is None and not h.residual]
    return Probes(mean, mean, min(ends, default=len(found)))


def rivals(a: Handler, b: Handler) -> bool:
    """Whether one packet could fit both, as far as can be told without the residual predicates: then their order is behaviour."""
    return a.key is None or b.key is None or a.key == b.key


def _rivals(found: Sequence[Handler]) -> int:
    """How many pairs of rivals there are."""
    free = sum(h.key is None for h in found)
    sizes: dict[int, int] = {}
    for h in found:
        if h.key is not None:
            sizes[h.key] = sizes.get(h.key, 0) + 1
    return sum(math.comb(n, 2) for n in sizes.values()) + math.comb(free, 2) + free * (len(found) - free)


def _swapped(found: Sequence[Handler]) -> Iterable[tuple[Handler, Handler]]:
    """Pairs of rivals, the first registered before the second, that sorting by share turns round."""
    for place, a in enumerate(found):
        yield from ((a, b) for b in found[place + 1 :] if b.share > a.share and rivals(a, b))


def sorted_legally(found: Sequence[Handler]) -> list[Handler]:
    """The order with the fewest probes in which no two rivals change places.

    A handler without a key is everybody's rival: what stands before it stays before it. Between two such ones the handlers of a
    key stay in their order; such chains are merged in the best order by taking, again and again, the front part of a chain with
    the highest mean share (Lawler, Annals of Discrete Mathematics 2 (1978) 75-90, for chains).
    """
    order: list[Handler] = []
    chains: dict[int, list[Handler]] = {}
    for h in found:
        if h.key is None:
            order += _merged(chains.values())
            order.append(h)
            chains = {}
        else:
            chains.setdefault(h.key, []).append(h)
    return order + _merged(chains.values())


def _merged(chains: Iterable[list[Handler]]) -> list[Handler]:
    parts = [part for chain in chains for part in _front_parts(chain)]
    parts.sort(key=lambda part: -_mean_share(part))  # stable: parts of one chain with equal means keep their order
    return [h for part in parts for h in part]


def _front_parts(chain: list[Handler]) -> list[list[Handler]]:
    """The chain cut so that each part is the front part with the highest mean share of what is left; means never rise."""
    parts: list[list[Handler]] = []
    for h in chain:
        parts.append([h])
        while len(parts) > 1 and _mean_share(parts[-1]) > _mean_share(parts[-2]):
            last = parts.pop()
            parts[-1] += last
    return parts


def _mean_share(part: list[Handler]) -> float:
    return sum(h.share for h in part) / len(part)


def _degenerate(table: Probes, ordered: Probes) -> str:
    limit = DEGENERATE * ordered.mean
    if table.mean >= limit:
        return "yes"
    return "no" if table.high < limit else "depends"


def _bound(found: Sequence[Handler], lengths: dict[str, int], hold: float) -> int:
    """The shortest list length within which `hold` of the packets stay, wherever those of handlers without a key go."""
    held = 0.0
    for length in sorted(set(lengths.values())):
        held += math.fsum(h.share for h in found if lengths[h.name] == length)
        if held >= hold - 1e-12:
            return length
    return max(lengths.values())
