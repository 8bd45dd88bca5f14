"""The studies mechanism, footprint, locality and bodies: what they measure, and that the split says what the slots cost."""

from dataclasses import replace

import numpy as np
import pytest

import dispatchlab as dl
from dispatchlab import claims, cli, codetables, mechanisms, report, studies
from dispatchlab.mechanisms import CONTROL, agreement, contrasts, control_note, mechanism_tables
from dispatchlab.studies import footprint, locality, mechanism

ROUNDS = 40


@pytest.fixture(scope="module")
def measured():
    """The study itself, run as briefly as it can be."""
    return studies.run("mechanism", quick=True, rounds=8)


@pytest.fixture(scope="module")
def modelled(measured):
    """modelled(cost) -> the same recording with cost(slot) ns for a packet, and a little noise."""

    def make(cost, noise=0.001, **extra):
        m = measured.measurements[0]
        rng = np.random.default_rng(1)
        ns = np.array([[cost(s) for s in m.slots]] * ROUNDS)
        ticks = np.rint(ns * m.block * m.ticks_per_ns * np.exp(rng.normal(0, noise, ns.shape))).astype(np.int64)
        plain = replace(
            m, ticks=ticks, order=np.array([rng.permutation(len(m.slots)) for _ in range(ROUNDS)]),
            placement=np.arange(ROUNDS) % 4, window=np.zeros(ROUNDS, int), ledger={}, flagged=np.zeros(ROUNDS, bool),
        )  # fmt: skip
        return replace(measured, measurements=(plain,), extra=extra)

    return make


TARGET = {"virtual": 9.0, "erasure": 7.0}
FETCH = {"chain": 0.0, "wide": 12.0, "branchy": 20.0}


def cost(s):
    """A machine on which everything simply adds."""
    own = {"chain": 38.0, "wide": 21.0, "branchy": 25.0}[s.body] if s.size == "fat" else 2.0
    if s.arm == CONTROL:
        return own
    call = 3.0 if s.arm == "virtual" else 2.0
    if s.traffic == "hot":
        return own + call
    return own + call + TARGET.get(s.arm, 8.0) + (FETCH[s.body] if s.size == "fat" else 0.0)


def counts(l1i=28.0, missed=0.6):
    """Simulated events: the same misses whatever the body."""
    cells = [
        {"body": body, "arm": arm, "size": size, "traffic": traffic, "instructions": 100.0,
         "indirect_mispredicted": missed * (traffic == "mixed" and arm != CONTROL),
         "l1i_misses": l1i * (traffic == "mixed" and size == "fat" and arm != CONTROL)}
        for body in mechanism.BODIES for arm in mechanism.COUNTED for size in mechanism.SIZES for traffic in ("hot", "mixed")
    ]  # fmt: skip
    return {"simulator": "none", "caches": {}, "cells": cells}


# --- the study -----------------------------------------------------------------------------------------------------


def test_the_study_holds_every_contrast(measured):
    m = measured.measurements[0]
    assert measured.ok
    found = {(c.body, c.arm) for c in contrasts(m)}
    assert found == {("chain", arm) for arm in mechanism.ARMS} | {
        (body, arm) for body in ("wide", "branchy") for arm in mechanism.OTHER_BODIES
    }
    assert {s.residual for s in m.slots} == {0.0}
    by_scene = {}
    for s in m.slots:
        if s.arm != CONTROL:
            by_scene.setdefault((s.body, s.size, s.traffic), set()).add(m.checksums[s.label])
    assert all(len(sums) == 1 for sums in by_scene.values()), "all mechanisms give one checksum"


def test_hot_and_mixed_differ_in_nothing_but_the_key():
    hs = dl.handlers(100, size="tiny", residual=0)
    hot, mixed = (t.packets for t in mechanism.traffics(hs, 0))
    assert all(np.array_equal(hot[field], mixed[field]) for field in ("payload", "length", "flow"))
    assert set(hot["key"]) == {hs.keys[0]} and len(set(mixed["key"])) == 100
    frequency = hs.frequency(mixed)
    assert frequency[0] > frequency[1] > frequency[3] > frequency[50], "numbered by how likely they are: the guards' profile"


