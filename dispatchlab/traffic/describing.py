"""What a traffic is like in numbers: how many handlers matter, how long their runs are, how skewed they are."""

import math
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from dispatchlab.traffic.packets import Handlers, Ids, Traffic

TOP = (1, 2, 4, 8, 16)
STEEPEST = 16.0
"""Exponent beyond which a second key gets less than one packet of 65536."""

REPLICATES, GRID, SEED = 200, 16, 1
CONFIDENCE = 0.95
MOST_UNSEEN = 4

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Zipf:
    """The exponent of a finite zipf, share of rank k in proportion to k**-exponent, with its 95 % interval.

    All three are None when nothing can be fitted; `reason` then says why. independent: how many independent packets those of the
    pool are worth; fewer than all where they come in runs or where a short capture is repeated.
    """

    exponent: float | None
    low: float | None
    high: float | None
    independent: int
    reason: str = ""


@dataclass(frozen=True)
class Description:
    """A traffic in numbers. Shares are of 1; all but `packets` and `unmatched` are about the packets that have a handler.

    keys          different ones that occur (handlers, when a handler set was given)
    entropy       bits; effective: 2**entropy, the number of equally busy handlers that would be as hard to guess
    top           k -> share of the k busiest
    run           mean number of neighbouring packets of the same key; random: what it would be in random order
    unmatched     share of the packets that no handler takes
    """

    name: str
    packets: int
    keys: int
    entropy: float
    effective: float
    top: Mapping[int, float]
    run: float
    random: float
    zipf: Zipf
    unmatched: float

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON; the keys of `top` are text."""
        fields = {name: getattr(self, name) for name in self.__dataclass_fields__ if name not in ("top", "zipf")}
        return {**fields, "top": {str(k): share for k, share in self.top.items()}, "zipf": asdict(self.zipf)}


def describe(t: Traffic, hs: Handlers | None = None) -> Description:
    """The numbers of a traffic, over its pool of packets.

    Packets count by their key. With a handler set they count by the handler that takes them: two handlers of one key are then
    two, and a packet that their residual predicates refuse is unmatched. Packets of one's own for which no handler set was ever
    named count as matched. A traffic without a matched packet has no keys, entropy 0 and runs of 0.
    """
    ids = _ids(t, hs)
    counts = np.unique(ids[ids >= 0], return_counts=True)[1].astype(np.int64)
    counts = np.sort(counts)[::-1]
    matched = int(counts.sum())
    shares = counts / max(matched, 1)
    entropy = float(-(shares * np.log2(shares)).sum()) + 0.0
    runs, expected = _runs(ids), float((counts * (len(ids) - counts + 1)).sum() / len(ids))
    return Description(
        name=t.name,
        packets=len(ids),
        keys=len(counts),
        entropy=entropy,
        effective=float(2**entropy) if matched else 0.0,
        top=MappingProxyType({k: float(shares[:k].sum()) for k in TOP}),
        run=matched / len(runs) if matched else 0.0,
        random=matched / expected if matched else 0.0,
        zipf=fit_zipf(counts, _independent(t, ids, runs)),
        unmatched=1 - matched / len(ids),
    )


def _ids(t: Traffic, hs: Handlers | None) -> Ids:
    """For each packet its handler or key, -1 where no handler takes it: int64[n]."""
    if hs is not None:
        return np.asarray(hs.select(t.packets), np.int64)
    keys: Ids = t.packets["key"].astype(np.int64)
    if t.registered is not None:
        keys[~np.isin(keys, list(t.registered))] = -1
    return keys


def _runs(ids: Ids) -> Ids:
    """Lengths of the runs of equal ids, those of -1 left out: int64[runs]."""
    starts = np.flatnonzero(np.r_[True, ids[1:] != ids[:-1]])
    lengths = np.diff(np.r_[starts, len(ids)])
    return np.asarray(lengths[ids[starts] >= 0], np.int64)


def _independent(t: Traffic, ids: Ids, runs: Ids) -> int:
    """How many independently drawn packets tell as much about the shares.

    Packets that come in runs are worth fewer, by the mean squared run length over that of the same packets shuffled; a capture
    that was repeated to fill the pool is worth its records.
    """
    matched = int(runs.sum())
    if not matched:
        return 0
    shuffled = _runs(np.random.default_rng(SEED).permutation(ids))
    effect = max(1.0, float((runs**2).sum() / (shuffled**2).sum()))
    once = min(1.0, t.spec["records"] / len(ids)) if t.spec.get("replay") else 1.0
    return max(1, int(matched / effect * once))


def fit_zipf(counts: npt.NDArray[np.int64], independent: int | None = None) -> Zipf:
    """The exponent for counts sorted from the largest: int64[keys], each above 0.

    The likelihood over ranks depends on the counts through the mean logarithm of rank alone. The ranks come from the counts
    themselves, so that chance makes that mean too small: uniform traffic seems skewed. So the exponent is the one whose drawn and
    ranked traffic has the mean that was seen, and the interval holds those under which it is no surprise (a parametric bootstrap,
    inverted). independent: how many independent packets the counts are worth; all of them unless given.
    """
    worth = int(counts.sum()) if independent is None else independent
    if len(counts) < 2:
        reason = "no packet has a handler" if not len(counts) else "all packets have one key: any exponent fits"
        return Zipf(None, None, None, worth, reason)
    if counts[0] == counts[-1]:
        return Zipf(None, None, None, worth, f"all {len(counts)} keys have the same count: there are no ranks")
    logs = np.log(np.arange(1, len(counts) + 1))
    seen = float(counts @ logs / counts.sum())
    if _moments(STEEPEST, logs)[0] > seen:
        return Zipf(None, None, None, worth, f"steeper than an exponent of {STEEPEST:g}")
    from scipy.optimize import brentq  # a third of the time every command would take to start
    from scipy.special import ndtri

    fitted = float(brentq(lambda s: _moments(s, logs)[0] - seen, 0.0, STEEPEST))
    reach = max(0.15, 6 / math.sqrt(worth * _moments(fitted, logs)[1]))
    centre = fitted
    if _drawn(0.0, worth, len(counts))[0] <= seen:
        centre = 0.0
    elif _drawn(fitted, worth, len(counts))[0] < seen:  # what chance adds may be more than the interval's width
        centre = float(brentq(lambda s: _drawn(s, worth, len(counts))[0] - seen, 0.0, fitted, xtol=reach / 10))
    grid = np.linspace(max(0.0, centre - reach), centre + reach, GRID)
    mean, spread = np.array([_drawn(float(s), worth, len(counts)) for s in grid]).T
    z = float(ndtri((1 + CONFIDENCE) / 2))
    value, low, high = (float(np.interp(-seen, -np.minimum.accumulate(mean + shift * spread), grid)) for shift in (0, -z, z))
    return Zipf(value, low, high, worth)


def _moments(s: float, logs: Floats) -> tuple[float, float]:
    """Mean and variance of log rank under a finite zipf."""
    weights = np.exp(-s * logs)
    weights /= weights.sum()
    mean = float(weights @ logs)
    return mean, float(weights @ (logs - mean) ** 2)


def _drawn(s: float, packets: int, keys: int) -> tuple[float, float]:
    """Mean and standard deviation of the mean log rank of drawn traffic in which so many keys occur, ranked by its own counts."""
    weights = np.arange(1, _existing(s, packets, keys) + 1) ** -s
    drawn = np.random.default_rng(SEED).multinomial(packets, weights / weights.sum(), REPLICATES)
    found = np.sort(drawn, axis=1)[:, ::-1] @ np.log(np.arange(1, len(weights) + 1)) / packets
    return float(found.mean()), float(found.std())


def _existing(s: float, packets: int, keys: int) -> int:
    """How many keys there must be for `keys` of them to be expected to occur; MOST_UNSEEN times as many at most."""

    def occur(n: int) -> float:
        weights = np.arange(1, n + 1) ** -s
        return float(-np.expm1(packets * np.log1p(-np.minimum(weights / weights.sum(), 1 - 1e-15))).sum())

    return bisect_left(range(MOST_UNSEEN * keys), keys - 0.5, lo=keys, key=occur)
