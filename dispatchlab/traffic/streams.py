"""Frozen random streams: the same seed gives the same bits on every platform, for ever.

NumPy promises the raw streams of its bit generators but not what `Generator` methods make of them, and a
choice that goes through libm can differ in its last bit. So the stream here is SplitMix64 (Steele, Lea and
Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014), written as a function of seed, lane and
index, and everything made from it is integer arithmetic modulo 2**64. Tests hold golden digests of what
follows.
"""

import operator
from collections.abc import Iterable
from enum import IntEnum
from fractions import Fraction
from itertools import accumulate

import numpy as np
import numpy.typing as npt

from dispatchlab.errors import UsageError, explain

U64 = npt.NDArray[np.uint64]

_GOLDEN = 0x9E3779B97F4A7C15
_MASK = (1 << 64) - 1


class Lane(IntEnum):
    """What a stream decides. A lane's number is part of the frozen format: never reuse or renumber one."""

    SHUFFLE = 1
    UNMATCHED = 2
    HANDLER = 3
    PAYLOAD = 4
    FLOW = 5
    LENGTH = 6
    STRAY = 7
    FIRST_BYTE = 8
    BURST = 9
    MIXTURE = 10


def mix(z: U64) -> U64:
    """SplitMix64's finaliser, a bijection of 64 bits; uint64[n] -> uint64[n]."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def checked_seed(seed: int) -> int:
    """The seed as an int in 0..2**64-1, or a UsageError."""
    try:
        value = operator.index(seed)
    except TypeError:
        value = -1
    if not 0 <= value <= _MASK:
        raise UsageError(explain("seed out of range", expected="an integer in 0..2**64-1", got=repr(seed)))
    return value


def draw(seed: int, lane: Lane, n: int) -> U64:
    """The first n outputs of the stream (seed, lane); uint64[n]."""
    start = int(mix(np.array([seed], np.uint64))[0]) + lane
    start = int(mix(np.array([start & _MASK], np.uint64))[0])
    return mix(np.arange(1, n + 1, dtype=np.uint64) * np.uint64(_GOLDEN) + np.uint64(start))


def permutation(seed: int, n: int) -> npt.NDArray[np.int64]:
    """A seeded shuffle of 0..n-1; int64[n]."""
    return np.argsort(draw(seed, Lane.SHUFFLE, n), kind="stable").astype(np.int64)


def boundaries(weights: Iterable[Fraction | int]) -> U64:
    """The upper ends of n intervals that divide 0..2**32 in proportion to the weights; uint64[n].

    Computed exactly (no floats), and not all weights may be zero. A weight of zero gets an empty interval.
    """
    sums = list(accumulate(weights))
    return np.array(
        [(s << 32) // sums[-1] if isinstance(s, int) else s * (1 << 32) // sums[-1] for s in sums], np.uint64
    )


def choose(bits: U64, bounds: U64) -> npt.NDArray[np.int64]:
    """The interval that the upper 32 bits of each word fall into; int64[n], values 0..len(bounds)-1."""
    return np.searchsorted(bounds, bits >> np.uint64(32), side="right").astype(np.int64)


def below(bits: U64, n: int) -> npt.NDArray[np.int64]:
    """The upper 32 bits of each word scaled to 0..n-1, for n <= 2**32; int64[len(bits)]."""
    return (((bits >> np.uint64(32)) * np.uint64(n)) >> np.uint64(32)).astype(np.int64)