def test_the_split_recovers_what_was_put_in(modelled):
    for c in contrasts(modelled(cost).measurements[0]):
        zero = c.arm == CONTROL
        assert c.target.value == pytest.approx(0 if zero else TARGET.get(c.arm, 8.0), abs=0.1)
        assert c.fetch.value == pytest.approx(0 if zero else FETCH[c.body], abs=0.1)
        assert c.change.value == pytest.approx(0 if zero else c.target.value + FETCH[c.body], abs=0.1)
        assert c.target.low < c.target.value < c.target.high
        if not zero:
            assert c.call.value == pytest.approx(3.0 if c.arm == "virtual" else 2.0, abs=0.1)
            assert (c.fetch.low <= 0 <= c.fetch.high) == (c.body == "chain")


def test_a_control_that_is_not_zero_is_told(modelled):
    good = modelled(cost)
    assert control_note(contrasts(good.measurements[0])).endswith("ok.")
    bad = modelled(lambda s: cost(s) + 2.0 * (s.arm == CONTROL and s.traffic == "mixed" and s.body == "wide" and s.size == "fat"))
    assert control_note(contrasts(bad.measurements[0])).startswith("CONTROL FAILED") and "wide" in report.tables(bad)
    assert "THE CONTROL" not in report.tables(good)


def test_counts_that_say_the_opposite_are_told(modelled):
    found = contrasts(modelled(cost).measurements[0])
    as_counts = mechanisms.counts_of(modelled(cost, counts=counts()))
    lines = agreement(found, as_counts)
    assert {line.split(",")[0] for line in lines} == {"chain virtual", "chain erasure", "chain static"}
    assert all("28.00 more L1i misses simulated, no cost timed: they do NOT agree." in line for line in lines)
    fetched = modelled(lambda s: cost(s) + 5.0 * (s.size == "fat" and s.traffic == "mixed" and s.arm != CONTROL))
    assert agreement(contrasts(fetched.measurements[0]), as_counts) == ["Simulated counts and timed contrasts agree in sign, all 18."]


def test_the_counts_explain_a_difference_only_where_they_do(modelled):
    def said(recording, events):
        return mechanisms.explanation(contrasts(recording.measurements[0]), mechanisms.counts_of(modelled(cost, counts=events)))

    told, why = said(modelled(cost), counts())
    assert "chain misses L1i 28.0 times more and pays" in told and "wide runs 4." in told
    assert why.startswith("So the misses do not differ, the bodies do: chain waits for its own results")
    uneven = counts()
    for cell in uneven["cells"]:
        cell["l1i_misses"] *= 0.1 if cell["body"] == "chain" else 1.0
    assert len(said(modelled(cost), uneven)) == 1, "chain misses less: nothing needs its results as a reason"
    alike = modelled(lambda s: cost(replace(s, body="wide")))
    assert len(said(alike, counts())) == 1, "all pay the same: there is nothing to explain"
    assert not mechanisms.explanation(contrasts(modelled(cost).measurements[0]), {})


def test_the_report_has_the_counts_beside_the_contrasts(modelled):
    (table,) = mechanism_tables(modelled(cost, counts=counts()))
    row = dict(zip(table.heads, next(r for r in table.rows if r[:2] == ("wide", "virtual")), strict=True))
    assert (row["mispredicted"], row["L1i misses"], row["instructions"]) == ("0.60", "28.00", "100")
    (table,) = mechanism_tables(modelled(cost, counts_missing="count: valgrind is not installed"))
    assert any("No simulated counts: count: valgrind is not installed." in note for note in table.notes)


