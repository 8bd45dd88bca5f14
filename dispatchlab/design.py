"""The order of slots in every round: seeded, balanced Williams designs, and the rotation over code
placements.

A Williams design is a Latin square (two of them when the number of slots is odd) in which every slot stands
equally often in every position and directly follows every other slot equally often. What the position in the
round or the slot before it costs then falls on every slot alike, and cancels in a paired ratio; so does a
drift of the clock. Source: E. J. Williams, "Experimental designs balanced for the estimation of residual
effects of treatments", Australian Journal of Scientific Research A 2 (1949) 149-168.

Random numbers come from SplitMix64 (Steele, Lea and Flood, OOPSLA 2014) written out here, because NumPy
promises only the raw streams of its generators, not the permutations drawn from them: one seed gives one
schedule forever.
"""

import numpy as np
from numpy.typing import NDArray

from dispatchlab.errors import UsageError, explain

MOST_SLOTS = 4096
_GAMMA = 0x9E3779B97F4A7C15
_WORD = (1 << 64) - 1
_WINDOW_STREAM = 0x77696E646F7773  # and windows from both
_PLACEMENT_STREAM = 0x706C6163656D656E  # keeps placements apart from a schedule drawn with the same seed


def stream(seed: int, count: int, start: int = 0) -> NDArray[np.uint64]:
    """Numbers start .. start+count-1 of the SplitMix64 stream of a seed (any int, taken modulo 2**64):
    uint64[count]."""
    index = np.arange(start + 1, start + count + 1, dtype=np.uint64)
    z = np.uint64(seed & _WORD) + index * np.uint64(_GAMMA)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def permutation(seed: int, size: int) -> NDArray[np.intp]:
    """A permutation drawn from a seed: intp[size]. Sorting 64-bit keys is uniform but for ties, which are
    rarer than size**2 / 2**65."""
    return np.argsort(stream(seed, size), kind="stable")


def williams(slots: int) -> NDArray[np.int16]:
    """The design itself, unshuffled: int16[rows, slots], rows = slots when that is even (or one), else 2 *
    slots.

    Entry [r, p] is the slot that runs at position p of row r. Each slot is at each position rows/slots times
    and follows each other slot rows/slots times. Raises UsageError unless 1 <= slots <= 4096.
    """
    if not 1 <= slots <= MOST_SLOTS:
        raise UsageError(explain("no such design", expected=f"1 to {MOST_SLOTS} slots", got=str(slots)))
    position = np.arange(slots)
    zigzag = np.where(position % 2 == 1, (position + 1) // 2, -(position // 2))  # 0 1 -1 2 -2 ...
    square = (zigzag[np.newaxis, :] + np.arange(slots)[:, np.newaxis]) % slots
    if slots % 2 == 1 and slots > 1:
        square = np.concatenate([square, square[:, ::-1]])
    return square.astype(np.int16)


def schedule(slots: int, rounds: int, seed: int) -> NDArray[np.int16]:
    """Which slot runs at each position of every round: int16[rounds, slots].

    The rows of the Williams design are used up once per cycle, in an order drawn anew for each cycle; slot
    labels are drawn once. After every whole cycle positions and predecessors are exactly balanced; a last
    cycle that is cut short leaves at most one row's difference. Raises UsageError for rounds < 1 or a number
    of slots out of range.
    """
    _need_rounds(rounds)
    design = permutation(seed, slots).astype(np.int16)[williams(slots)]
    rows = len(design)
    cycles = -(-rounds // rows)
    keys = stream(seed, cycles * rows, slots).reshape(cycles, rows)
    return design[np.argsort(keys, axis=1, kind="stable").reshape(-1)[:rounds]]


def placements(rounds: int, seed: int, count: int = 4) -> NDArray[np.int8]:
    """Which code placement every slot uses in each round: int8[rounds], values 0 .. count-1.

    Each consecutive group of count rounds holds every placement once, in an order drawn anew: balanced over
    any stretch of the run, and independent of the row of the design that the round happens to use. Raises
    UsageError for rounds < 1 or a count outside 1..127.
    """
    _need_rounds(rounds)
    if not 1 <= count <= 127:
        raise UsageError(explain("no such rotation", expected="1 to 127 placements", got=str(count)))
    groups = -(-rounds // count)
    keys = stream(seed ^ _PLACEMENT_STREAM, groups * count).reshape(groups, count)
    return np.argsort(keys, axis=1, kind="stable").reshape(-1)[:rounds].astype(np.int8)


def windows(rounds: int, seed: int) -> NDArray[np.int32]:
    """Which block of their packets the slots run in each round: int32[rounds], taken modulo the blocks that a pool holds.

    Every 64 rounds hold the numbers 0 .. 63 once, in an order drawn anew: balanced over the pool, and no slot meets packets
    at a fixed distance from where another met them. Raises UsageError for rounds < 1.
    """
    _need_rounds(rounds)
    groups = -(-rounds // 64)
    keys = stream(seed ^ _WINDOW_STREAM, groups * 64).reshape(groups, 64)
    return np.argsort(keys, axis=1, kind="stable").reshape(-1)[:rounds].astype(np.int32)


def _need_rounds(rounds: int) -> None:
    if rounds < 1:
        raise UsageError(explain("nothing to schedule", expected="1 round or more", got=str(rounds)))
