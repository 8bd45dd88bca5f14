"""Every arm gives every packet the answer of a plain Python loop that knows nothing of the engine or of NumPy."""

import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dispatchlab as dl
from dispatchlab import _engine, oracle
from dispatchlab.arms import results
from dispatchlab.cases import COUNTS, awkward, matrix
from dispatchlab.handlers import HandlerSet, bodies, compute

PACKETS = 8192  # to each handler set of the matrix
ARMS = [arm.name for arm in dl.arms() if arm.answers == "list" and arm.family != "mechanism"]
MECHANISMS = [arm.name for arm in dl.arms() if arm.family == "mechanism"]
WORD = (1 << 64) - 1


# --- the oracle: what the documentation says, in plain Python ------------------------------------------------------


def multiplier(i, r):
    return ((0x9E3779B97F4A7C15 * (64 * i + r + 1) & WORD) ^ 0xD6E8FEB86659FD93) | 1


def can_hold(arm, hs):
    """What arms hold: every list, but mechanism arms only plain handlers, closed ones 128, guarded-N no fewer than N, switch the keys
    that it was compiled for."""
    if arm == "switch":
        plain = np.flatnonzero(hs.masks == 0)
        return hs.count <= 128 and bool((hs.keys[plain] == 257 + 7 * plain).all())
    least = int(arm[-1]) if arm.startswith("guarded") else 1
    most = 128 if arm in ("variant", "static", "computed-goto") else 512
    return arm not in MECHANISMS or (not hs.masks.any() and least <= hs.count <= most)


def chain(i, payload, rounds):
    h = multiplier(i, 63)
    for r in range(rounds):
        h = (h ^ payload[r % 24]) * multiplier(i, r) & WORD
        h ^= h >> 29
        h = (h << 17 | h >> 47) & WORD
    return (h ^ h >> 32) & 0xFFFFFFFF


def first_match(hs, key, first):
    """The brief's loop, literally: ask each handler of the list in turn."""
    for i in hs.order.tolist():
        if key == hs.keys[i] and first & int(hs.masks[i]) == hs.values[i]:
            return i
    return -1


def plain_answers(hs, packets, rounds):
    """The same for many packets: the list is sorted by key first, each key's handlers still in list order."""
    keys, masks, values = hs.keys.tolist(), hs.masks.tolist(), hs.values.tolist()
    mine = {}
    for i in hs.order.tolist():
        mine.setdefault(keys[i], []).append(i)
    found = []
    for key, _, _, payload in struct.iter_unpack("<HHI24s", packets.tobytes()):
        answer = 0
        for i in mine.get(key, ()):
            if payload[0] & masks[i] == values[i]:
                answer = chain(i, payload, rounds)
                break
        found.append(answer)
    return found


# --- the matrix ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", COUNTS)
def test_every_arm_answers_as_the_plain_loop(count):
    rounds = {size: n for body, size, n in bodies() if body == "chain"}
    for case in matrix((count,), PACKETS):
        packets = case.traffic.packets if case.handlers.size == "tiny" else case.traffic.packets[:512]
        wanted = np.array(plain_answers(case.handlers, packets, rounds[case.handlers.size]), np.uint32)
        for arm in (arm for arm in (*ARMS, *MECHANISMS) if can_hold(arm, case.handlers)):
            got = results(arm, case.handlers, dl.traffic.from_packets(packets))
            wrong = np.flatnonzero(got != wanted)
            assert not len(wrong), f"{arm}, {case.name}: packet {wrong[0]} of {len(wrong)} wrong ones"


def test_the_matrix_holds_what_it_promises():
    cases = list(matrix(COUNTS, 64))
    tiny = [case.handlers for case in cases if case.handlers.size == "tiny"]
    assert len(tiny) * PACKETS >= 1_000_000
    assert {hs.count for hs in tiny} == {1, 2, 10, 100, 512}
    assert {hs.residual for hs in tiny} >= {0, 0.1, 1}
    assert {hs.order_name for hs in tiny} >= {"registration", "reverse", "shuffled", "frequency"}
    large = [hs for hs in tiny if hs.count >= 100]
    collide = [len(set((hs.keys % 8192).tolist())) < len(set(hs.keys.tolist())) for hs in large]
    assert sum(collide) >= 8
    assert sum(bool(hs.overlapping) for hs in large) >= 10
    for case in cases:
        found = case.handlers.select(case.traffic.packets)
        assert (found >= 0).any() and (found < 0).any(), case.name


