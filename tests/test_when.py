"""The map of winners says what the ticks say: who is fastest where, and whether that is sure."""

from dataclasses import replace

import matplotlib
import numpy as np
import pytest

from dispatchlab import figures, when
from dispatchlab.cli import main
from dispatchlab.recording import Recording
from dispatchlab.report import tables
from dispatchlab.studies import Options
from dispatchlab.studies import when as study


@pytest.fixture(scope="module")
def measured() -> Recording:
    """A small run; its times are of no account here."""
    return study.run(Options(quick=True, rounds=12))


def timed(recording: Recording, ns: dict[str, float], noise: float = 0.01) -> Recording:
    """The same recording as if its arms had taken so long; "ARM HANDLERS TRAFFIC" counts before "ARM"."""
    rng = np.random.default_rng(3)
    measurements = []
    for m in recording.measurements:
        level = [ns.get(f"{s.arm} {s.handlers} {s.traffic}", ns[s.arm]) for s in m.slots]
        jitter = rng.normal(1, noise, m.ticks.shape)
        ticks = np.round(np.array(level) * m.block * m.ticks_per_ns * jitter).astype(np.int64)
        measurements.append(replace(m, ticks=ticks))
    return replace(recording, measurements=tuple(measurements))


FLAT = {"scan": 200.0, "scan-ordered": 150.0, "scan-simd": 110.0, "table-compact": 90.0}


def test_the_study_measures_every_cell_and_draws_its_map(measured: Recording) -> None:
    found = when.cells(measured)
    assert [(c.handlers, c.exponent) for c in found] == [(n, s) for n in study.QUICK_COUNTS for s in study.QUICK_EXPONENTS]
    assert measured.ok
    assert "When is the loop right?" in tables(measured)
    assert "winner-map" in figures.names(measured)


def test_the_fastest_arm_wins_its_cell_and_the_fastest_loop_is_compared_with_the_table(measured: Recording) -> None:
    recording = timed(measured, {**FLAT, "scan-ordered 4 zipf": 60.0})
    found = {(c.handlers, c.exponent): c for c in when.cells(recording)}
    one = found.pop((4, 1.1))
    assert (one.winner, one.loop, one.resolved, one.loop_wins, one.table_wins) == ("scan-ordered", "scan-ordered", True, True, False)
    assert one.ratio.low < 60 / 90 < one.ratio.high
    for c in found.values():
        assert (c.winner, c.loop, c.resolved, c.table_wins) == ("table-compact", "scan-simd", True, True)
    assert when.sentence(when.cells(recording)).startswith("A loop beats the table in 1 of 9 cells, with up to 4 handlers (there at")


def test_a_winner_that_noise_may_have_made_is_not_resolved(measured: Recording) -> None:
    found = when.cells(timed(measured, {**FLAT, "scan-simd": 90.0}))
    assert not any(c.resolved or c.loop_wins or c.table_wins for c in found)
    assert when.sentence(found) == (
        "The loop is nowhere right: no kind of it beats the table, which wins 0 of 9 cells; 9 cells are not told apart"
    )


def test_a_sentence_never_says_more_than_the_verdicts(measured: Recording) -> None:
    found = when.cells(timed(measured, FLAT))
    assert when.sentence(found).endswith("which wins 9 of 9 cells")
    wins = [replace(c, loop_wins=c.handlers == 25, table_wins=c.handlers > 25) for c in found]
    assert when.sentence(wins) == (
        "A loop beats the table in 3 of 9 cells, with up to 25 handlers (there at skew uniform, 1.1, 2); 3 cells are not told apart"
    )


def test_the_map_hatches_what_is_not_resolved_and_names_what_wins(measured: Recording) -> None:
    recording = timed(measured, {**FLAT, "scan-ordered 4 zipf": 60.0, "scan-simd 100 uniform": 90.0})
    axes = figures.draw(recording, "winner-map").axes[0]
    hatched = [p for p in axes.patches if p.get_hatch()]
    assert len(hatched) == 1
    assert {t.get_text() for t in axes.get_legend().get_texts()} == {"table-compact", "scan-ordered"}
    assert axes.get_xlabel().startswith("skew") and axes.get_ylabel() == "registered handlers"
    texts = [t.get_text() for t in axes.findobj(matplotlib.text.Text)]
    assert sum("vector scan" in t for t in texts) == 8


def test_a_recording_of_another_study_has_no_map(measured: Recording, capsys: pytest.CaptureFixture[str]) -> None:
    other = replace(measured, study="scan", measurements=tuple(replace(m, name=m.name[5:]) for m in measured.measurements))
    assert when.cells(other) == [] and "winner-map" not in figures.names(other)
    assert main(["run", "wen"]) == 2
    assert "when" in capsys.readouterr().err


@pytest.mark.parametrize(("name", "s"), [("uniform", 0.0), ("zipf", 1.1), ("zipf:0.8", 0.8), ("zipf:2.0", 2.0)])
def test_the_skew_is_read_from_the_name_of_the_traffic(name: str, s: float) -> None:
    assert when.exponent(name) == s
