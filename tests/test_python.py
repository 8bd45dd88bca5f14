"""Python dispatches the same packets to the same handlers with the same answers, and the tables say what the rounds show."""

from dataclasses import replace

import numpy as np
import pytest

import dispatchlab as dl
from dispatchlab import interpreted, oracle
from dispatchlab.errors import Error, UsageError
from dispatchlab.pythontables import drives, lesson, python_tables, ratios
from dispatchlab.report import tables
from dispatchlab.studies import Options
from dispatchlab.studies import python as study

WAYS = list(study.WAYS.values())


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("order", ["registration", "reverse", "shuffled"])
@pytest.mark.parametrize("residual", [0, 0.1, 1])
def test_python_answers_every_packet_as_the_oracle_and_the_engine_do(way, order: str, residual: float) -> None:
    hs = dl.handlers(50, residual=residual, order=order, overlap=residual > 0, seed=3, size="half")
    tr = dl.traffic.zipf(hs, 0.8, pool=1000, unmatched=0.1)
    dispatch, who = way(hs)
    packets = interpreted.packets_of(tr.packets)
    assert study.differences(hs, tr, packets, dispatch, who) == []
    assert [dispatch(p) for p in packets] == oracle.answers(hs, tr.packets).tolist()
    assert -1 in {who(p) for p in packets}


def test_a_handler_or_an_answer_that_differs_is_found() -> None:
    hs = dl.handlers(20)
    tr = dl.traffic.uniform(hs, pool=100)
    packets = interpreted.packets_of(tr.packets)
    dispatch, who = interpreted.loop(hs)
    assert any("handlers" in line for line in study.differences(hs, tr, packets, dispatch, lambda p: max(who(p), 0)))
    wrong = study.differences(hs, tr, packets, lambda p: dispatch(p) ^ (p[0] == 257), who)
    assert len(wrong) == 3
    with pytest.raises(Error, match="other answers"):
        study.timed(dispatch, packets, [0] * 100, 1.0)


def test_a_body_that_python_has_not_is_refused() -> None:
    with pytest.raises(UsageError, match="chain"):
        interpreted.loop(dl.handlers(3, body="wide"))


def test_the_study_times_every_way_in_every_round_and_prints_what_it_found() -> None:
    recording = study.run(Options(quick=True, rounds=3, handlers=30))
    facts = recording.extra["python"]
    jobs = {f"{name} {size}" for name in (*study.WAYS, *study.ARMS) for size in study.SIZES} | {"call"}
    assert len(facts["rounds"]) == 3
    assert all(set(row) == jobs and min(row.values()) > 0 for row in facts["rounds"])
    text = tables(recording)
    assert "Python dict / engine table" in text
    assert "One call from Python into the engine" in text
    assert list(python_tables(replace(recording, extra={}))) == []


def facts(**ns: float) -> dict:
    """Twenty rounds around these times."""
    rng = np.random.default_rng(5)
    usual = {"loop fat": 9000, "dict fat": 6000, "scan fat": 200, "table-compact fat": 90, "call": 50}
    times = usual | {name.replace("_", " "): value for name, value in ns.items()}
    return {"rounds": [{k: v * rng.normal(1, 0.003) for k, v in times.items()} for _ in range(20)], "sizes": ["fat"], "packets": 8192}


def test_what_is_concluded_is_what_the_rounds_show() -> None:
    slow, equal, quick = facts(), facts(dict_fat=200), facts(dict_fat=150)
    assert "still takes 30 times as long as the engine's scan, 66.6" in lesson("fat", ratios(slow))
    assert "beats the engine's scan" in lesson("fat", ratios(quick))
    assert "comes up to" in lesson("fat", ratios(equal))
    assert "not seen to win" in lesson("fat", ratios(facts(loop_fat=6000)))
    assert "So Python drives, and C dispatches." in drives(slow)
    assert "does not decide" in drives(facts(call=1e6))
    assert "So Python drives" not in drives(facts(dict_fat=300))
