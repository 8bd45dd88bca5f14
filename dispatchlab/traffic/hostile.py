"""Traffic that a list or a table was not built for: mixes that shift, floods aimed at one data structure, and mixtures."""

from collections.abc import Sequence

import numpy as np

from dispatchlab.errors import TrafficError, UsageError, explain
from dispatchlab.traffic import streams
from dispatchlab.traffic.generate import UNMATCHED, ZIPF_S, by_rank, checked_number, draw_ids, finished, zipf_weights
from dispatchlab.traffic.packets import POOL, Handlers, Packets, Traffic, checked_pool, fill, strays
from dispatchlab.traffic.streams import Lane, checked_seed

PHASES = 4
KINDS = ("unmatched", "residual", "collision")


def shift(
    hs: Handlers, phases: int = PHASES, s: float = ZIPF_S, seed: int = 0, *, pool: int = POOL, unmatched: float = UNMATCHED
) -> Traffic:
    """A Zipf mix whose busy handlers change: the pool in `phases` equal parts, each with a shuffle of its own. A list sorted for any
    one of them, or for their sum, is sorted for yesterday."""
    if isinstance(phases, bool) or not isinstance(phases, int | np.integer) or not 1 <= phases <= pool:
        raise UsageError(explain("number of phases out of range", "shift", f"1..{pool}", repr(phases)))
    seed, pool = checked_seed(seed), checked_pool(pool)
    number = checked_number(s, "zipf exponent s", low=0)
    share = checked_number(unmatched, "unmatched share", low=0, high=1)
    ranks = draw_ids(zipf_weights(hs.count, number), seed, pool, share)
    turn = np.arange(pool) * int(phases) // pool
    owner = np.stack([by_rank(hs, seed + phase, True) for phase in range(int(phases))])
    ids = np.where(ranks < 0, -1, owner[turn, ranks])
    spec = {"kind": "shift", "phases": int(phases), "s": float(s), "seed": seed, "pool": pool, "unmatched": float(share)}
    name = "shift" if (phases, s) == (PHASES, ZIPF_S) else f"shift:{phases},{s}"
    return finished(hs, fill(hs, ids, seed), name, spec)


def flood(hs: Handlers, kind: str = "unmatched", seed: int = 0, *, pool: int = POOL) -> Traffic:
    """What somebody would send who knows the data structure. One packet in the pool is an ordinary one.

    unmatched  keys that nobody has: the worst of every list
    residual   the key and first byte for which a table asks the most predicates: the worst of its lists behind a key
    collision  keys that nobody has and that agree in their low 14 bits with one that somebody has: those fall into slots that are
               taken, in every table that is indexed by at most so many bits of the key, and are told apart there or in what follows
    """
    if kind not in KINDS:
        raise UsageError(explain("unknown flood", "flood", " or ".join(KINDS), repr(kind)))
    seed, pool = checked_seed(seed), checked_pool(pool)
    packets = fill(hs, np.full(pool, int(hs.order[0])), seed)
    rest = packets[1:]
    if kind == "residual":
        rest["key"], rest["payload"][:, 0] = _longest(hs)
    else:
        keys = strays(hs) if kind == "unmatched" else _colliding(hs)
        rest["key"] = keys[streams.below(streams.draw(seed, Lane.STRAY, pool), len(keys))][1:]
    _make_match(hs, packets)
    return finished(hs, packets, f"flood:{kind}", {"kind": "flood", "flood": kind, "seed": seed, "pool": pool})


def _longest(hs: Handlers) -> tuple[int, int]:
    """Key and first payload byte for which the handlers of that key ask the most residual predicates before one accepts."""
    first = np.arange(256, dtype=np.uint8)
    best = (0, 0, 0)
    for key in np.unique(np.asarray(hs.keys)):
        asked, looking = np.zeros(256, np.int64), np.ones(256, np.bool_)
        for i in hs.order[np.asarray(hs.keys)[hs.order] == key]:
            asked += looking & bool(hs.masks[i])
            looking &= (first & hs.masks[i]) != hs.values[i]
        byte = int(asked.argmax())
        best = max(best, (int(asked[byte]), int(key), byte))
    if not best[0]:
        raise TrafficError(explain("no predicate asks for more than its key", "flood:residual", "residual predicates"))
    return best[1], best[2]


def _colliding(hs: Handlers) -> np.ndarray[tuple[int], np.dtype[np.uint16]]:
    keys = np.unique(np.asarray(hs.keys))
    near = np.concatenate([keys ^ np.uint16(1 << bit) for bit in (14, 15)])
    return near[~np.isin(near, keys)].astype(np.uint16)


def _make_match(hs: Handlers, packets: Packets) -> None:
    """Let the first packet, which has the first handler's key, be accepted by somebody: a pool without a match measures nobody."""
    every = packets[:1].repeat(256)
    every["payload"][:, 0] = np.arange(256)
    accepted = np.flatnonzero(hs.select(every) >= 0)
    if len(accepted):
        packets["payload"][0, 0] = accepted[0]


def mixture(parts: Sequence[tuple[Traffic, float]], hs: Handlers, seed: int = 0, name: str = "mix") -> Traffic:
    """Every packet from one of several traffics over the same handlers, drawn by their shares; each traffic keeps its own order.

    All parts need pools of one size. UsageError for shares that are not above 0.
    """
    if not parts or len({len(t) for t, _ in parts}) != 1:
        sizes = ", ".join(str(len(t)) for t, _ in parts) or "none"
        raise UsageError(explain("traffics cannot be mixed", name, "one or more, with pools of one size", sizes))
    shares = [checked_number(share, "share of a traffic") for _, share in parts]
    if min(shares) <= 0:
        raise UsageError(explain("share of a traffic out of range", name, "numbers above 0", ", ".join(map(str, shares))))
    seed, pool = checked_seed(seed), len(parts[0][0])
    which = streams.choose(streams.draw(seed, Lane.MIXTURE, pool), streams.boundaries(shares))
    packets = parts[0][0].packets.copy()
    for n, (traffic, _) in enumerate(parts):
        mine = which == n
        packets[mine] = traffic.packets[: int(mine.sum())]
    made_of = [{"share": float(share), **dict(t.spec)} for (t, _), share in zip(parts, shares, strict=True)]
    return finished(hs, packets, name, {"kind": "mix", "parts": made_of, "seed": seed, "pool": pool})
