"""A claim holds, does not hold here, or is unresolved, and each for the right reason."""

import math
import re
from dataclasses import replace

import pytest

from dispatchlab import claims
from dispatchlab.claimmath import COMPUTE, Found
from dispatchlab.claims import evaluate, judge, load_claims
from dispatchlab.errors import Error
from dispatchlab.intervals import Estimate


def answers(recording):
    return {t.claim.id: t for t in evaluate(recording)}


def test_every_claim_is_tested_by_a_full_recording_and_has_its_figure_and_source(study):
    recording = study()
    measured = {m.name for m in recording.measurements}
    about = [claim for claim in load_claims() if claim.measurement in measured]
    assert len(evaluate(recording)) == len(about) >= 24
    for claim in load_claims():
        assert claim.published and re.search(r"section \d+", claim.source), claim.id
        assert not claim.says[0].islower() and not claim.says.endswith("."), claim.id


def test_every_word_of_the_vocabulary_is_used():
    assert {claim.compute for claim in load_claims()} == set(COMPUTE)


def test_a_machine_like_the_published_one_bears_the_claims_out(study):
    assert {t.answer for t in evaluate(study())} == {"holds"}


def test_a_machine_unlike_it_contradicts_them(study):
    def unlike(slot, placement):
        """Every predicate is free at 10 handlers; sorting helps at once; a list that moves is the best of all."""
        base = {"scan": 300.0, "scan-ordered": 120.0, "scan-mtf": 110.0, "table-compact": 50.0, "table-direct16": 60.0}
        if slot.arm == "scan" and slot.handlers == 10:
            return 52.0
        return base.get(slot.arm, 40.0)

    found = answers(study(cost=unlike))
    contradicted = {"cost-linear-in-probes", "table-is-not-flat", "compact-costs-no-time", "sorting-uniform"}
    contradicted |= {"sorting-hot", "sorting-worst", "mtf-loses-uniform", "mtf-trails-sorting-zipf"}
    contradicted |= {"loop-floor-is-small", "large-pool-measures-memory"}
    assert {name for name, t in found.items() if t.answer == "does not hold here"} == contradicted
    assert found["sorting-uniform"].estimate.value == pytest.approx(180 / 250, rel=0.01)
    assert found["cost-linear-in-probes"].estimate.value == pytest.approx((250 / 52.3) / (2 / 5.7), rel=0.05)
    assert found["search-outweighs-call"].answer == "holds"


def test_a_noisy_run_resolves_nothing_but_the_counts(study):
    for t in evaluate(study(rounds=10, noise=2.0)):
        exact = not COMPUTE[t.claim.compute].uncertain
        assert t.answer == ("holds" if exact else "unresolved"), t


def test_too_few_rounds_resolve_nothing_but_the_counts(study):
    assert {t.answer for t in evaluate(study(rounds=4)) if COMPUTE[t.claim.compute].uncertain} == {"unresolved"}


def test_what_depends_on_code_placement_is_unresolved(study):
    def placed(slot, placement):
        return {"scan": (200.0, 300.0, 200.0, 300.0)[placement], "scan-mtf": 255.0}.get(slot.arm, 50.0)

    found = answers(study(("traffic",), cost=placed, noise=0.0005))["mtf-loses-uniform"]
    assert found.answer == "unresolved" and "placements" in found.reason
    assert found.estimate.low > 1.0, "the interval alone would have said that it holds"


def test_a_failed_twin_leaves_only_the_counts(study):
    for t in evaluate(study(twin=1.05)):
        if COMPUTE[t.claim.compute].uncertain:
            assert t.answer == "unresolved" and "twin" in t.reason
        else:
            assert t.answer == "holds"


