"""Mechanism arms: one selection, one checksum, state where it belongs, and one line for what they cannot hold."""

import numpy as np
import pytest

import dispatchlab as dl
from dispatchlab import oracle
from dispatchlab.arms import CLOSED, MECHANISMS, prepare, results
from dispatchlab.cases import awkward
from dispatchlab.handlers import bodies, lane_constant, lane_seed

NAMED = [(body, size) for body, size, _ in bodies() if size in ("tiny", "fat")]
EVERYWHERE = ("virtual", "erasure", "erasure-inline", "batch-1", "batch-8", "batch-64", "batch-256")


def test_the_arms_that_the_mechanism_is_compared_by():
    assert set(MECHANISMS) == {*EVERYWHERE, *CLOSED, "guarded-1", "guarded-2", "guarded-4"} - {"switch"}  # which selects, too


@pytest.mark.parametrize(("body", "size"), NAMED)
def test_all_mechanisms_give_one_checksum(body, size):
    hs = dl.handlers(100, body=body, size=size, residual=0, order="shuffled")
    tr = dl.traffic.zipf(hs, pool=2048)
    wanted = oracle.checksum(oracle.answers(hs, tr.packets))
    for arm in MECHANISMS:
        slot = prepare(arm, hs, tr)
        assert [slot.run(placement) for placement in range(4)] == [wanted] * 4, arm


@pytest.mark.parametrize(("body", "size"), [(body, size) for body, size, _ in bodies()])
def test_open_mechanisms_hold_every_body_and_512_handlers(body, size):
    hs = dl.handlers(512, body=body, size=size, residual=0)
    tr = awkward(hs, 1024, 2)
    wanted = oracle.answers(hs, tr.packets)
    for arm in EVERYWHERE:
        assert np.array_equal(results(arm, hs, tr), wanted), arm


@pytest.mark.parametrize("arm", MECHANISMS)
def test_two_plain_handlers_of_one_key_are_decided_by_the_list(arm):
    hs = dl.handlers(8, size="tiny", residual=0, keys=[5, 6, 5, 7, 6, 8, 9, 10], order=[2, 1, 0, 4, 3, 5, 6, 7])
    tr = awkward(hs, 512, 1)
    assert np.array_equal(results(arm, hs, tr), oracle.answers(hs, tr.packets))
    assert set(hs.select(tr.packets).tolist()) == {-1, 1, 2, 3, 5, 6, 7}


def test_keys_that_agree_in_their_low_bits_all_have_a_slot():
    hs = dl.handlers(64, size="tiny", residual=0, keys=np.arange(64) * 1024 + 3)
    tr = awkward(hs, 2048, 1)
    for arm in MECHANISMS:
        assert np.array_equal(results(arm, hs, tr), oracle.answers(hs, tr.packets)), arm
    assert prepare("virtual", hs, tr).footprint == 16 * 65536


# --- state ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("objects", ["packed", "scattered"])
@pytest.mark.parametrize("state", [0, 8, 64, 4096])
@pytest.mark.parametrize("arm", (*MECHANISMS, "scan", "table-compact", "direct-call"))
def test_each_handler_changes_its_own_state_and_no_other(arm, state, objects):
    hs = dl.handlers(20, body="tally", size="tiny", residual=0, state=state, objects=objects)
    tr = awkward(hs, 512, 3)
    before, answers = hs.tallies(), results(arm, hs, tr)
    wanted = np.zeros(20, np.uint64)
    for owner, answer in zip(hs.select(tr.packets), answers, strict=True):
        if arm == "direct-call":
            wanted[0] += np.uint64(answer)
        elif owner >= 0:
            wanted[owner] += np.uint64(answer)
    assert np.array_equal(hs.tallies() - before, wanted)


def test_results_with_state_are_those_without():
    for arm in MECHANISMS:
        sets = [dl.handlers(20, body="tally", size="tiny", residual=0, state=n, objects=o)
                for n in (0, 4096) for o in ("packed", "scattered")]  # fmt: skip
        found = [results(arm, hs, awkward(hs, 512, 4)).tolist() for hs in sets]
        assert found == [found[0]] * 4, arm