def test_the_sorted_oracle_is_the_literal_loop():
    for case in matrix((2, 10, 100), 100):
        hs, packets = case.handlers, case.traffic.packets
        rounds = {size: n for body, size, n in bodies() if body == hs.body}[hs.size]
        literal = [
            0 if i < 0 else chain(i, p["payload"].tolist(), rounds)
            for p in packets
            for i in [first_match(hs, int(p["key"]), int(p["payload"][0]))]
        ]
        assert literal == plain_answers(hs, packets, rounds)
        assert literal == oracle.answers(hs, packets).tolist()
        assert hs.select(packets).tolist() == [first_match(hs, int(p["key"]), int(p["payload"][0])) for p in packets]


# --- orders --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("residual", [0, 0.1, 1])
def test_no_order_changes_an_answer_where_predicates_do_not_overlap(residual):
    hs = dl.handlers(100, size="tiny", residual=residual)
    tr = awkward(hs, 4096, 5)
    wanted = results("scan", hs, tr)
    frequency = hs.frequency(tr.packets)
    for order in ("reverse", "shuffled", "frequency", list(range(50, 100)) + list(range(50))):
        again = dl.handlers(100, size="tiny", residual=residual, order=order, frequency=frequency)
        for arm in ARMS:
            assert np.array_equal(results(arm, again, tr), wanted), (arm, order)


@pytest.mark.parametrize("arm", ARMS)
def test_order_is_behaviour_where_predicates_overlap(arm):
    forward, reverse = (dl.handlers(100, size="tiny", overlap=True, order=o) for o in ("registration", "reverse"))
    tr = awkward(forward, 4096, 5)
    for hs in (forward, reverse):
        assert results(arm, hs, tr).tolist() == plain_answers(hs, tr.packets, 2)
    assert not np.array_equal(results(arm, forward, tr), results(arm, reverse, tr))


# --- by hand -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("body", "size"), [(body, size) for body, size, _ in bodies()])
def test_every_handler_computes_its_documented_formula(body, size):
    most = 512
    hs = dl.handlers(most, body=body, size=size, residual=0)
    packets = np.zeros(most, dl.traffic.PACKET)
    packets["key"] = hs.keys
    packets["payload"] = np.random.default_rng(1).integers(0, 256, (most, 24))
    got = results("table-direct16", hs, dl.traffic.from_packets(packets)).tolist()
    assert got == [compute(hs, i, packets["payload"][i].tobytes()) for i in range(most)]


def test_the_formula_of_chain_by_hand():
    """Handler 0, two rounds, payload 1, 2, 0 ...: every step written out."""
    h = 0xD6E8FEB86659FD93 ^ (0x9E3779B97F4A7C15 * 64 & WORD) | 1
    for byte, step in ((1, 1), (2, 2)):
        m = 0xD6E8FEB86659FD93 ^ (0x9E3779B97F4A7C15 * step & WORD) | 1
        h = (h ^ byte) * m & WORD
        h ^= h >> 29
        h = (h << 17 | h >> 47) & WORD
    hs = dl.handlers(1, size="tiny")
    payload = bytes([1, 2]) + bytes(22)
    packet = np.array([(257, 64, 0, list(payload))], dl.traffic.PACKET)
    assert results("scan", hs, dl.traffic.from_packets(packet)).tolist() == [(h ^ h >> 32) & 0xFFFFFFFF]
    assert compute(hs, 0, payload) == chain(0, payload, 2) == (h ^ h >> 32) & 0xFFFFFFFF


@pytest.mark.parametrize(("body", "size"), [(body, size) for body, size, _ in bodies()])
def test_bodies_are_distinct_in_what_they_answer(body, size):
    hs = dl.handlers(100, body=body, size=size, residual=0)
    packets = np.zeros((4, 100), dl.traffic.PACKET)
    packets["key"] = hs.keys
    packets["payload"] = np.random.default_rng(2).integers(0, 256, (4, 1, 24))
    got = results("scan", hs, dl.traffic.from_packets(packets.ravel())).reshape(4, 100)
    assert len({tuple(column) for column in got.T.tolist()}) == 100


def test_controls_do_what_they_say():
    hs = dl.handlers(100, order="shuffled")
    tr = dl.traffic.uniform(hs, pool=1024)
    payloads = tr.packets["payload"].tolist()
    assert results("direct-call", hs, tr).tolist() == [chain(0, payload, 48) for payload in payloads]
    for arm in ("null", "null-serial"):
        assert results(arm, hs, tr).tolist() == tr.packets["key"].tolist()


