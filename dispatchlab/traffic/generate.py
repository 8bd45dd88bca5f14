"""Generated traffic: weights, a seeded shuffle of which handler gets which, independent draws."""

import math
from collections.abc import Sequence
from decimal import ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from dispatchlab.errors import TrafficError, UsageError, explain
from dispatchlab.traffic import streams
from dispatchlab.traffic.packets import (
    POOL,
    Handlers,
    Ids,
    Packets,
    Traffic,
    by_key,
    checked_pool,
    fill,
    registered,
    require_match,
)
from dispatchlab.traffic.streams import Lane, checked_seed

UNMATCHED = 0.02
ZIPF_S = 1.1
HOT_SHARE, HOT_KEYS = 0.95, 2
MEAN_RUN = 8

# Decimal's ln and exp are correctly rounded, so k**-s computed through them has the same 50 digits on
# every platform; pow() of the C library does not promise that.
_EXACT = Context(prec=50, rounding=ROUND_HALF_EVEN, Emin=-999999, Emax=999999)


def uniform(hs: Handlers, *, seed: int = 0, pool: int = POOL, unmatched: float = UNMATCHED) -> Traffic:
    """Every handler equally often."""
    return _generate(hs, "uniform", {}, [1] * hs.count, seed, True, pool, unmatched)


def zipf(
    hs: Handlers,
    s: float = ZIPF_S,
    seed: int = 0,
    shuffle: bool = True,
    *,
    pool: int = POOL,
    unmatched: float = UNMATCHED,
) -> Traffic:
    """The k-th most popular handler with weight k**-s; s >= 0. Which handler is popular is a seeded shuffle.

    `shuffle=False` gives the weights to the handlers in list order, the busiest first. A list that is already
    sorted by popularity has nothing to gain from sorting, which turns the study's conclusion around: use it
    to see that.
    """
    number = checked_number(s, "zipf exponent s", low=0)
    name = "zipf" if s == ZIPF_S else f"zipf:{s}"
    return _generate(
        hs, name, {"s": float(s)}, zipf_weights(hs.count, number), seed, shuffle, pool, unmatched
    )


def hot(
    hs: Handlers,
    share: float = HOT_SHARE,
    keys: int = HOT_KEYS,
    seed: int = 0,
    shuffle: bool = True,
    *,
    pool: int = POOL,
    unmatched: float = UNMATCHED,
) -> Traffic:
    """`keys` hot handlers get `share` of the matched packets in equal parts, all others the rest in equal
    parts.

    With as many hot handlers as there are, they get everything.
    """
    part = checked_number(share, "hot share", low=0, high=1)
    if isinstance(keys, bool) or not isinstance(keys, int | np.integer) or not 1 <= keys <= hs.count:
        raise UsageError(explain("hot keys out of range", "hot", f"1..{hs.count} (the handlers)", repr(keys)))
    cold = hs.count - int(keys)
    weights = [part / int(keys)] * int(keys) + [(1 - part) / cold] * cold if cold else [1] * hs.count
    name = "hot" if (share, keys) == (HOT_SHARE, HOT_KEYS) else f"hot:{share},{keys}"
    return _generate(
        hs, name, {"share": float(share), "keys": int(keys)}, weights, seed, shuffle, pool, unmatched
    )


def worst(hs: Handlers, *, seed: int = 0, pool: int = POOL, unmatched: float = UNMATCHED) -> Traffic:
    """Every matched packet belongs to the last handler of the list, so that a scan asks all of them.

    If that handler has a residual predicate the payloads are made to fit it. Raises TrafficError when the
    handlers before it take all that it could get.
    """
    last = int(hs.order[-1])
    weights = [0] * hs.count
    weights[last] = 1
    ids, spec = _draw_ids(hs, weights, seed, pool, unmatched)
    packets = fill(hs, ids, spec["seed"])
    probe = packets[:1].repeat(256)
    probe["key"], probe["payload"][:, 0] = hs.keys[last], np.arange(256)
    reach = np.flatnonzero(hs.select(probe) == last).astype(np.uint8)
    if not len(reach):
        raise TrafficError(
            explain(
                "the last handler can never be reached",
                "worst",
                remedy="an earlier one takes all its packets; use another order",
            )
        )
    matched = np.flatnonzero(ids >= 0)
    packets["payload"][matched, 0] = reach[packets["payload"][matched, 0].astype(np.int64) * len(reach) >> 8]
    return finished(hs, packets, "worst", {"kind": "worst", **spec})