def test_scattered_objects_are_really_elsewhere():
    """The same handlers take 4 KiB and more each, where packed ones share pages."""
    packed, scattered = (dl.handlers(512, body="tally", size="tiny", residual=0, objects=o) for o in ("packed", "scattered"))
    assert not packed.tallies().any() and not scattered.tallies().any()
    assert (packed.objects, scattered.objects) == ("packed", "scattered")


# --- bodies --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("body", "lanes", "by", "rounds"), [("wide", 8, 13, 2), ("branchy", 4, 11, 6)])
def test_the_formula_of_lanes_by_hand(body, lanes, by, rounds):
    """Handler 3, payload 7, 8, 9, ...: every accumulator written out, with the constants from their definition."""
    m = [((0x9E3779B97F4A7C15 * (64 * 3 + r + 1)) % 2**64 ^ 0xD6E8FEB86659FD93) | 1 for r in range(64)]
    a = [(m[63] >> 4 * k) & 0x7FFFFFFF for k in range(lanes)]
    for r in range(rounds):
        x = (a[r % lanes] ^ ((m[r] >> 8) & 0x7FFFFFFF)) + 7 + r
        a[r % lanes] = (x << by | x >> (64 - by)) % 2**64
    h = sum((2 * k + 1) * x for k, x in enumerate(a)) % 2**64
    hs = dl.handlers(4, body=body, size="tiny", residual=0)
    packet = np.array([(hs.keys[3], 64, 0, list(range(7, 31)))], dl.traffic.PACKET)
    assert results("scan", hs, dl.traffic.from_packets(packet)).tolist() == [(h ^ h >> 32) & 0xFFFFFFFF]
    assert (lane_constant(3, 1), lane_seed(3, 0)) == ((m[1] >> 8) & 0x7FFFFFFF, m[63] & 0x7FFFFFFF)


# --- what cannot be held -------------------------------------------------------------------------------------------


def refusal(arm, **settings):
    hs = dl.handlers(**{"count": 100, "residual": 0, **settings})
    with pytest.raises(dl.UsageError) as caught:
        prepare(arm, hs, awkward(hs, 64, 1))
    text = str(caught.value)
    assert text.startswith(f"{arm}: cannot hold these handlers: got ") and "\n" not in text
    return text


@pytest.mark.parametrize("arm", MECHANISMS)
def test_residual_predicates_are_refused(arm):
    assert "cannot honour residual predicates: use residual=0" in refusal(arm, residual=0.1)


@pytest.mark.parametrize("n", [2, 4])
def test_more_guards_than_handlers_are_refused(n):
    assert f"compares with {n} handlers, and there are fewer" in refusal(f"guarded-{n}", count=n - 1)


@pytest.mark.parametrize("arm", CLOSED)
def test_a_closed_set_says_that_it_is_closed(arm):
    description = next(a.description for a in dl.arms() if a.name == arm)
    assert "a closed set cannot admit a plugin" in description
    assert "closed: it was built over the first 128" in refusal(arm, count=129)


@pytest.mark.parametrize("arm", [arm for arm in MECHANISMS if arm not in EVERYWHERE])
def test_sizes_that_were_not_built_are_refused(arm):
    assert "built for the tiny and fat bodies only" in refusal(arm, size="half")
    with pytest.raises(dl.UsageError, match="unknown size of body tally 'fat'"):
        dl.handlers(10, body="tally", size="fat")


@pytest.mark.parametrize("state", [-8, 1, 63, 65, 131072, True, 8.0])
def test_a_state_of_no_use_is_refused(state):
    with pytest.raises(dl.UsageError, match=r"state cannot be used: expected 0 or a power of two in 8\.\.65536"):
        dl.handlers(10, body="tally", size="tiny", state=state)
    with pytest.raises(dl.UsageError, match="body chain keeps no state"):
        dl.handlers(10, state=64)
    with pytest.raises(dl.UsageError, match="unknown objects 'far'"):
        dl.handlers(10, objects="far")
