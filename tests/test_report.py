"""The report says what a recording holds: cost, probes, shares, controls, and whether to believe it."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dispatchlab import load, readme, report, shares, summary, tables, wording
from dispatchlab.errors import UsageError
from dispatchlab.instrument import settled_after
from dispatchlab.intervals import Estimate
from dispatchlab.scenes import scenes
from dispatchlab.verdicts import twin_check

ROOT = Path(__file__).parent.parent


def cells(table):
    return [dict(zip(table.heads, row, strict=True)) for row in table.rows]


def test_a_row_states_cost_probes_budget_rate_footprint_and_verdict(study):
    table = tables.costs(study(("scan",)).measurements[0])
    row = next(r for r in cells(table) if r["handlers"] == "100" and r["arm"] == "scan")
    ns = float(row["ns/packet"].split(" ")[0])
    assert ns == pytest.approx(40 + 3 * 52.3, rel=0.01)
    assert (row["probes"], row["enumerated"], row["bytes"]) == ("52.30", "52.30", "800 B")
    assert float(row["budget"].rstrip(" %")) == pytest.approx(100 * ns * 3e6 / 1e9, abs=0.1)
    assert float(row["M/s"]) == pytest.approx(1e3 / ns, abs=0.06)
    assert row["verdict"] == "slower" and float(row["x table-compact"].split(" ")[0]) == pytest.approx(4.0, rel=0.01)


def test_every_measurement_has_its_table_and_every_table_its_small_print(study):
    recording = study()
    found = tables.every_table(recording)
    assert [t.name for t in found] == [*(m.name for m in recording.measurements), "win"]
    for table in found:
        small = "\n".join(table.notes)
        for word in ("95 % for all", "Bonferroni", "48 rounds", "flagged", "Twin"):
            assert word in small, (table.name, word)


def test_a_failed_twin_is_said_and_leaves_no_verdict(study):
    table = tables.costs(study(("scan",), twin=1.05).measurements[0])
    assert any("FAILED" in note for note in table.notes)
    assert {row["verdict"].split(" ")[0] for row in cells(table)} <= {"", "unresolved"}
    assert any("twin of the reference differs" in note for note in table.notes)


def test_a_twin_that_holds_is_said_to(study):
    m = study(("scan",)).measurements[0]
    assert twin_check(m).ok and any(note.endswith("ok.") for note in tables.costs(m).notes)


def test_wrong_answers_are_at_the_head_and_below_the_table(study):
    recording = study(("scan",))
    m = recording.measurements[0]
    wrong = replace(m, checksums={**m.checksums, m.slots[0].label: "bad"})
    text = report.tables(replace(recording, measurements=(wrong,)))
    assert "1 checks FAILED" in text.splitlines()[4] and "FAILED: scan" in text
    assert "same answers" in report.tables(recording)


def test_flagged_rounds_are_counted_and_kept(study):
    assert any("6.2 % flagged" in note for note in tables.costs(study(("pool",)).measurements[0]).notes)


def test_sorting_and_table_share_the_whole_win(study):
    for row in cells(tables.wins(list(study(("traffic", "traffic a.service.csv")).measurements))):
        parts = [float(row[head].split(" ")[0]) for head in ("by sorting", "by the table")]
        assert sum(parts) == pytest.approx(100, abs=0.02)
        by_hand = (float(row["scan"]) - float(row["scan-ordered"])) / (float(row["scan"]) - float(row["table-compact"]))
        assert parts[0] == pytest.approx(100 * by_hand, abs=0.3)


def test_the_interval_of_a_share_holds_the_truth_as_often_as_it_says(study):
    """150 runs with noise that all slots of a round share, as on a real machine; 95 % intervals."""
    truth, held, rng = 0.4, 0, np.random.default_rng(1)
    m = study(("traffic",), rounds=24).measurements[0]
    scene = next(s for s in scenes(m) if s.slot.traffic == "zipf")
    slots = [scene.arms[arm] for arm in ("scan", "scan-ordered", "table-compact")]
    for _ in range(150):
        ns = np.full((24, len(m.slots)), 50.0)
        ns[:, slots] = [100.0, 80.0, 50.0]
        ns = ns * np.exp(rng.normal(0, 0.1, (24, 1))) * np.exp(rng.normal(0, 0.02, ns.shape))
        noisy = replace(m, ticks=np.rint(ns * 8192 * 2).astype(np.int64))
        e = shares.win(noisy, *slots).by_sorting
        held += e.low <= truth <= e.high
    assert 0.90 <= held / 150 <= 0.995


def test_no_share_of_a_win_that_may_be_zero(study):
    m = study(("traffic",), cost=lambda slot, placement: 50.0).measurements[0]
    scene = scenes(m)[0]
    e = shares.win(m, scene.arms["scan"], scene.arms["scan-ordered"], scene.arms["table-compact"]).by_sorting
    assert (e.low, e.high) == (-np.inf, np.inf) and wording.percent(e) == "undecided"
    assert {row["by sorting"] for row in cells(tables.wins([m]))} == {"undecided"}


def test_a_part_that_is_sure_of_a_win_that_is_not_has_no_bounded_share(study):
    cost = {"scan": 61.0, "scan-ordered": 30.0, "table-compact": 60.0}
    m = study(("traffic",), cost=lambda slot, placement: cost.get(slot.arm, 50.0), noise=0.05).measurements[0]
    scene = scenes(m)[1]
    found = shares.win(m, scene.arms["scan"], scene.arms["scan-ordered"], scene.arms["table-compact"])
    assert -1.0 < found.saved.low < 0.0 < found.saved.high, "barely unsure"
    assert (found.by_sorting.low, found.by_sorting.high) == (-np.inf, np.inf)


def test_share_of_weights_is_scale_free(study):
    m = study(("scan",)).measurements[0]
    part, whole = [(1, 1.0), (2, -1.0)], [(4, 1.0), (5, -1.0)]
    one = shares.share(m, part, whole)
    halved = shares.share(m, part, [(slot, 2 * weight) for slot, weight in whole])
    negative = shares.share(m, part, [(slot, -weight) for slot, weight in whole])
    for mine, of in ((halved.value, one.value / 2), (halved.low, one.low / 2), (-negative.low, one.high)):
        assert mine == pytest.approx(of, rel=1e-3)


def test_slots_of_a_scene_differ_in_the_arm_alone(study):
    for m in study().measurements:
        for scene in scenes(m):
            for arm, index in scene.arms.items():
                slot = m.slots[index]
                assert slot.arm == arm and slot.role != "twin"
                assert (slot.handlers, slot.traffic, slot.pool) == (
                    scene.slot.handlers,
                    scene.slot.traffic,
                    scene.slot.pool,
                )


@pytest.mark.parametrize(
    "value, half, text",
    [(49.4123, 0.07, "49.41 ± 0.07"), (311.0, 12.3, "311 ± 12"), (2.2, 0.2, "2.2 ± 0.2"), (5.0, np.inf, "5 (no interval)")],
)
def test_numbers_show_what_their_interval_supports(value, half, text):
    assert wording.measured(Estimate(value, value - half, value + half, "ns/packet", 9, 0.95)) == text


@pytest.mark.parametrize("count, text", [(800, "800 B"), (24576, "24 KiB"), (1 << 20, "1 MiB"), (3 << 29, "1.5 GiB")])
def test_sizes(count, text):
    assert wording.size(count) == text


def test_instrument_facts_are_told(study):
    text = report.tables(study(("instrument",)))
    for told in ("tsc: a tick is 0.5 ns, reading it takes 20 ns", "512 different answers from 512 handlers", "loop floor 1.20"):
        assert told in text


def test_settling_is_found_where_it_is():
    steps = [300.0] * 30 + [100.0] * 170
    assert 28 <= settled_after(steps) <= 34
    assert settled_after([100.0] * 200) == 0
    assert settled_after([9.0, 8.0]) == 2
    lone = [100.0] * 200
    lone[80] = 900.0
    assert settled_after(lone) == 0


def test_any_recording_can_be_reported(sample):
    for recording in (sample(), sample(rounds=3), sample((10, 100)), sample(environment={}), sample(measurements=())):
        assert report.tables(recording).startswith("study")


def test_readme_parts_are_made_anew_and_stay(study):
    recording = study()
    text = "before\n<!-- generated:win -->\nstale\n<!-- end -->\nbetween\n<!-- generated:claims -->\n<!-- end -->\nafter\n"
    once = readme.rewrite(text, recording)
    assert "stale" not in once and "| uniform |" in once and once.startswith("before\n") and once.endswith("after\n")
    assert readme.rewrite(once, recording) == once


@pytest.mark.parametrize(
    "text, told",
    [
        ("<!-- generated:wni -->\n<!-- end -->", "does not make this part"),
        ("<!-- generated:win -->\n", "has no end"),
        ("<!-- generated:win -->\n<!-- generated:facts -->\n<!-- end -->", "has no end"),
    ],
)
def test_readme_marks_that_cannot_be_filled_are_refused(study, text, told):
    with pytest.raises(UsageError, match=told):
        readme.rewrite(text, study(("traffic",)))


def test_readme_says_what_the_shipped_recording_says(shipped):
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "<!-- generated:" in text, "README shows no table of the recording"
    made = readme.rewrite(text, load(shipped), shipped.parent)
    assert made == text, f"README.md is not what {shipped.name} says: make it anew"


def test_a_drifted_readme_is_noticed(study):
    recording = study(("traffic",))
    text = readme.rewrite("<!-- generated:win -->\n<!-- end -->\n", recording)
    other = study(("traffic",), cost=lambda slot, placement: {"scan": 90.0}.get(slot.arm, 60.0))
    assert readme.rewrite(text, other) != text


def test_estimates_of_the_table_are_the_recordings_own(study):
    recording = study(("scan",))
    m = recording.measurements[0]
    row = cells(tables.costs(m))[1]
    each = 1 - 0.05 / (len(m.slots) - 1)
    assert row["ns/packet"] == wording.measured(summary.ns(m, 1, confidence=each))
    assert json.dumps(row)
