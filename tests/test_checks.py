"""dispatchlab check: what it lists, and that no check can hold by comparing nothing or by breaking."""

import json

import numpy as np
import pytest

from dispatchlab import checks, cli


@pytest.fixture
def only(monkeypatch):
    """only(check, ...): the command runs these checks and no others."""
    return lambda *functions: monkeypatch.setattr(checks, "CHECKS", list(functions))


def holds(scale, found):
    """Two is two."""
    found.equal("two", 2, 2)


def fails(scale, found):
    """Three is four."""
    for n in range(9):
        found.equal(f"case {n}", np.arange(3), np.array([0, 1, 3]))


def raises(scale, found):
    """A check that breaks."""
    raise RuntimeError("the engine is gone")


def compares_nothing(scale, found):
    """Nothing at all."""


def test_check_holds_here(capsys):
    assert cli.main(["check", "--quick"]) == 0
    *lines, _, last = capsys.readouterr().out.splitlines()
    assert len(lines) == len(checks.CHECKS) >= 14
    assert all(line.startswith("ok ") and "  0 compared" not in line for line in lines)
    assert last == f"{len(lines)} checks, all hold"


def test_every_check_says_what_it_proves():
    for check in checks.CHECKS:
        assert len(check.__doc__.splitlines()[0]) > 40, check.__name__


def test_a_failed_check_gives_exit_code_1_and_its_first_failures(only, capsys):
    only(holds, fails)
    assert cli.main(["check"]) == 1
    text = capsys.readouterr().out
    assert "case 0: 1 of 3 differ, the first at 2: expected 3, got 2" in text
    assert "and 4 more" in text and "case 5" not in text
    assert text.splitlines()[-1] == "2 checks, 1 failed: fails"


@pytest.mark.parametrize(
    ("check", "says"), [(raises, "raised RuntimeError: the engine is gone"), (compares_nothing, "compared nothing")]
)
def test_a_check_that_breaks_or_compares_nothing_fails_and_the_rest_still_run(only, capsys, check, says):
    only(check, holds)
    assert cli.main(["check", "--json"]) == 1
    out = json.loads(capsys.readouterr().out)
    assert [(c["ok"], c["failures"]) for c in out["checks"]] == [(False, [says]), (True, [])]
    assert not out["ok"]
    assert out["checks"][1] == {"name": "holds", "proves": "Two is two", "ok": True, "compared": 1, "failures": []}


def test_arrays_of_another_shape_are_not_equal():
    found = checks.Findings()
    found.equal("answers", np.zeros(0), np.zeros(3))
    assert found.failures == ["answers: expected shape (3,), got (0,)"]


def test_other_packets_from_the_same_seed_are_noticed(monkeypatch):
    monkeypatch.setitem(checks.GOLDEN, "zipf", checks.GOLDEN["uniform"])
    outcome = checks.run_one(checks.same_packets)
    assert len(outcome.failures) == 1 and outcome.failures[0].startswith("zipf: 1 of 1 differ")


def test_a_full_check_compares_a_million_packets():
    cases = list(checks.matrix(checks.FULL.counts, 1))
    assert len(cases) * checks.FULL.packets >= 1_000_000
    assert checks.FULL.counts == (1, 2, 10, 100, 512)


def test_one_check_can_be_asked_for_alone(capsys):
    assert cli.main(["check", "--quick", "--only", "same-packets"]) == 0
    assert "1 checks, all hold" in capsys.readouterr().out
    assert cli.main(["check", "--only", "nothing-like-it"]) == 2
    assert "no such check" in capsys.readouterr().err