@pytest.mark.parametrize("residual", [0, 0.1])
def test_unmatched_packets_get_zero(residual):
    hs = dl.handlers(10, size="tiny", residual=residual)
    packets = awkward(hs, 4096, 1).packets
    strangers = packets[hs.select(packets) < 0]
    assert len(strangers) > 500
    for arm in (arm for arm in (*ARMS, *MECHANISMS) if can_hold(arm, hs)):
        assert not results(arm, hs, dl.traffic.from_packets(strangers)).any(), arm


# --- the checksum --------------------------------------------------------------------------------------------------


def plain_checksum(answers):
    total, weight = 0, 0x9E3779B97F4A7C15
    for answer in answers:
        total = total + answer * weight & WORD
        weight = weight + 0xBF58476D1CE4E5BA & WORD
    mixed = total ^ (weight * 0x9E3779B97F4A7C15 & WORD)
    return mixed ^ mixed >> 32


@pytest.mark.parametrize("arm", (*ARMS, *MECHANISMS))
def test_every_loop_feeds_the_documented_checksum(arm):
    hs = dl.handlers(100, residual=0 if arm in MECHANISMS else 0.1)
    tr = dl.traffic.uniform(hs, pool=2048)
    slot = _engine.slot(arm, hs.engine, tr.packets, hs.frequency(tr.packets))
    wanted = plain_checksum(plain_answers(hs, tr.packets, 48))
    assert [slot.run(placement) for placement in range(4)] == [wanted] * 4
    assert slot.count()[0] == wanted
    assert slot.sample(7, 3)[0] == wanted


def test_the_numpy_checksum_is_the_plain_one():
    answers = np.random.default_rng(3).integers(0, 1 << 32, 1000, dtype=np.uint32)
    assert oracle.checksum(answers) == plain_checksum(answers.tolist())


@given(
    st.lists(st.integers(0, 2**32 - 1), min_size=2, max_size=40),
    st.data(),
)
def test_the_checksum_sees_a_swap_an_omission_and_an_alteration(answers, data):
    i = data.draw(st.integers(0, len(answers) - 1))
    j = data.draw(st.integers(0, len(answers) - 1))
    before = plain_checksum(answers)
    altered = [*answers]
    altered[i] ^= 1 << data.draw(st.integers(0, 31))
    assert plain_checksum(altered) != before
    assert plain_checksum(answers[:i] + answers[i + 1 :]) != before
    if answers[i] != answers[j]:
        swapped = [*answers]
        swapped[i], swapped[j] = swapped[j], swapped[i]
        assert plain_checksum(swapped) != before


# --- any small set -------------------------------------------------------------------------------------------------

KEYS = st.sampled_from([0, 1, 5, 5 + 1024, 5 + 2048, 5 + 8192, 5 + 16384, 8191, 16383, 65535])
PREDICATES = st.tuples(KEYS, st.sampled_from([0, 1, 2, 3, 0x80, 0xFF]), st.integers(0, 255))  # key, mask, value


def any_set(predicates, order):
    keys, masks, values = (np.array(column) for column in zip(*predicates, strict=True))
    return HandlerSet(
        count=len(predicates), body="chain", size="tiny", residual=0.0, overlap=True, order_name="permutation",
        placement="packed", seed=0, keys=keys.astype(np.uint16), masks=masks.astype(np.uint8),
        values=values.astype(np.uint8), order=np.array(order, np.int32),
    )  # fmt: skip


@settings(max_examples=100)
@given(st.lists(PREDICATES, min_size=1, max_size=24), st.randoms(use_true_random=False))
def test_any_keys_masks_and_values_in_any_order(predicates, random):
    """Predicates that overlap or hide one another: the first match still decides, in every arm."""
    order = list(range(len(predicates)))
    random.shuffle(order)
    hs = any_set([(key, mask, value & mask) for key, mask, value in predicates], order)
    tr = awkward(hs, 256, len(predicates))
    wanted = plain_answers(hs, tr.packets, 2)
    assert oracle.answers(hs, tr.packets).tolist() == wanted
    for arm in (arm for arm in ARMS if can_hold(arm, hs)):
        assert results(arm, hs, tr).tolist() == wanted, arm
        counted = dl.count_probes(arm, hs, tr)
        assert np.array_equal(counted, dl.expected_probes(arm, hs, tr)), arm


def test_a_predicate_that_can_never_accept_is_refused():
    with pytest.raises(dl.UsageError, match="handler 1: can never accept a packet: expected no bit outside mask 2; got value"):
        any_set([(5, 0, 0), (5, 2, 3)], [0, 1])
    with pytest.raises(ValueError, match="no value have a bit that its mask has not"):
        _engine.handler_set(
            "chain", "tiny", True, np.zeros(1, np.uint16), np.zeros(1, np.uint8), np.ones(1, np.uint8), np.zeros(1, np.int32)
        )