def bursts(
    hs: Handlers,
    mean_run: float = MEAN_RUN,
    seed: int = 0,
    *,
    pool: int = POOL,
    unmatched: float = UNMATCHED,
) -> Traffic:
    """Runs of packets of one flow, and so of one key; lengths are geometric with mean `mean_run` >= 1, every handler equally often.

    A run that ends is followed by one of a handler drawn anew, which may be the same; so the runs of equal keys that are seen are a
    little longer, by 1/handlers. The payloads of a run differ. `unmatched` is the share of runs that have no handler.
    """
    mean = checked_number(mean_run, "mean run length", low=1)
    drawn, shared = _draw_ids(hs, [1] * hs.count, seed, pool, unmatched)
    start = run_starts(shared["seed"], shared["pool"], mean)
    packets = fill(hs, drawn[start], shared["seed"])
    for name in ("key", "flow"):  # of an unmatched run, the key of its first packet
        packets[name] = packets[name][start]
    name = "bursts" if mean_run == MEAN_RUN else f"bursts:{mean_run}"
    return finished(hs, packets, name, {"kind": "bursts", "mean_run": float(mean_run), **shared})


def run_starts(seed: int, n: int, mean: Fraction) -> Ids:
    """For each packet, where its run began: int64[n]. A packet begins a new run with probability 1 / mean."""
    begins = streams.draw(seed, Lane.BURST, n) >> np.uint64(32) < np.uint64(int((1 << 32) / mean))
    begins[:1] = True
    return np.maximum.accumulate(np.where(begins, np.arange(n), 0))


def zipf_weights(n: int, s: Fraction) -> list[int]:
    """floor(k**-s * 2**64) for k = 1..n, exactly the same everywhere."""
    exponent = -_EXACT.divide(Decimal(s.numerator), Decimal(s.denominator))
    one = Decimal(1 << 64)
    powers = (_EXACT.exp(_EXACT.multiply(exponent, _EXACT.ln(Decimal(k)))) for k in range(1, n + 1))
    return [int(_EXACT.multiply(one, p)) for p in powers]


def checked_number(value: Any, what: str, low: float = -math.inf, high: float = math.inf) -> Fraction:
    """A finite number in [low, high], as the fraction it is written as (0.95: 19/20), or UsageError."""
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not (math.isfinite(number) and low <= number <= high):
        expected = f"a number of {low} or more" if high == math.inf else f"a number in {low}..{high}"
        raise UsageError(explain(f"{what} out of range", expected=expected, got=repr(value)))
    return Fraction(int(value)) if isinstance(value, int | np.integer) else Fraction(repr(number))


def draw_ids(
    weights: Sequence[Fraction | int], seed: int, pool: int, unmatched: Fraction = Fraction(0)
) -> Ids:
    """Independent draws of 0..len(weights)-1 by weight, or of -1 (share `unmatched`); int64[pool]."""
    ids = streams.choose(streams.draw(seed, Lane.HANDLER, pool), streams.boundaries(weights))
    share = np.uint64(round(unmatched * (1 << 32)))
    ids[streams.draw(seed, Lane.UNMATCHED, pool) >> np.uint64(32) < share] = -1
    return ids


def _draw_ids(
    hs: Handlers, weights: Sequence[Fraction | int], seed: int, pool: int, unmatched: float
) -> tuple[Ids, dict[str, Any]]:
    """Handler ids, and the part of the spec that all generators share."""
    seed, pool = checked_seed(seed), checked_pool(pool)
    share = checked_number(unmatched, "unmatched share", low=0, high=1)
    return draw_ids(weights, seed, pool, share), {"seed": seed, "pool": pool, "unmatched": float(share)}


def _generate(
    hs: Handlers,
    name: str,
    parameters: dict[str, Any],
    weights: Sequence[Fraction | int],
    seed: int,
    shuffle: bool,
    pool: int,
    unmatched: float,
) -> Traffic:
    """Traffic in which the handler at rank r gets weights[r]."""
    ranks, shared = _draw_ids(hs, weights, seed, pool, unmatched)
    ids = np.where(ranks < 0, -1, by_rank(hs, shared["seed"], shuffle)[ranks])
    spec = {"kind": name.split(":")[0], **parameters, **shared, "shuffle": bool(shuffle)}
    return finished(hs, fill(hs, ids, shared["seed"]), name, spec)


def by_rank(hs: Handlers, seed: int, shuffle: bool) -> Ids:
    """The handler that gets the r-th weight; int64[count]. Shuffled, it is free of the list's order."""
    return streams.permutation(seed, hs.count) if shuffle else np.asarray(hs.order, np.int64)


def finished(hs: Handlers, packets: Packets, name: str, spec: dict[str, Any]) -> Traffic:
    """Traffic out of the packets that a generator made; TrafficError unless some packet has a handler."""
    require_match(hs, packets, name)
    counts, unkeyed = by_key(hs, packets)
    return Traffic(packets, name, spec, counts, unkeyed, spec["seed"], registered=registered(hs))