def test_claims_of_the_mechanism_are_answered(modelled):
    answers = {t.claim.id: t.answer for t in claims.evaluate(modelled(cost))}
    assert answers["control-reads-zero"] == answers["erasure-saves-a-load"] == answers["fetch-costs-branchy"] == "holds"
    assert answers["fetch-costs-chain"] == answers["mixed-costs-virtual"] == "does not hold here"
    assert len([c for c in claims.load_claims() if c.measurement == "mechanism"]) == len(answers) >= 15


def test_more_handlers_than_a_closed_set_holds_is_one_line(capsys, tmp_path):
    assert cli.main(["run", "mechanism", "--quick", "--handlers", "200", "--out", str(tmp_path)]) == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1 and "the set of handlers is closed" in err


# --- figures -------------------------------------------------------------------------------------------------------


def test_figures_are_drawn_and_say_what_was_found(modelled):
    recording = modelled(cost, counts=counts())
    assert {"mechanism", "body-kinds"} <= set(dl.figures.names(recording))
    texts = {name: " ".join(t.get_text() for t in dl.figures.draw(recording, name).texts) for name in ("mechanism", "body-kinds")}
    assert "the control nothing" in " ".join(texts["mechanism"].split())
    kinds = " ".join(texts["body-kinds"].split())
    assert "(not told from zero)" in kinds and "branchy 28.0" in kinds
    broken = modelled(lambda s: cost(s) + 3 * (s.arm == CONTROL and s.traffic == "mixed"))
    title = " ".join(t.get_text() for t in dl.figures.draw(broken, "mechanism").texts)
    assert "the control is not zero" in " ".join(title.split())


# --- the other studies ---------------------------------------------------------------------------------------------


def test_the_map_of_footprints(tmp_path):
    recording = studies.run("footprint", quick=True, rounds=8)
    m = recording.measurements[0]
    assert recording.ok
    cells = {(s.body, s.size, s.handlers) for s in m.slots if s.arm == footprint.ARM}
    assert cells == {(b, z, n) for b in footprint.BODIES for z in ("tiny", "quarter", "half", "fat") for n in footprint.COUNTS}
    assert dl.figures.names(recording) == ("footprint",)
    dl.figures.draw(recording, "footprint")
    recording.save(tmp_path / "r.json")
    assert dl.load(tmp_path / "r.json") == recording
    assert codetables.code_tables(recording)[0].name == "code-bodies"


def test_locality_measures_every_state_and_place(tmp_path):
    recording = studies.run("locality", quick=True, rounds=8)
    m = recording.measurements[0]
    assert recording.ok
    cells = {(s.arm, s.handlers, s.state, s.objects) for s in m.slots if s.arm != CONTROL}
    assert len(cells) == len(locality.ARMS) * len(locality.COUNTS) * len(locality.STATES) * len(locality.OBJECTS)
    assert len({m.checksums[s.label] for s in m.slots if s.handlers == 100 and s.arm != CONTROL}) == 1
    recording.save(tmp_path / "r.json")
    assert dl.load(tmp_path / "r.json") == recording
    assert [s.state for s in dl.load(tmp_path / "r.json").measurements[0].slots] == [s.state for s in m.slots]
    dl.figures.draw(recording, "locality")


def test_bodies_dominate_the_text():
    recording = studies.run("bodies", quick=True, rounds=8)
    assert recording.ok
    text = recording.extra["text"]
    assert text["bodies"] + text["predicates"] + text["loops"] + text["rest"] <= text["section"]
    answers = {t.claim.id: t.answer for t in claims.evaluate(recording)}
    assert answers == {"bodies-dominate-text": "holds", "mechanisms-differ-little-in-bytes": "holds"}
    stripped = replace(recording, extra={"text_missing": "the symbol table was stripped"})
    assert {(t.answer, t.reason) for t in claims.evaluate(stripped)} == {("unresolved", "the symbol table was stripped")}
