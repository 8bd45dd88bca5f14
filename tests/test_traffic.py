"""Generated traffic: frozen bits, the promised distribution, one clear line for what cannot be done."""

import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dispatchlab import handlers, traffic
from dispatchlab.errors import Error, TrafficError, UsageError
from dispatchlab.traffic import streams
from dispatchlab.traffic.generate import zipf_weights
from dispatchlab.traffic.packets import strays, together

DATA = Path(__file__).parent.parent / "data" / "traffic"


@pytest.fixture(scope="module")
def hs():
    return handlers(100)


def probes(hs, packets):
    """Mean number of predicates a scan asks: the place of the first match, or all of them."""
    place = np.empty(hs.count, np.int64)
    place[hs.order] = np.arange(hs.count) + 1
    ids = hs.select(packets)
    return np.where(ids < 0, hs.count, place[ids]).mean()


# --- frozen bits ----------------------------------------------------------------------------------


def splitmix64(state, n):
    """The generator as published, one step at a time."""
    mask = (1 << 64) - 1
    for _ in range(n):
        state = state + 0x9E3779B97F4A7C15 & mask
        z = state
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & mask
        z = (z ^ z >> 27) * 0x94D049BB133111EB & mask
        yield z ^ z >> 31


def test_the_stream_is_splitmix64():
    # First outputs for state 1234567, as in the reference implementation's published test vectors.
    assert list(splitmix64(1234567, 3)) == [6457827717110365317, 3203168211198807973, 9817491932198370423]
    start = int(streams.mix(streams.mix(np.array([5], np.uint64)) + np.uint64(streams.Lane.FLOW))[0])
    assert streams.draw(5, streams.Lane.FLOW, 100).tolist() == list(splitmix64(start, 100))


GOLDEN = {
    "uniform": "ad5d96d6f3de899660ef6417d280cebbf53c3fb4db73c64e316b8a92e458ddb7",
    "zipf": "96d2ab5948d90135c414bfced15ae1165fc58f04b00d9a69ff1c66575093dc27",
    "zipf:1.3": "b144a49df0c674940e9d5da43c3c0a75cc69105411ab56e94fd05cc469339bf4",
    "hot": "1c15696e60e055aeade1911c2cdd2e6818e72f7a31c484e81ec086dac9d557b8",
    "worst": "76986bdb68fcc2f0d34476be16b532a38b74e71904a15d77e22ec72db1b6017b",
}


@pytest.mark.parametrize("name", GOLDEN)
def test_the_same_seed_gives_the_same_bytes_for_ever(hs, name):
    assert traffic.make(name, hs, pool=4096, seed=7).digest == GOLDEN[name]


def test_seeds_and_lanes_are_independent(hs):
    digests = {traffic.uniform(hs, seed=s, pool=64).digest for s in (*range(50), 2**64 - 1)}
    assert len(digests) == 51
    words = np.concatenate([streams.draw(s, lane, 64) for s in range(20) for lane in streams.Lane])
    assert len(np.unique(words)) == len(words)


@given(st.lists(st.one_of(st.integers(0, 10**9), st.fractions(0, 1)), min_size=1, max_size=40).filter(any))
def test_intervals_are_as_wide_as_their_weights_to_one_part_in_2_to_the_32(weights):
    ends = [0, *streams.boundaries(weights).tolist()]
    assert ends[-1] == 1 << 32
    for weight, low, high in zip(weights, ends, ends[1:], strict=False):
        assert abs(Fraction(weight) * (1 << 32) / sum(weights) - (high - low)) <= 1
        assert weight or low == high


def test_an_interval_holds_its_lower_end_and_not_its_upper():
    ends = streams.boundaries([0, 1, 1, 0])
    bits = np.array([0, (1 << 63) - 1, 1 << 63, (1 << 64) - 1], np.uint64)
    assert streams.choose(bits, ends).tolist() == [1, 1, 2, 2]


@given(st.integers(0, 2**64 - 1), st.integers(1, 512))
def test_a_permutation_holds_each_number_once(seed, n):
    assert sorted(streams.permutation(seed, n).tolist()) == list(range(n))


@pytest.mark.parametrize("s", [0, 0.5, 1.1, 2, 30, 1e6])
def test_zipf_weights_are_powers(s):
    got = zipf_weights(512, Fraction(str(s)))
    assert got[0] == 1 << 64
    for k in (2, 3, 100, 512):
        assert got[k - 1] == pytest.approx(2.0**64 * k**-s if s < 100 else 0, rel=1e-12, abs=1)


