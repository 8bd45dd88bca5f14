"""Traffic that a list or a table was not built for: each flood hits what it is aimed at, mixes shift, mixtures keep their shares."""

import numpy as np
import pytest

import dispatchlab as dl
from dispatchlab.cli import main
from dispatchlab.errors import TrafficError, UsageError


@pytest.fixture(scope="module")
def hs() -> dl.HandlerSet:
    return dl.handlers(100, residual=0.2)


def test_a_residual_flood_asks_the_most_predicates_that_the_table_ever_asks(hs: dl.HandlerSet) -> None:
    flooded = dl.count_probes("table-compact", hs, dl.traffic.flood(hs, "residual"))
    usual = dl.count_probes("table-compact", hs, dl.traffic.uniform(hs))
    assert (flooded[1:] == usual.max()).all() and usual.max() > 1


@pytest.mark.parametrize("kind", ["unmatched", "collision"])
def test_a_flood_of_keys_that_nobody_has_makes_the_list_ask_everybody(hs: dl.HandlerSet, kind: str) -> None:
    tr = dl.traffic.flood(hs, kind)
    assert (dl.count_probes("scan", hs, tr)[1:] == hs.count).all()
    assert (hs.select(tr.packets) >= 0).sum() == 1


def test_colliding_keys_agree_with_registered_ones_in_their_low_bits(hs: dl.HandlerSet) -> None:
    keys = dl.traffic.flood(hs, "collision").packets["key"][1:]
    assert np.isin(keys & 0x3FFF, hs.keys & 0x3FFF).all() and not np.isin(keys, hs.keys).any()


def test_every_arm_answers_floods_mixes_and_shifts_as_the_reference_does(hs: dl.HandlerSet) -> None:
    for name in ("flood:residual", "flood:collision", "flood:unmatched", "shift", "mix:0.8*zipf+0.2*flood:collision"):
        m = dl.measure(["scan", "table-compact", "hash", "perfect-hash", "scan-simd"], hs, dl.traffic.make(name, hs), rounds=8)
        assert m.ok, (name, m.failures)


def test_a_shifting_mix_has_other_busy_handlers_in_each_phase(hs: dl.HandlerSet) -> None:
    tr = dl.traffic.shift(hs, 4)
    busiest = [np.bincount(part[part >= 0]).argmax() for part in np.array_split(hs.select(tr.packets), 4)]
    assert len(set(busiest)) >= 3
    ordered = dl.count_probes("scan-ordered", hs, tr).mean()
    assert ordered > 1.3 * dl.count_probes("scan-ordered", hs, dl.traffic.zipf(hs)).mean()


def test_a_mixture_keeps_its_shares_and_the_order_of_its_parts(hs: dl.HandlerSet) -> None:
    runs, lost = dl.traffic.bursts(hs, unmatched=0), dl.traffic.flood(hs, "unmatched")
    mixed = dl.traffic.mixture([(runs, 3), (lost, 1)], hs)
    own = [p.tobytes() for p in mixed.packets[np.isin(mixed.packets["key"], hs.keys)]]
    assert len(own) / len(mixed) == pytest.approx(0.75, abs=0.02)
    own.remove(lost.packets[0].tobytes())  # the one of the flood that somebody takes
    assert own == [p.tobytes() for p in runs.packets[: len(own)]]
    again = dl.traffic.make("mix:3*bursts+1*flood:unmatched", hs)
    assert again.digest == dl.traffic.make("mix:3*bursts+1*flood:unmatched", hs).digest


def test_what_cannot_be_made_is_one_line(hs: dl.HandlerSet, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(UsageError, match="unknown flood"):
        dl.traffic.flood(hs, "port")
    with pytest.raises(TrafficError, match="asks for more than its key"):
        dl.traffic.flood(dl.handlers(10, residual=0), "residual")
    with pytest.raises(UsageError, match="one size"):
        dl.traffic.mixture([(dl.traffic.uniform(hs, pool=64), 1), (dl.traffic.uniform(hs), 1)], hs)
    for name in ("mix:", "mix:zipf+", "mix:0*zipf", "mix:x*zipf", "mix:mix:zipf", "shift:0", "shift:x", "flood:x"):
        assert main(["run", "traffic", "--quick", "--traffic", name]) == 2
    assert capsys.readouterr().err.count("\n") == 8
