"""What describe() says of a traffic is true of it."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

import dispatchlab as dl
from dispatchlab.traffic.describing import fit_zipf

CAPTURE = Path(__file__).parent / "data" / "gnutella.headers.pcap"
HS = dl.handlers(100, residual=0)


@pytest.mark.parametrize("s", [0.8, 1.1])
def test_the_exponent_of_generated_zipf_traffic_lies_in_its_interval_for_nine_seeds_of_ten(s: float) -> None:
    found = [dl.traffic.describe(dl.traffic.zipf(HS, s, seed=seed)).zipf for seed in range(40)]
    inside = sum(z.low <= s <= z.high for z in found)
    assert inside >= 36, f"{inside} of 40"
    assert abs(float(np.mean([z.exponent for z in found])) - s) < 0.01
    assert max(z.high - z.low for z in found) < 0.2


def test_few_packets_of_many_keys_give_a_wide_interval_that_still_holds_the_exponent() -> None:
    found = [dl.traffic.describe(dl.traffic.zipf(HS, 1.1, seed=seed, pool=1000)).zipf for seed in range(20)]
    assert sum(z.low <= 1.1 <= z.high for z in found) >= 18
    assert min(z.high - z.low for z in found) > 0.05


def test_uniform_traffic_has_the_entropy_of_its_handlers_and_no_skew() -> None:
    d = dl.traffic.describe(dl.traffic.uniform(HS, seed=3))
    assert d.entropy == pytest.approx(math.log2(100), abs=0.01)
    assert d.effective == pytest.approx(100, rel=0.01)
    assert d.keys == 100
    assert d.zipf.low == 0.0
    assert d.top[1] < 0.013
    assert d.top[16] == pytest.approx(0.16, abs=0.02)
    assert d.unmatched == pytest.approx(0.02, abs=0.005)


def test_chance_alone_is_not_taken_for_skew() -> None:
    found = [dl.traffic.describe(dl.traffic.uniform(HS, seed=seed, pool=2000)).zipf for seed in range(10)]
    assert sum(z.low == 0.0 for z in found) >= 9
    assert min(z.exponent for z in found) == 0.0


def test_hot_traffic_shows_in_the_share_of_the_two_busiest() -> None:
    d = dl.traffic.describe(dl.traffic.hot(HS, seed=1))
    assert d.top[2] == pytest.approx(0.95, abs=0.01)
    assert d.effective < 5


def test_bursts_of_eight_run_about_eight_packets_and_independent_packets_as_long_as_chance_lets_them() -> None:
    burst = dl.traffic.describe(dl.traffic.bursts(HS, seed=2))
    assert burst.run == pytest.approx(8, rel=0.05)
    assert burst.random == pytest.approx(1.01, abs=0.005)
    skewed = dl.traffic.describe(dl.traffic.zipf(HS, 1.5, seed=2))
    assert skewed.run == pytest.approx(skewed.random, rel=0.03)
    assert skewed.random > 1.1


def test_packets_in_runs_are_worth_fewer_independent_ones() -> None:
    apart = dl.traffic.describe(dl.traffic.uniform(HS, seed=2)).zipf
    burst = dl.traffic.describe(dl.traffic.bursts(HS, seed=2)).zipf
    assert apart.independent > 30000
    assert burst.independent == pytest.approx(32768 * 0.98 / 15, rel=0.2)
    assert burst.high > apart.high
    assert burst.low == 0.0


def test_a_replayed_capture_differs_from_one_drawn_from_its_counts_in_its_runs_alone() -> None:
    replayed = dl.traffic.describe(dl.traffic.from_pcap(HS, CAPTURE))
    drawn = dl.traffic.describe(dl.traffic.from_pcap(HS, CAPTURE, replay=False))
    assert replayed.run > 1.2 * replayed.random
    assert drawn.run == pytest.approx(drawn.random, rel=0.02)
    assert replayed.entropy == pytest.approx(drawn.entropy, rel=0.1)
    assert replayed.zipf.independent < drawn.zipf.independent


def test_what_cannot_be_fitted_says_why() -> None:
    one = dl.traffic.describe(dl.traffic.worst(HS))
    assert (one.keys, one.entropy, one.effective, one.zipf.exponent) == (1, 0.0, 1.0, None)
    assert "one key" in one.zipf.reason
    packets = np.zeros(300, dl.traffic.PACKET)
    packets["key"] = np.arange(300) % 3
    equal = dl.traffic.describe(dl.traffic.from_packets(packets))
    assert (equal.zipf.exponent, equal.zipf.low, equal.zipf.high) == (None, None, None)
    assert "same count" in equal.zipf.reason
    assert equal.run == 1.0
    assert "steeper" in fit_zipf(np.array([10**9, 1])).reason


def test_with_a_handler_set_handlers_count_and_not_keys() -> None:
    hs = dl.handlers(100, residual=0.2)
    tr = dl.traffic.uniform(hs)
    by_key, by_handler = dl.traffic.describe(tr), dl.traffic.describe(tr, hs)
    assert by_key.keys == 83
    assert by_handler.keys == 100
    assert by_handler.unmatched > by_key.unmatched == pytest.approx(0.02, abs=0.005)


def test_unmatched_packets_of_every_source_are_counted() -> None:
    few = dl.handlers(3, residual=0)
    by_counts = dl.traffic.from_counts(few, {"a": 50, "b": 20, "c": 10, "d": 10, "unkeyed": 10})
    assert dl.traffic.describe(by_counts).unmatched == pytest.approx(0.2, abs=0.01)
    captured = dl.traffic.from_pcap(few, CAPTURE)
    d = dl.traffic.describe(captured)
    assert d.unmatched == pytest.approx(float((few.select(captured.packets) < 0).mean()))
    own = dl.traffic.describe(dl.traffic.from_packets(captured.packets, few))
    assert (own.keys, own.unmatched) == (d.keys, d.unmatched)


def test_a_description_is_plain_json() -> None:
    d = dl.traffic.describe(dl.traffic.zipf(HS))
    again = json.loads(json.dumps(d.to_dict(), allow_nan=False))
    assert again["top"]["4"] == d.top[4]
    assert again["zipf"]["exponent"] == d.zipf.exponent
    assert set(again) == set(d.__dataclass_fields__)


def test_describing_twice_gives_the_same() -> None:
    tr = dl.traffic.zipf(HS, 1.3)
    assert dl.traffic.describe(tr) == dl.traffic.describe(tr)
