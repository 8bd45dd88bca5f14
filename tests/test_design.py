"""Promises of the order of slots: balanced, seeded, the same forever, and blind to a drifting clock."""

import numpy as np
import pytest
from numpy.typing import NDArray

from dispatchlab.design import placements, schedule, stream, williams, windows
from dispatchlab.errors import UsageError

Table = NDArray[np.int64]


def positions(order: NDArray[np.int16]) -> Table:
    """How often each slot (row) stands at each position (column)."""
    slots = order.shape[1]
    return np.array([(order == slot).sum(axis=0) for slot in range(slots)])


def predecessors(order: NDArray[np.int16]) -> Table:
    """How often each slot (column) directly follows each other (row) within a round."""
    slots = order.shape[1]
    table = np.zeros((slots, slots), int)
    np.add.at(table, (order[:, :-1].ravel(), order[:, 1:].ravel()), 1)
    return table


def balanced(order: NDArray[np.int16]) -> bool:
    follows = predecessors(order)[~np.eye(order.shape[1], dtype=bool)]
    return len(np.unique(positions(order))) == 1 and len(np.unique(follows)) <= 1


@pytest.mark.parametrize("slots", range(1, 25))
def test_every_slot_stands_equally_often_everywhere_and_after_every_other(slots: int) -> None:
    assert len(williams(slots)) == (slots if slots % 2 == 0 or slots == 1 else 2 * slots)
    assert balanced(williams(slots))
    for cycles in (1, 3):
        order = schedule(slots, cycles * len(williams(slots)), seed=slots)
        assert balanced(order)
        assert not np.diag(predecessors(order)).any(), "a slot follows itself"


@pytest.mark.parametrize("slots", [3, 8, 15])
def test_a_cut_cycle_is_off_balance_by_one_cycle_at_most(slots: int) -> None:
    counts = positions(schedule(slots, 5 * len(williams(slots)) + 3, seed=1))
    assert counts.max() - counts.min() <= 2


def test_the_check_of_balance_can_fail() -> None:
    shifts = (np.arange(6)[:, None] + np.arange(6)) % 6  # a cyclic square: positions equal, predecessors not
    assert len(np.unique(positions(shifts))) == 1
    assert not balanced(shifts.astype(np.int16))


def drift_error(order: NDArray[np.int16]) -> float:
    """The largest error of any slot's mean log-ratio to slot 0 when all are equal and the clock drifts by 20
    %."""
    rounds, slots = order.shape
    speed = np.linspace(1.0, 1.2, rounds * slots).reshape(rounds, slots)
    ticks = np.empty_like(speed)
    np.put_along_axis(ticks, order.astype(np.intp), speed, axis=1)
    ratios = np.exp(np.log(ticks / ticks[:, :1]).mean(axis=0))
    return float(np.abs(ratios - 1).max())


@pytest.mark.parametrize("slots", range(2, 25))
def test_a_drift_of_a_fifth_moves_no_ratio_by_a_thousandth(slots: int) -> None:
    assert drift_error(schedule(slots, 300, seed=7)) < 1e-3


def test_a_fixed_order_would_fail_the_drift_test() -> None:
    assert drift_error(np.tile(np.arange(24, dtype=np.int16), (100, 1))) > 1e-3


def test_the_same_seed_gives_the_same_schedule_forever() -> None:
    assert stream(1234567, 3).tolist() == [6457827717110365317, 3203168211198807973, 9817491932198370423]
    assert schedule(3, 7, 1).tolist() == [
        [1, 0, 2], [1, 2, 0], [0, 1, 2], [0, 2, 1], [2, 0, 1], [2, 1, 0], [1, 2, 0],
    ]  # fmt: skip
    assert placements(12, 5).tolist() == [0, 1, 3, 2, 1, 0, 3, 2, 3, 2, 1, 0]


def test_seeds_differ_and_a_longer_run_continues_a_shorter_one() -> None:
    assert not np.array_equal(schedule(6, 60, 1), schedule(6, 60, 2))
    assert np.array_equal(schedule(6, 100, 1)[:37], schedule(6, 37, 1))
    assert np.array_equal(placements(100, 1)[:37], placements(37, 1))
    assert schedule(5, 9, -1).shape == (9, 5)


def test_placements_are_equally_frequent_over_any_stretch() -> None:
    rotation = placements(4000, seed=3)
    for start in range(0, 4000, 401):
        counts = np.bincount(rotation[start : start + 40], minlength=4)
        assert counts.max() - counts.min() <= 2
    assert set(np.bincount(rotation)) == {1000}


def association(rows: NDArray[np.int16], rotation: NDArray[np.int8]) -> float:
    """Chi-square over its degrees of freedom of the slot at the first position against the placement. Between
    two independent rotations it is about 1 to 4/3 (each cycle is a permutation, not a free draw)."""
    first, slots = rows[:, 0], rows.shape[1]
    table, expected = np.zeros((slots, 4)), len(first) / slots / 4
    np.add.at(table, (first, rotation), 1)
    return float(((table - expected) ** 2).sum() / expected / (3 * (slots - 1)))


@pytest.mark.parametrize("slots", [2, 4, 8, 16])
def test_placements_do_not_follow_the_rows_of_the_design(slots: int) -> None:
    """Also where rows and placements share a period, and with the same seed for both."""
    seen = [association(schedule(slots, 1600, seed), placements(1600, seed)) for seed in range(30)]
    assert np.mean(seen) < 1.8
    plain = np.arange(1600)
    in_step = association(williams(slots)[plain % slots], (plain % 4).astype(np.int8))
    assert in_step > 30, "a plain rotation of both is what this must catch"


@pytest.mark.parametrize("call", [
    lambda: williams(0), lambda: williams(5000), lambda: schedule(3, 0, 1), lambda: placements(0, 1),
    lambda: placements(5, 1, count=0), lambda: placements(5, 1, count=200),
])  # fmt: skip
def test_sizes_that_make_no_sense_are_refused(call: object) -> None:
    with pytest.raises(UsageError, match="expected"):
        call()  # type: ignore[operator]


def test_windows_cover_the_pool_evenly_and_keep_no_distance() -> None:
    drawn = windows(640, 3)
    assert drawn.dtype == np.int32
    for pool in (1, 4, 16, 64):
        times = np.bincount(drawn % pool, minlength=pool)
        assert times.min() == times.max() == 640 // pool
    steps = np.bincount(np.diff(drawn % 16) % 16, minlength=16)
    assert steps.max() < 2 * steps.mean() + 20, "no step between windows is the rule"
    assert not np.array_equal(drawn, windows(640, 4)) and np.array_equal(drawn[:100], windows(100, 3))
    with pytest.raises(UsageError):
        windows(0, 1)
