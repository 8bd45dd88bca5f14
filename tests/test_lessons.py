"""Wrong ways to measure: each is taken beside the right way, and is said to do only what its intervals show."""

import numpy as np
import pytest

from dispatchlab.errors import Error
from dispatchlab.ladder import calmer, faster
from dispatchlab.report import tables
from dispatchlab.studies import Options
from dispatchlab.studies import lessons as study
from dispatchlab.wrongways import SAYS, answer


def test_every_lesson_is_taken_both_ways() -> None:
    recording = study.run(Options(quick=True, rounds=2))
    assert set(recording.extra["lessons"]["rounds"][0]) == set(SAYS)
    text = tables(recording)
    assert "fresh process" in text and "in order of its keys" in text


def test_a_pass_with_another_checksum_has_no_time() -> None:
    plan = study.handlers(10)
    timed = study.Timed(plan, study.uniform(plan, pool=64), "scan", 1.0)
    timed.right ^= 1
    with pytest.raises(Error, match="checksum"):
        timed.once()


def test_what_a_wrong_way_does_is_what_the_rounds_show() -> None:
    rng = np.random.default_rng(2)
    calm, other = rng.normal(70, 0.5, 24), rng.normal(70, 0.5, 24)
    said = [answer(faster(x, calm, 12), calmer(x, calm, 12)) for x in (other, 1.5 * other, other / 2, rng.normal(70, 9, 24))]
    assert said[0].startswith("nothing seen")
    assert "more, x 1.5" in said[1] and "less, x 0.5" in said[2]
    assert "noisier" in said[3]