# --- what arrives ---------------------------------------------------------------------------------


def test_uniform_asks_as_many_predicates_as_enumeration_says(hs):
    assert probes(hs, traffic.uniform(hs, pool=1 << 18).packets) == pytest.approx(52.2, abs=0.35)


def test_the_share_of_unmatched_keys_is_as_asked_and_from_the_published_range(hs):
    for share in (0, 0.02, 0.5):
        t = traffic.uniform(hs, unmatched=share, pool=1 << 16)
        stray = t.packets["key"][~np.isin(t.packets["key"], hs.keys)]
        assert len(stray) / len(t) == pytest.approx(share, abs=0.01)
        assert t.unkeyed == len(stray)
        assert not len(stray) or set(stray.tolist()) <= set(range(4096, 4352))
        assert sum(t.counts.values()) + t.unkeyed == len(t)


def test_unmatched_keys_avoid_registered_ones():
    hs = handlers(512, keys=range(4090, 4602))
    t = traffic.uniform(hs, unmatched=0.5, pool=1 << 14)
    assert len(strays(hs)) == 256
    assert not np.isin(strays(hs), hs.keys).any()
    registered = np.isin(t.packets["key"], hs.keys).mean()
    assert registered == pytest.approx(0.5, abs=0.02)


def test_zipf_follows_its_law_and_its_shuffle(hs):
    t = traffic.zipf(hs, 1.1, unmatched=0, pool=1 << 18)
    got = np.array(sorted(t.counts.values()))[::-1]
    law = np.arange(1, 101.0) ** -1.1
    assert got[0] / len(t) == pytest.approx(law[0] / law.sum(), abs=0.005)
    assert probes(hs, t.packets) > 30
    rigged = traffic.zipf(hs, 1.1, shuffle=False, unmatched=0, pool=1 << 18)
    hits = np.bincount(hs.select(rigged.packets) + 1, minlength=101)[1:] / len(rigged)
    plain = hs.masks == 0
    assert hits[plain] == pytest.approx((law / law.sum())[plain], abs=0.003)
    assert probes(hs, rigged.packets) < 20


def test_without_shuffle_weights_follow_the_list_not_the_ids():
    backwards = handlers(20, order=list(range(20))[::-1])
    t = traffic.hot(backwards, share=1, keys=1, shuffle=False, unmatched=0, pool=256)
    assert set(backwards.select(t.packets).tolist()) == {19}


def test_with_shuffle_packets_do_not_depend_on_the_order_of_the_list():
    forwards, backwards = handlers(20), handlers(20, order=list(range(20))[::-1])
    assert traffic.zipf(forwards).digest == traffic.zipf(backwards).digest


def test_hot_gives_the_share_to_the_hot_keys(hs):
    t = traffic.hot(hs, 0.95, 2, seed=3, unmatched=0, pool=1 << 17)
    top = sorted(t.counts.values())[-2:]
    assert sum(top) / len(t) == pytest.approx(0.95, abs=0.01)
    assert top[0] == pytest.approx(top[1], rel=0.05)


@pytest.mark.parametrize("count", [1, 2, 8, 98, 100, 512])
def test_worst_sends_every_matched_packet_to_the_last_of_the_list(count):
    hs = handlers(count)
    t = traffic.worst(hs, pool=4096)
    ids = hs.select(t.packets)
    assert set(ids.tolist()) == {-1, count - 1}
    assert (ids < 0).sum() == t.unkeyed
    assert len(np.unique(t.packets["payload"][:, 0])) >= 4


@pytest.mark.parametrize("order", ["registration", "reverse", "shuffled"])
def test_worst_finds_the_payloads_that_overlapping_predicates_leave_to_the_last(order):
    hs = handlers(100, overlap=True, order=order)
    ids = hs.select(traffic.worst(hs, pool=1024).packets)
    assert set(ids.tolist()) == {-1, hs.order[-1]}


def test_a_packet_carries_everything_a_handler_may_look_at(hs):
    p = traffic.uniform(hs).packets
    assert p.dtype.itemsize == 32 and not p.flags.writeable and p.flags.c_contiguous
    assert p["length"].min() == 64 and p["length"].max() == 1500
    assert abs(p["payload"].mean() - 127.5) < 0.5
    flows = {}
    for key, flow in zip(p["key"].tolist(), p["flow"].tolist(), strict=True):
        assert flows.setdefault(flow, key) == key
    assert len(flows) > 5000


