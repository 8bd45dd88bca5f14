"""What a traffic is like in numbers: how many handlers matter, how long their runs are, how skewed they are."""

import math
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

REPLICATES, SEED = 400, 1
CONFIDENCE = 0.95
GRID = 1200

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
        return hs.select(t.packets).astype(np.int64)
    keys = t.packets["key"].astype(np.int64)
    if t.registered is not None:
        keys[~np.isin(keys, list(t.registered))] = -1
    return keys


def _runs(ids: Ids) -> Ids:
    """Lengths of the runs of equal ids, those of -1 left out: int64[runs]."""
    starts = np.flatnonzero(np.r_[True, ids[1:] != ids[:-1]])
    lengths = np.diff(np.r_[starts, len(ids)])
    return lengths[ids[starts] >= 0].astype(np.int64)


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

    Maximum likelihood over the ranks. The ranks come from the counts themselves, so that chance alone makes the fit too steep:
    uniform traffic seems skewed. Both are undone by a parametric bootstrap: traffic of the fitted exponent is drawn, ranked and
    fitted again, and what that moves is taken off the fit (basic bootstrap interval). independent: how many independent packets
    the counts are worth; all of them unless given.
    """
    worth = int(counts.sum()) if independent is None else independent
    if len(counts) < 2:
        reason = "no packet has a handler" if not len(counts) else "all packets have one key: any exponent fits"
        return Zipf(None, None, None, worth, reason)
    if counts[0] == counts[-1]:
        return Zipf(None, None, None, worth, f"all {len(counts)} keys have the same count: there are no ranks")
    logs = np.log(np.arange(1, len(counts) + 1))
    wanted = float(counts @ logs / counts.sum())
    if _mean_log(STEEPEST, logs) > wanted:
        return Zipf(None, None, None, worth, f"steeper than an exponent of {STEEPEST:g}")
    from scipy.optimize import brentq  # a third of the time every command would take to start

    fitted = float(brentq(lambda s: _mean_log(s, logs) - wanted, 0.0, STEEPEST))
    again = _refitted(fitted, worth, logs)
    low, high = np.quantile(again, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    value = max(0.0, 2 * fitted - float(again.mean()))
    return Zipf(value, max(0.0, 2 * fitted - float(high)), max(0.0, 2 * fitted - float(low)), worth)


def _mean_log(s: float, logs: Floats) -> float:
    """The mean of log rank under a finite zipf; the likelihood is greatest where it is that of the counts."""
    weights = np.exp(-s * logs)
    return float(weights @ logs / weights.sum())


def _refitted(s: float, packets: int, logs: Floats) -> Floats:
    """Exponents fitted to drawn traffic of exponent s, each over the keys that occurred: float64[replicates]."""
    weights = np.exp(-s * logs)
    rng = np.random.default_rng(SEED)
    drawn = np.sort(rng.multinomial(packets, weights / weights.sum(), REPLICATES), axis=1)[:, ::-1]
    wanted, occurred = drawn @ logs / packets, (drawn > 0).sum(axis=1)
    reach = max(0.5, 8 * float(np.std(wanted)) / _slope(s, logs))
    grid = np.linspace(max(0.0, s - reach), min(STEEPEST, s + reach), GRID)
    table = np.empty((GRID, REPLICATES))
    for row, exponent in enumerate(grid):
        powers = np.exp(-exponent * logs)
        table[row] = (np.cumsum(powers * logs) / np.cumsum(powers))[occurred - 1]
    return np.array([np.interp(-w, -column, grid) for w, column in zip(wanted, table.T, strict=True)])


def _slope(s: float, logs: Floats) -> float:
    """By how much the mean of log rank falls per unit of exponent: its variance."""
    weights = np.exp(-s * logs)
    weights /= weights.sum()
    mean = float(weights @ logs)
    return max(float(weights @ (logs - mean) ** 2), math.ulp(1.0))
