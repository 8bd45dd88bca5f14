"""The tail study: what the table's bound is worth, from a real quick run; and that tails are refused where they must be."""

import numpy as np
import pytest

import dispatchlab as dl
from dispatchlab.intervals import Estimate, Refused
from dispatchlab.report import tables
from dispatchlab.tails import QUANTILES, probe_quantiles, tails


@pytest.fixture(scope="module")
def recording() -> dl.Recording:
    return dl.studies.tail(quick=True, budget=3)


def _of(recording: dl.Recording, arm: str, traffic: str):
    return next(t for t in tails(recording) if (t.slot.arm, t.slot.traffic) == (arm, traffic))


def test_the_table_never_asks_more_than_its_longest_list_and_the_sorted_list_asks_all(recording: dl.Recording) -> None:
    bound = max(t.probes[-1] for t in tails(recording) if t.slot.arm == "table-compact")
    assert bound <= 4  # ten residual handlers on three keys
    for traffic in ("shifted", "attack-last", "attack-unmatched", "attack-alternating"):
        p999, most = _of(recording, "scan-ordered", traffic).probes[3:]
        assert most == 100 and p999 > bound


def test_attack_last_really_hits_the_last_handler_of_the_sorted_list(recording: dl.Recording) -> None:
    assert set(_of(recording, "scan-ordered", "attack-last").probes) == {100}


def test_a_shifted_mix_costs_the_sorted_list_more_than_the_mix_it_was_sorted_for(recording: dl.Recording) -> None:
    probes = recording.probes
    assert probes["scan-ordered shifted"] > 1.5 * probes["scan-ordered zipf"]


def test_every_latency_has_an_interval_or_a_reason(recording: dl.Recording) -> None:
    for t in tails(recording):
        for e in t.latency:
            assert isinstance(e, Refused) or e.low <= e.value <= e.high


def test_maximum_is_not_bounded_from_above(recording: dl.Recording) -> None:
    most = tails(recording)[0].latency[-1]
    assert isinstance(most, Estimate) and most.high == np.inf


def test_tables_name_every_traffic(recording: dl.Recording) -> None:
    text = tables(recording)
    assert "p99.9" in text and "attack-alternating" in text


def test_quantiles_of_a_histogram_are_those_of_the_packets() -> None:
    probes = np.random.default_rng(1).integers(0, 50, 4001)
    values, counts = np.unique(probes, return_counts=True)
    expected = np.quantile(probes, QUANTILES, method="inverted_cdf")
    assert probe_quantiles(list(zip(values.tolist(), counts.tolist(), strict=True))) == tuple(expected.astype(int))


def test_a_recording_without_tails_has_none(sample) -> None:
    assert tails(sample()) == []