@settings(max_examples=30)
@given(st.integers(1, 512), st.sampled_from(traffic.NAMES), st.integers(0, 2**64 - 1))
def test_every_generator_serves_every_handler_count(count, name, seed):
    hs = handlers(count)
    parameters = ":0.9,1" if name == "hot" else ""
    t = traffic.make(name + parameters, hs, seed=seed, pool=300, shuffle=True)
    assert len(t) == 300 and t.seed == seed and (hs.select(t.packets) >= 0).any()
    assert json.loads(json.dumps(t.spec, allow_nan=False)) == t.spec
    assert (
        traffic.make(t.name, hs, **{k: t.spec[k] for k in ("seed", "pool", "unmatched")}).digest == t.digest
    )


# --- counts ---------------------------------------------------------------------------------------


def test_counts_are_drawn_as_often_as_they_say(hs):
    t = traffic.from_counts(hs, {"a": 700, "b": 200, "unkeyed": 100}, pool=1 << 16)
    ids = hs.select(t.packets)
    assert (ids == t.assigned["a"]).mean() == pytest.approx(0.7, abs=0.01)
    assert (ids == t.assigned["b"]).mean() == pytest.approx(0.2, abs=0.01)
    assert (ids == -1).mean() == pytest.approx(0.1, abs=0.01)
    assert t.counts == {"a": 700, "b": 200} and t.unkeyed == 100


def test_counts_may_be_shares_and_numpy_numbers(hs):
    tables = ({"a": 3, "b": 1}, {"a": np.int64(3), "b": np.float32(1)}, {"a": 0.75, "b": 0.25})
    made = [traffic.from_counts(hs, table) for table in tables]
    assert len({t.digest for t in made}) == 1
    assert [json.loads(json.dumps(t.spec))["counts"]["b"] for t in made] == [1, 1, 0.25]


def test_the_rarest_keys_beyond_the_handlers_become_unmatched():
    hs = handlers(3)
    t = traffic.from_counts(hs, {f"k{i}": 2**i for i in range(6)}, pool=1 << 16, shuffle=False)
    assert t.assigned == {"k5": 0, "k4": 1, "k3": 2}
    assert (hs.select(t.packets) == -1).mean() == pytest.approx(7 / 63, abs=0.01)


def test_each_key_reaches_its_own_handler_even_among_those_that_share_a_key(hs):
    t = traffic.from_counts(hs, {f"k{i}": 1 for i in range(100)}, pool=1 << 16)
    assert sorted(t.assigned.values()) == list(range(100))
    assert np.bincount(hs.select(t.packets), minlength=100).min() > 500


@pytest.mark.parametrize("path", sorted(DATA.glob("*.csv")), ids=lambda p: p.name)
def test_the_counts_files_that_ship_are_usable(hs, path):
    t = traffic.make(path, hs)
    assert t.name == path.name and sum(t.counts.values()) + t.unkeyed > 1700


def test_three_counts_files_ship():
    assert len(list(DATA.glob("*.csv"))) == 3


# --- packets of one's own -------------------------------------------------------------------------


def test_packets_of_ones_own_are_copied_whatever_their_layout(hs):
    base = traffic.uniform(hs, pool=100).packets
    for view in (base, base[::-1], base[::3], np.array(base)):
        t = traffic.from_packets(view, hs, name="mine")
        assert (t.packets == view).all() and t.packets.flags.c_contiguous and not t.packets.flags.writeable
        assert not np.shares_memory(t.packets, view)


@pytest.mark.parametrize(
    "packets",
    [
        np.zeros(4, "u1"),
        [1, 2],
        None,
        np.zeros(0, traffic.PACKET),
        np.zeros((2, 2), traffic.PACKET),
        np.zeros(4, traffic.PACKET.newbyteorder()),
        np.zeros(4, traffic.PACKET),  # key 0: nobody's
    ],
)
def test_packets_that_cannot_be_used_are_refused(hs, packets):
    with pytest.raises(TrafficError) as error:
        traffic.from_packets(packets, hs)
    assert "\n" not in str(error.value)


# --- bad input ------------------------------------------------------------------------------------

NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    "call",
    [
        lambda hs: traffic.uniform(hs, unmatched=NAN),
        lambda hs: traffic.uniform(hs, unmatched=-0.1),
        lambda hs: traffic.uniform(hs, unmatched=1),
        lambda hs: traffic.uniform(hs, pool=0),
        lambda hs: traffic.uniform(hs, pool=1.5),
        lambda hs: traffic.uniform(hs, pool=10**12),
        lambda hs: traffic.uniform(hs, seed=-1),
        lambda hs: traffic.uniform(hs, seed=2**64),
        lambda hs: traffic.uniform(hs, seed="x"),
        lambda hs: traffic.zipf(hs, NAN),
        lambda hs: traffic.zipf(hs, -1),
        lambda hs: traffic.zipf(hs, INF),
        lambda hs: traffic.zipf(hs, "steep"),
        lambda hs: traffic.hot(hs, NAN),
        lambda hs: traffic.hot(hs, 1.01),
        lambda hs: traffic.hot(hs, -0.5),
        lambda hs: traffic.hot(hs, 0.9, 0),
        lambda hs: traffic.hot(hs, 0.9, 101),
        lambda hs: traffic.hot(hs, 0.9, 1.5),
        lambda hs: traffic.from_counts(hs, {}),
        lambda hs: traffic.from_counts(hs, {"a": 0}),
        lambda hs: traffic.from_counts(hs, {"unkeyed": 5}),
        lambda hs: traffic.from_counts(hs, {"a": NAN}),
        lambda hs: traffic.from_counts(hs, {"a": INF}),
        lambda hs: traffic.from_counts(hs, {"a": -1}),
        lambda hs: traffic.from_counts(hs, {"a": "many"}),
        lambda hs: traffic.from_counts(hs, {"a": 1, "unkeyed": NAN}),
        lambda hs: traffic.from_counts(hs, "missing.csv"),
        lambda hs: traffic.make("missing.pcap", hs),
        lambda hs: traffic.make("zipf:x", hs),
        lambda hs: traffic.make("zipf:1,2", hs),
        lambda hs: traffic.make("uniform:1", hs),
        lambda hs: traffic.make("hot:0.9,1.5", hs),
        lambda hs: traffic.make("uniform", hs, sede=1),
        lambda hs: traffic.make("", hs),
        lambda hs: traffic.make(".", hs),
        lambda hs: traffic.make("x" * 5000, hs),
        lambda hs: traffic.make("a\0b.pcap", hs),
        lambda hs: traffic.make("a\0b.csv", hs),
    ],
)
def test_bad_input_is_one_clear_line(hs, call):
    with pytest.raises(Error) as error:
        call(hs)
    assert str(error.value) and "\n" not in str(error.value)


def test_an_unknown_name_offers_the_nearest(hs):
    with pytest.raises(UsageError, match=r"unknown traffic 'zpif'.*did you mean zipf\?"):
        traffic.make("zpif", hs)


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("key,packets\na,1\na,2\n", "line 3"),
        ("key,packets\na\n", "line 2"),
        ("# c\nkey,packets\na,1\nb,x\n", "line 4"),
        ("a,1,2\n", "line 1"),
        ("key,packets\na,-3\n", "'a'"),
        ("key,packets\na,nan\n", "'a'"),
        ("", "without a key"),
        ("key,packets\n", "without a key"),
        ("\xff", "line 1"),
        (f"a,{'9' * 5000}\n", "line 1"),
        (f"{'a' * 200_000},1\n", "line 1"),
    ],
)
def test_a_bad_counts_file_is_refused_and_the_line_named(hs, tmp_path, text, where):
    path = tmp_path / "c.csv"
    path.write_text(text, "utf-8")
    with pytest.raises(Error, match=where) as error:
        traffic.from_counts(hs, path)
    assert "\n" not in str(error.value)


def test_a_counts_file_that_is_not_text_is_refused(hs, tmp_path):
    path = tmp_path / "c.csv"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(TrafficError, match="not UTF-8"):
        traffic.from_counts(hs, path)


def test_a_handler_that_can_never_be_reached_has_no_worst_traffic():
    hs = handlers(4, keys=[5, 6, 7, 5])
    with pytest.raises(TrafficError, match="never be reached"):
        traffic.worst(hs)


def test_traffics_put_together_are_the_same_packets_in_one_stretch_of_memory():
    hs = handlers(20)
    apart = traffic.uniform(hs, pool=4096), traffic.zipf(hs, pool=4096)
    one, other = together(*apart)
    assert (one.digest, other.digest) == (apart[0].digest, apart[1].digest)
    assert other.packets.ctypes.data == one.packets.ctypes.data + one.packets.nbytes
    assert not one.packets.flags.writeable and one.packets.ctypes.data % 64 == 0
