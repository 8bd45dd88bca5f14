"""The price list: every round did the work it was to do, the steps are those of the data, and the answer follows the numbers."""

from dataclasses import replace

import numpy as np
import pytest

from dispatchlab import _engine
from dispatchlab.errors import Error
from dispatchlab.figures import draw, names
from dispatchlab.intervals import Estimate
from dispatchlab.prices import Explained, analysed, steps, within
from dispatchlab.recording import Recording
from dispatchlab.report import tables
from dispatchlab.studies import Options
from dispatchlab.studies import costs as study


@pytest.fixture(scope="module")
def short() -> Recording:
    return study.run(Options(quick=True, rounds=1, budget=0.4))


@pytest.mark.parametrize("stride", [64, 4096])
def test_a_chase_goes_once_through_every_line_before_it_returns(stride: int) -> None:
    chain = _engine.cost_chain(257, stride, False, 7)
    turns = [_engine.cost_chase(chain, n, 1)["checksum"] for n in range(257)]
    assert turns == [*range(1, 257), 0]


@pytest.mark.parametrize(
    ("what", "kinds"),
    [("branch", 3), ("call", 3), ("divide", 2), ("add", 2), ("empty", 2), ("syscall", 1), ("fault", 1)],
)
def test_every_thing_computes_what_is_known_beforehand(what: str, kinds: int) -> None:
    for kind in range(kinds):
        cost = _engine.cost_run(what, kind, 1000, 37, 5)
        assert cost["checksum"] == cost["expected"] and cost["count"] == 1000


def test_a_run_that_did_other_work_is_refused() -> None:
    cost = _engine.cost_run("divide", 1, 1000, 1, 5)
    with pytest.raises(Error, match="divide"):
        study.checked("divide", {**cost, "checksum": cost["checksum"] ^ 1}, 1.0)


@pytest.mark.parametrize(
    ("what", "kind", "count", "targets"),
    [("branch", 3, 10, 1), ("branch", 0, 0, 1), ("call", 1, 10, 0), ("call", 1, 10, 1025), ("nothing", 0, 10, 1)],
)
def test_what_cannot_be_run_is_refused(what: str, kind: int, count: int, targets: int) -> None:
    with pytest.raises(ValueError, match="costs"):
        _engine.cost_run(what, kind, count, targets, 1)
    with pytest.raises(ValueError, match="chain"):
        _engine.cost_chain(10, 65, False, 1)


@pytest.mark.skipif(len(_engine.allowed_cpus()) < 2, reason="one allowed CPU: nobody to contend with")
@pytest.mark.parametrize("apart", [False, True])
def test_no_add_of_two_threads_is_lost(apart: bool) -> None:
    first, second = _engine.allowed_cpus()[:2]
    cost = _engine.cost_adds(first, second, 20_000, apart)
    assert cost["checksum"] == cost["expected"] == 40_000


@pytest.mark.parametrize("capacities", [(1 << 15, 1 << 20, 1 << 25), (1 << 14, 1 << 18, 3 << 20)])
def test_the_steps_of_a_made_up_memory_are_found(capacities: tuple[int, ...]) -> None:
    x = np.array(study.sizes(False), np.float64)
    ns = np.full(x.size, 1.0)
    for capacity, more in zip(capacities, (3.0, 10.0, 100.0), strict=True):
        ns += more * (1 - np.minimum(1, capacity / x) ** 2)
    noisy = ns * np.random.default_rng(1).normal(1, 0.03, (12, x.size))
    for found, made in zip(steps(x, noisy, 3).capacities, capacities, strict=True):
        assert made / 1.3 < found.value < made * 1.3
        assert found.low <= made <= found.high


def test_a_step_elsewhere_than_the_kernel_says_is_called_so() -> None:
    found = Estimate(8e6, 7e6, 9e6, "x", 10, 0.95)
    assert "NOT within" in within(found, 32 << 20)
    assert "NOT" not in within(found, 8 << 20)
    assert "no size" in within(found, None)


@pytest.mark.parametrize(("priced", "half", "answer"), [(300, 5, "explains"), (30, 5, "does not explain"), (300, 200, "undecided")])
def test_the_answer_follows_the_intervals(priced: float, half: float, answer: str) -> None:
    rise = Estimate(320, 318, 322, "ns", 100, 0.95)
    of_calls = Estimate(priced, priced - half, priced + half, "ns", 20, 0.95)
    assert answer in Explained(45, rise, of_calls, of_calls).answer


def test_a_study_of_one_round_has_every_price_and_no_interval(short: Recording) -> None:
    text = tables(short)
    for word in ("load from L3", "last TLB missed", "indirect call, mispredicted", "64-bit division", "page fault", "Answer:"):
        assert word in text
    assert short.ok and "no interval" in text
    assert {"costs-latency", "costs-targets"} <= set(names(short))
    for name in ("costs-latency", "costs-targets"):
        draw(short, name)


def test_without_a_second_cpu_or_the_kernels_sizes_the_list_is_still_made(short: Recording) -> None:
    facts = short.extra["costs"]
    alone = [{k: v for k, v in row.items() if k not in ("add together", "add apart")} for row in facts["rounds"]]
    blind = replace(
        short, environment={**short.environment, "caches": {}}, measurements=(), extra={"costs": {**facts, "rounds": alone}}
    )
    text = tables(blind)
    assert "no size" in text and "contended" not in text and "not measured" in text
    draw(blind, "costs-latency")
    assert analysed(blind).explained() is None
