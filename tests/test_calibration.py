"""Rates of a calibration are counted right and carry exact intervals."""

import json
import math

import numpy as np
import pytest
from scipy.stats import binom

from dispatchlab.calibration import Compared, calibrate, outcome, rate
from dispatchlab.evidence import resolution_table
from dispatchlab.instrument import counter_lines
from dispatchlab.intervals import Estimate


def compared(effect: float, *intervals: tuple[float, float]) -> Compared:
    return Compared(
        effect,
        1.0,
        tuple(
            Estimate(math.sqrt(max(low, 0.5) * min(high, 9.0)), low, high, "ratio", 9, 0.95)
            for low, high in intervals
        ),
    )


@pytest.mark.parametrize(("hits", "trials"), [(0, 10), (3, 10), (10, 10), (20, 400)])
def test_the_interval_of_a_rate_is_the_exact_binomial_one(hits: int, trials: int) -> None:
    found = rate(hits, trials)
    assert found.low <= found.value == hits / trials <= found.high
    if hits > 0:
        assert binom.sf(hits - 1, trials, found.low) == pytest.approx(0.025)
    if hits < trials:
        assert binom.cdf(hits, trials, found.high) == pytest.approx(0.025)


def test_no_trials_tell_nothing() -> None:
    assert (rate(0, 0).low, rate(0, 0).high) == (0.0, 1.0)
    assert outcome(compared(0.0)).different.trials == 0


def test_identical_slots_count_false_alarms_and_coverage() -> None:
    found = outcome(compared(0.0, (0.99, 1.01), (0.98, 1.02), (1.001, 1.01), (0.9, 0.99)))
    assert (found.different.hits, found.covered.hits, found.wrong_way.hits) == (2, 2, 0)
    assert 0.01 < found.half_width < 0.05


def test_injected_effects_count_power_wrong_signs_and_coverage_of_the_effect() -> None:
    found = outcome(compared(0.01, (1.001, 1.02), (1.011, 1.02), (0.99, 1.02), (0.9, 0.99)))
    assert (found.different.hits, found.covered.hits, found.wrong_way.hits) == (3, 2, 1)
    assert outcome(compared(-0.1, (1.1, 1.2), (0.8, 0.95))).wrong_way.hits == 1


def test_coverage_is_of_what_was_really_injected() -> None:
    nominal = compared(0.01, (1.0095, 1.0105), (1.0102, 1.0110))
    assert outcome(nominal).covered.hits == 1
    really = Compared(0.01, 1.0, nominal.estimates, (0.0120, 0.0105))
    assert outcome(really).covered.hits == 1
    assert outcome(Compared(0.01, 1.0, nominal.estimates, (0.0100, 0.0105))).covered.hits == 2


def test_a_comparison_without_an_interval_is_not_a_detection() -> None:
    found = outcome(compared(0.02, (0.0, math.inf), (1.01, 1.03)))
    assert (found.different.hits, found.covered.hits) == (1, 2)
    assert found.half_width == pytest.approx(math.log(1.03 / 1.01) / 2)
    assert math.isnan(found.spread)


def test_outcomes_are_sorted_pooled_and_strict_json() -> None:
    done = calibrate([compared(0.02, (1.0, 1.05)), compared(0.0), compared(0.01, (1.02, 1.03))], 0.95)
    assert [o.effect for o in done.outcomes] == [0.0, 0.01, 0.02]
    assert (done.coverage.hits, done.coverage.trials) == (1, 2)
    plain = json.loads(json.dumps(done.as_dict(), allow_nan=False))
    assert plain["outcomes"][0]["half_width"] is None


def test_rates_agree_with_their_simulation() -> None:
    z = np.random.default_rng(1).standard_normal(4000) * 0.001
    pairs = tuple((float(np.exp(c - 0.00196)), float(np.exp(c + 0.00196))) for c in z)
    found = outcome(compared(0.0, *pairs))
    assert found.different.low < 0.05 < found.different.high
    assert found.spread == pytest.approx(0.001, rel=0.05)
    assert found.half_width == pytest.approx(0.00196)


def test_the_table_of_tools_puts_each_against_ours() -> None:
    row = {"comparisons": 20, "seconds": 1.0, "low": 0.0002, "high": 0.0004}
    rows = [row | {"tool": "ours", "spread": 0.0003}, row | {"tool": "another", "spread": 0.006}]
    document = {"resolution": rows, "times": 20.0, "created": "2026-01-02T03:04:05Z", "environment": {"cpu_model": "a CPU"}}
    table = resolution_table(document)
    assert [r[-1] for r in table.rows] == ["1.0x", "20.0x"]
    assert table.rows[0][3] == "0.030 % [0.020, 0.040]"
    assert table.notes[0].endswith("20.0 times as much as ours.") and table.notes[-1] == "a CPU; 2026-01-02."


def test_counters_are_counts_or_reasons_and_never_zero() -> None:
    off = {"per_packet": None, "source": None}
    lines = list(
        counter_lines(
            {
                "task-clock": {"per_packet": 82.5, "source": "perf", "reason": None},
                "cycles": off | {"reason": "no PMU"},
                "instructions": off | {"reason": "no PMU"},
            }
        )
    )
    assert lines[0].endswith("task-clock 82.5")
    assert lines[1] == "counters   not available here: cycles, instructions: no PMU"
    assert list(counter_lines({})) == []
