"""compare pairs equal cells, tells slower from noise, and answers by its exit code."""

import argparse
import dataclasses
import itertools
import math

import pytest

from dispatchlab.commands import compare as command
from dispatchlab.compare import compare, differences
from dispatchlab.errors import UsageError

ROUNDS = 64


@pytest.fixture
def ask(tmp_path):
    """ask(old, new, *options) -> exit code of `dispatchlab compare`."""

    def run(old, new, *options):
        old.save(tmp_path / "a.json")
        new.save(tmp_path / "b.json")
        parser = argparse.ArgumentParser()
        command.add(parser.add_subparsers())
        args = parser.parse_args(["compare", str(tmp_path / "a.json"), str(tmp_path / "b.json"), *options])
        return args.run(args)

    return run


def verdicts(comparison):
    return {row.slot.label: row.verdict for row in comparison.rows}


def test_only_the_arm_that_got_slower_is_called_slower(sample, ask, capsys):
    old = sample(rounds=ROUNDS)
    new = sample(rounds=ROUNDS, seed=1, ns={"scan": 330.0})
    assert verdicts(compare(old, new, relative=True)) == {
        "scan 100": "slower",
        "scan-ordered 100": "unresolved",
        "direct-call 100": "unresolved",
    }
    assert ask(old, new, "--relative") == 3
    assert "slower" in capsys.readouterr().out


def test_an_arm_that_got_faster_is_no_reason_to_fail(sample, ask):
    old, new = sample(rounds=ROUNDS), sample(rounds=ROUNDS, seed=1, ns={"scan": 200.0})
    assert verdicts(compare(old, new))["scan 100"] == "faster"
    assert ask(old, new) == 0


def test_a_recording_compared_to_itself_is_one_everywhere(sample, ask):
    recording = sample(rounds=ROUNDS)
    assert all(row.ratio.value == 1.0 for row in compare(recording, recording).rows)
    assert ask(recording, recording) == 0