def test_a_pool_that_fits_the_last_cache_decides_nothing(study):
    recording = study(("pool",))
    roomy = replace(recording, environment={**recording.environment, "caches": {"L3": 128 << 20}})
    unknown = replace(recording, environment={})
    assert answers(recording)["large-pool-measures-memory"].answer == "holds"
    for machine, why in ((roomy, "no pool is larger"), (unknown, "unknown")):
        found = answers(machine)["large-pool-measures-memory"]
        assert found.answer == "unresolved" and why in found.reason


def test_probes_that_were_miscounted_are_told(study):
    recording = study(("scan",))
    m = recording.measurements[0]
    label = next(s.label for s in m.slots if s.arm == "scan" and s.handlers == 100)
    wrong = replace(recording, measurements=(replace(m, probes={**m.probes, label: 53.3}),))
    found = answers(wrong)
    assert found["count-equals-enumeration"].answer == "does not hold here"
    assert found["probes-at-100"].answer == "does not hold here"
    assert found["expected-probes-at-100"].answer == "holds"


def test_claims_about_what_was_not_measured_are_left_out(study, sample):
    assert {t.claim.measurement for t in evaluate(study(("pool", "scan")))} == {"pool", "scan"}
    assert evaluate(sample()) == [] and claims.claims_table(sample()) is None


def test_the_more_claims_the_wider_the_intervals(study):
    recording = study()
    one = [c for c in load_claims() if c.id == "table-is-not-flat"]
    alone = evaluate(recording, one)[0].estimate
    among = answers(recording)["table-is-not-flat"].estimate
    assert alone.confidence == pytest.approx(0.95) and among.confidence > 0.99
    assert among.high - among.low > alone.high - alone.low


@pytest.mark.parametrize(
    "low, value, high, spread, expected",
    [
        (1.0, 1.1, 1.2, 0.0, "holds"),
        (0.9, 1.1, 1.2, 0.0, "unresolved"),
        (1.0, 1.1, 1.2, 0.2, "unresolved"),
        (0.7, 0.8, 0.9, 0.0, "does not hold here"),
        (0.7, 0.8, 0.9, 0.2, "unresolved"),
        (2.1, 2.2, 2.3, 0.0, "does not hold here"),
        (0.5, 1.5, 2.5, 0.0, "unresolved"),
        (1.0, 1.0, 1.0, 0.0, "holds"),
        (-math.inf, math.nan, math.inf, 0.0, "unresolved"),
    ],
)
def test_the_range_is_one_to_two(low, value, high, spread, expected):
    assert judge(Found(Estimate(value, low, high, "ratio", 30, 0.95), spread), 1.0, 2.0)[0] == expected


GOOD = """
[[claim]]
id = "a"
source = "section 1"
says = "A"
published = "1"
measurement = "scan"
compute = "probes"
cells = [{ arm = "scan", handlers = 10 }]
at_most = 6.0
"""


@pytest.mark.parametrize(
    "text, told",
    [
        (GOOD + GOOD, "two claims of one id"),
        (GOOD.replace("at_most", "at_mots"), "at_mots"),
        (GOOD.replace('says = "A"', ""), "no says"),
        (GOOD.replace('"probes"', '"guess"'), "nothing computes that"),
        (GOOD.replace('"probes"', '"ratio"'), "wrong number of cells"),
        (GOOD.replace("handlers =", "handler ="), "no such field of a slot"),
        (GOOD.replace("at_most = 6.0", ""), "nothing can contradict"),
        (GOOD.replace("at_most = 6.0", "at_least = 7\nat_most = 6"), "nothing can contradict"),
        (GOOD + "[", "not TOML"),
    ],
)
def test_claims_that_cannot_be_meant_are_refused_in_one_line(tmp_path, text, told):
    path = tmp_path / "claims.toml"
    path.write_text(text)
    with pytest.raises(Error, match=re.escape(told)) as refused:
        load_claims(path)
    assert "\n" not in str(refused.value)
    path.with_name("good.toml").write_text(GOOD)
    assert load_claims(path.with_name("good.toml"))[0].at_most == 6.0