def test_a_run_slower_as_a_whole_is_seen_absolutely_and_cancels_relatively(sample):
    old = sample(rounds=ROUNDS)
    m = sample(rounds=ROUNDS, seed=1).measurements[0]
    new = sample(measurements=[dataclasses.replace(m, ticks=m.ticks * 3 // 2)])
    assert set(verdicts(compare(old, new)).values()) == {"slower"}
    assert set(verdicts(compare(old, new, relative=True)).values()) == {"unresolved"}


def test_runs_alike_are_called_slower_about_as_rarely_as_promised(sample):
    """A family at 95 % errs to this side in 2.5 % of pairs: 9 of 100 is beyond chance."""
    runs = [sample(rounds=ROUNDS, seed=i) for i in range(101)]
    assert sum(bool(compare(a, b, relative=True).slower) for a, b in itertools.pairwise(runs)) <= 8


def test_more_cells_widen_every_interval(sample):
    def width(handlers):
        rows = compare(sample(handlers, ROUNDS), sample(handlers, ROUNDS, seed=1)).rows
        return next(math.log(r.ratio.high / r.ratio.low) for r in rows if r.slot.label == "scan 100")

    assert width((100,)) < width((100, 10)) < width((100, 10, 25, 50))


def test_twins_stay_out_and_cells_of_one_side_are_counted(sample):
    comparison = compare(sample((10, 100), ROUNDS), sample((100, 25, 50), ROUNDS))
    assert {row.measurement for row in comparison.rows} == {"100 handlers"}
    assert len(comparison.rows) == 4 and comparison.alone == (4, 8)
    assert "4 cells only in A, 8 only in B" in command.table(comparison)


def test_the_table_states_the_correction_and_what_it_leaves_out(sample):
    text = command.table(compare(sample(rounds=ROUNDS), sample(rounds=ROUNDS)))
    assert "95 % for all 4 cells together (98.75 % each, Bonferroni)" in text
    assert "drift of the machine between the runs is not in them" in text


def test_disjoint_recordings_are_one_line(sample):
    with pytest.raises(UsageError, match="no cell in common") as caught:
        compare(sample((10,)), sample((100,)))
    assert "\n" not in str(caught.value)
    with pytest.raises(UsageError, match="no cell in common"):
        compare(sample(), sample(measurements=[]))


def test_other_surroundings_are_refused_unless_forced(sample, ask, capsys):
    old = sample(rounds=ROUNDS)
    new = sample(rounds=ROUNDS, environment={**old.environment, "cpu_model": "Model B"})
    with pytest.raises(UsageError, match='cpu_model "Model A" and "Model B"'):
        ask(old, new)
    assert ask(old, new, "--force") == 0
    assert 'not alike: cpu_model "Model A" and "Model B"' in capsys.readouterr().out


def test_other_packets_and_blocks_are_differences_but_another_commit_is_the_point(sample):
    old = sample()
    m = dataclasses.replace(old.measurements[0], block=4096)
    assert differences(old, sample(package={"version": "0.2.0", "commit": "abc"})) == []
    assert differences(old, sample(seed=3, measurements=[m])) == ["block of 100 handlers 8192 and 4096"]
    assert differences(old, dataclasses.replace(old, seed=3)) == ["seed 0 and 3"]


def test_a_setting_differs_by_its_value_not_by_its_wording(sample):
    old = sample()
    thp = {"state": "ok", "value": "never", "why": "in other words"}
    assert differences(old, sample(environment={**old.environment, "thp": thp})) == []
    always = differences(old, sample(environment={**old.environment, "thp": {**thp, "value": "always"}}))
    assert always == ['thp "never" and "always"']


def test_a_recording_whose_checks_failed_ends_with_1(sample, ask, capsys):
    old = sample(rounds=ROUNDS)
    m = dataclasses.replace(old.measurements[0], failures=("probes differ",))
    assert ask(old, sample(measurements=[m])) == 1
    assert "b.json: a check failed: probes differ" in capsys.readouterr().err


@pytest.mark.parametrize("rounds", [2, 3, 7])
def test_few_rounds_are_unresolved_never_a_traceback(sample, ask, rounds):
    old, new = sample(rounds=rounds), sample(rounds=rounds, seed=1, ns={"scan": 900.0})
    assert set(verdicts(compare(old, new)).values()) == {"unresolved"}
    assert ask(old, new) == 0 and ask(old, new, "--relative") == 0


def test_ticks_of_zero_are_unresolved(sample, ask):
    m = sample(rounds=ROUNDS).measurements[0]
    none = sample(measurements=[dataclasses.replace(m, ticks=m.ticks * 0)])
    assert set(verdicts(compare(sample(rounds=ROUNDS), none)).values()) == {"unresolved"}
    assert ask(none, none) == 0 and ask(none, none, "--relative") == 0


def test_a_run_whose_twin_failed_proves_nothing(sample, ask, capsys):
    old = sample(rounds=ROUNDS)
    m = sample(rounds=ROUNDS, seed=1, ns={"scan": 900.0}).measurements[0]
    ticks = m.ticks.copy()
    ticks[:, m.twin] = ticks[:, m.twin] * 11 // 10
    assert verdicts(compare(old, sample(measurements=[m])))["scan 100"] == "slower"
    assert ask(old, sample(measurements=[dataclasses.replace(m, ticks=ticks)])) == 0
    assert "unresolved: the twin failed in B" in capsys.readouterr().out


def test_ratios_to_different_references_are_not_compared(sample):
    m = sample(rounds=ROUNDS).measurements[0]
    slots = list(m.slots)
    slots[3] = dataclasses.replace(slots[0], label="scan 100 twin", role="twin")
    other = dataclasses.replace(m, slots=tuple(slots), reference=0)
    with pytest.raises(UsageError, match="other reference slots"):
        compare(sample(rounds=ROUNDS), sample(measurements=[other]), relative=True)
