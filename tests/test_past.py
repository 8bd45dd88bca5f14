"""Arms past the table: answers of every one of them on a million packets and more, orders of calls, batches of every length, what is
learned by the clock, and the study that sets them side by side."""

import os
import shutil
import subprocess
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest

import dispatchlab as dl
from dispatchlab import _engine, oracle, past, report, studies
from dispatchlab.arms import BATCHES, prepare, results
from dispatchlab.cases import KEYS, RESIDUALS, awkward
from dispatchlab.design import stream
from dispatchlab.figures import draw, names
from dispatchlab.handlers import ORDERS
from dispatchlab.plugins import load
from dispatchlab.plugins.building import build
from dispatchlab.studies import past_the_table

ROOT = Path(__file__).parent.parent
SIZES = (16, 64, 256, 1024, 4096)
GROUPED = [f"table-grouped-{b}" for b in SIZES]
RUNS = [f"table-runs-{b}" for b in SIZES]
SINGLE = [
    "scan-simd", "hash", "hash-chained", "binary-search", "perfect-hash", "cache-last", "cache-last-scan", "top-n", "switch",
]  # fmt: skip
COUNTS = (1, 2, 10, 100, 512)
MANY = 1 << 14
"""tests/bench/million.py does the same with 2^20 packets for each case."""


def holds(arm, hs):
    """switch is closed over the first 128 handlers; the others hold every set."""
    return arm != "switch" or hs.count <= 128


def test_these_are_all_the_new_arms():
    named = {arm.name: arm for arm in dl.arms()}
    assert set(BATCHES) == {*GROUPED, *RUNS}
    assert {*SINGLE, *GROUPED, *RUNS} <= set(named)


# --- answers -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", COUNTS)
def test_every_new_arm_answers_each_case_as_the_oracle_does(count):
    every_case(count, MANY)


def every_case(count, packets):
    """Each (count, residual, order): so many packets and 7 more, 8192 different ones in a seeded mix, no batch like another."""
    for residual, order in product(RESIDUALS, ORDERS):
        hs = dl.handlers(count, size="tiny", residual=residual, order=order, frequency=np.arange(count) * 7 % 13)
        few = awkward(hs, 8192, count)
        which = (stream(count, packets + 7) % np.uint64(8192)).astype(np.intp)
        tr = dl.traffic.from_packets(few.packets[which])
        wanted = oracle.answers(hs, few.packets)[which]
        for arm in (arm for arm in (*SINGLE, *GROUPED, *RUNS) if holds(arm, hs)):
            wrong = np.flatnonzero(results(arm, hs, tr) != wanted)
            assert not len(wrong), f"{arm}, residual {residual}, {order}: packet {wrong[0]} of {len(wrong)} wrong ones"


@pytest.mark.parametrize("arm", ["table-grouped-4096", "table-runs-4096"])
def test_a_batch_of_every_length_from_1_to_4096_answers_as_the_oracle_does(arm):
    hs = dl.handlers(100, size="tiny")
    packets = awkward(hs, 4096, 3).packets
    wanted = oracle.answers(hs, packets)
    for n in range(1, 4097):
        got = np.frombuffer(_engine.slot(arm, hs.engine, packets[:n]).results(), np.uint32)
        assert np.array_equal(got, wanted[:n]), n


@pytest.mark.parametrize("arm", BATCHES)
def test_a_last_batch_that_is_not_full_loses_nothing(arm):
    hs = dl.handlers(100, size="tiny")
    packets = awkward(hs, 3 * 4096, 4).packets
    wanted = oracle.answers(hs, packets)
    size = int(arm.rpartition("-")[2])
    for n in (1, size - 1, size, size + 1, 2 * size - 1, 2 * size + 1, 3 * size):
        slot = _engine.slot(arm, hs.engine, packets[:n])
        assert np.array_equal(np.frombuffer(slot.results(), np.uint32), wanted[:n]), n
        sums = {slot.count()[0], slot.sample(3, 0)[0], *(slot.run(placement) for placement in range(4))}
        assert sums == {oracle.checksum(wanted[:n])}, n


@pytest.mark.parametrize("residual", [0, 0.1, 1])
def test_vectors_of_every_width_and_every_tail_answer_as_the_oracle_does(residual):
    """1 to 4 keys, to 16, to 32 and beyond: each is compared in its own way."""
    vectors(residual, range(1, 70))


def test_the_longest_lists_in_vectors_answer_as_the_oracle_does():
    vectors(0.1, (127, 128, 129, 511, 512))


def vectors(residual, counts):
    for count in counts:
        hs = dl.handlers(count, size="tiny", residual=residual, order="shuffled", seed=count)
        packets = awkward(hs, 2048, count).packets.copy()
        packets["key"][::97] = 0  # what stands behind the last key
        assert np.array_equal(results("scan-simd", hs, dl.traffic.from_packets(packets)), oracle.answers(hs, packets)), count


@pytest.mark.parametrize("name", KEYS)
def test_tables_find_keys_that_collide_and_no_others(name):
    every_key(name, 100)


@pytest.mark.parametrize("name", KEYS)
def test_as_many_keys_as_there_can_be_are_found_and_no_others(name):
    every_key(name, 512)


def every_key(name, count):
    """All 65536 keys, asked of every table over `count` handlers."""
    hs = dl.handlers(count, size="tiny", residual=0.4, order="shuffled", keys=KEYS[name](np.arange(count)))
    every = np.zeros(1 << 16, dl.traffic.PACKET)
    every["key"] = np.arange(1 << 16)
    wanted = oracle.answers(hs, every)
    for arm in ("hash", "hash-chained", "binary-search", "perfect-hash", "scan-simd", "cache-last", "top-n"):
        assert np.array_equal(results(arm, hs, dl.traffic.from_packets(every)), wanted), arm


@pytest.mark.parametrize("arm", ["cache-last", "cache-last-scan"])
def test_what_is_remembered_is_never_used_for_a_key_with_residual_predicates(arm):
    """Two packets of one key and one flow that belong to different handlers, time after time."""
    hs = dl.handlers(100, size="tiny", overlap=True)
    packets = awkward(hs, 8192, 8).packets.copy()
    packets["flow"] = np.arange(8192) % 3
    tr = dl.traffic.from_packets(packets)
    assert np.array_equal(results(arm, hs, tr), oracle.answers(hs, packets))
    assert np.array_equal(dl.count_probes(arm, hs, tr), dl.expected_probes(arm, hs, tr))


def test_the_memory_asks_less_than_the_arm_behind_it_where_runs_are_long():
    hs = dl.handlers(100, size="tiny")
    tr = dl.traffic.bursts(hs, 50, pool=8192)
    assert dl.count_probes("cache-last-scan", hs, tr).mean() < dl.count_probes("scan", hs, tr).mean() / 5


# --- orders --------------------------------------------------------------------------------------------------------

NUMBERING = """
#include <dispatchlab/plugin.h>
#include <stddef.h>
static uint32_t calls;
static uint32_t claimed_keys(uint16_t *keys, uint32_t capacity) {
  for (uint32_t i = 0; i < 40 && i < capacity; ++i) keys[i] = (uint16_t)(50000 + i);
  return 40;
}
static int32_t create(void **instance) { *instance = NULL; return DISPATCHLAB_OK; }
static void destroy(void *instance) { (void)instance; }
static int32_t process(void *instance, const dispatchlab_view *packet, uint32_t *result) {
  (void)instance;
  (void)packet;
  *result = ++calls;
  return DISPATCHLAB_OK;
}
static const dispatchlab_plugin table = {
    .magic = DISPATCHLAB_PLUGIN_MAGIC, .abi_version = 2, .struct_size = sizeof(dispatchlab_plugin), .oldest_host = 1,
    .name = "numbering", .claimed_keys = claimed_keys, .create = create, .destroy = destroy, .process = process};
DISPATCHLAB_PLUGIN_DEFINE(table)
"""


@pytest.fixture(scope="module")
def numbering(tmp_path_factory):
    """40 handlers that answer with how many calls there have been: the answers tell the order of the calls."""
    if shutil.which(os.environ.get("CC", "cc").split()[0]) is None:
        pytest.skip("no compiler to build a plugin with")
    folder = tmp_path_factory.mktemp("numbering")
    (folder / "numbering.c").write_text(NUMBERING)
    return dl.handlers(0, size="tiny", residual=0, plugins=[load(build(folder / "numbering.c"))])


def calls(arm, hs, packets):
    """When each packet's handler was called, from 0 on."""
    numbers = np.frombuffer(_engine.slot(arm, hs.engine, packets).results(), np.uint32).astype(np.int64)
    return numbers - numbers.min()


@pytest.mark.parametrize("arm", [*RUNS, *(a for a in SINGLE if a != "switch")])
def test_handlers_are_called_in_the_order_of_the_packets(numbering, arm):
    packets = dl.traffic.bursts(numbering, 3, pool=10_000, unmatched=0).packets
    assert np.array_equal(calls(arm, numbering, packets), np.arange(10_000))


@pytest.mark.parametrize("arm", GROUPED)
def test_each_handler_sees_its_packets_in_order_and_is_called_once_over_for_all_it_has_in_a_batch(numbering, arm):
    packets = dl.traffic.zipf(numbering, pool=10_000, unmatched=0).packets
    when, size = calls(arm, numbering, packets), int(arm.rpartition("-")[2])
    for key in np.unique(packets["key"]):
        assert (np.diff(when[packets["key"] == key]) > 0).all(), "in order of arrival"
    for at in range(0, 10_000, size):
        turn, keys = when[at : at + size], packets["key"][at : at + size]
        assert turn.min() == at and turn.max() == at + len(turn) - 1, "a batch is over before the next begins"
        called = keys[np.argsort(turn)]
        assert (called[1:] != called[:-1]).sum() + 1 == len(np.unique(keys)), "one group for each handler"
    assert not np.array_equal(when, np.arange(10_000)), "between handlers the order is another: that is what grouping is"


def test_a_set_with_a_plugin_or_other_keys_or_too_many_handlers_is_no_closed_one(numbering):
    tr = dl.traffic.uniform(numbering, pool=64)
    with pytest.raises(dl.UsageError, match="closed set cannot admit a plugin"):
        prepare("switch", numbering, tr)
    for hs, why in (
        (dl.handlers(129, size="tiny"), "built over the first 128"),
        (dl.handlers(3, size="tiny", residual=0, keys=[257, 264, 272]), r"default keys of handlers, 257 \+ 7 i"),
        (dl.handlers(3, size="half"), "tiny and fat bodies only"),
    ):
        with pytest.raises(dl.UsageError, match=why):
            prepare("switch", hs, dl.traffic.uniform(hs, pool=64))


# --- what is learned -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def learned(tmp_path_factory):
    """learned(batches, single, cut) -> [chosen, stretches, rest]: dl_learn() with these ticks per packet instead of a clock's."""
    compiler = os.environ.get("CC", "cc").split()
    if shutil.which(compiler[0]) is None:
        pytest.skip(f"no compiler {compiler[0]}")
    binary = tmp_path_factory.mktemp("learn") / "learn"
    core = ROOT / "csrc" / "core"
    flags = ["-std=c11", "-D_GNU_SOURCE", "-O1", "-Wall", "-Wextra", "-Werror", f"-I{core}", f"-I{core}/arms"]
    subprocess.run([*compiler, *flags, ROOT / "tests/c/learn.c", "-o", binary], check=True)

    def ask(batches, single, cut=0):
        done = subprocess.run([binary], input=f"{batches} {single} {cut}\n", capture_output=True, text=True, check=True)
        return [int(word) for word in done.stdout.split()]

    return ask


def test_the_faster_way_is_kept_and_a_small_gain_is_none(learned):
    assert learned(10_000, 20_000) == [1, 16, 1024 * 16 * 32]
    assert learned(20_000, 10_000) == [0, 16, 1024 * 16 * 32]
    assert learned(10_000, 10_000)[0] == learned(9_800, 10_000)[0] == 0, "within 3 %: one by one, which waits for nothing"
    assert learned(9_600, 10_000)[0] == 1


def test_a_stretch_that_is_cut_short_is_compared_with_none_that_is_not(learned):
    chosen, stretches, _ = learned(20_000, 10_000, cut=100)
    assert chosen == 0 and stretches > 16
    assert learned(10_000, 20_000, cut=100)[0] == 1


@pytest.mark.parametrize("arm", BATCHES)
def test_whatever_has_been_learned_the_answers_stay(arm):
    """Trials, rests and both ways, in calls of all lengths, over four kinds of traffic."""
    for body, name in (("branchy", "uniform"), ("chain", "hot"), ("chain", "bursts"), ("chain", "zipf")):
        hs = dl.handlers(100, body=body, size="tiny")
        packets = dl.traffic.make(name, hs, pool=1 << 15).packets
        slots = {n: _engine.slot(arm, hs.engine, packets[:n]) for n in (300, 5000, 1 << 15)}
        wanted = {n: oracle.checksum(oracle.answers(hs, packets[:n])) for n in slots}
        for turn in range(12):
            for n, slot in slots.items():
                assert slot.run(turn % 4) == wanted[n]


def test_a_sampled_packet_waits_for_its_whole_batch_or_alone():
    hs = dl.handlers(100, size="tiny")
    tr = dl.traffic.uniform(hs, pool=1024)
    checksum, ticks = prepare("table-grouped-64", hs, tr).sample(1, 0)
    assert checksum == oracle.checksum(oracle.answers(hs, tr.packets))
    batches = np.frombuffer(ticks, np.int64).reshape(16, 64)
    assert all(len(set(batch)) == 1 for batch in batches.tolist()), "nothing learned yet: batches"


# --- bursts --------------------------------------------------------------------------------------------------------


def runs(packets):
    """Lengths of the runs of equal flow."""
    ends = np.flatnonzero(np.diff(packets["flow"].astype(np.int64)) != 0) + 1
    return np.diff(np.concatenate([[0], ends, [len(packets)]]))


@pytest.mark.parametrize("mean", [1, 2, 8, 50.5])
def test_runs_are_geometric_with_the_mean_that_was_asked_for(mean):
    hs = dl.handlers(100)
    found = runs(dl.traffic.bursts(hs, mean, pool=1 << 17).packets)
    assert found.mean() == pytest.approx(mean, rel=0.06)
    if mean > 1:
        longer = [(found > n).mean() for n in (0, 1, 2, 3)]
        ratios = np.array(longer[1:]) / longer[:-1]
        assert ratios == pytest.approx(1 - 1 / mean, abs=0.03), "to go on is as likely after one packet as after three"


def test_a_run_is_one_key_and_one_flow_with_different_payloads():
    hs = dl.handlers(100)
    packets = dl.traffic.bursts(hs, 20, pool=1 << 15).packets
    same = np.flatnonzero(np.diff(packets["flow"].astype(np.int64)) == 0)
    assert (packets["key"][same] == packets["key"][same + 1]).all()
    assert len(np.unique(packets["payload"], axis=0)) > 32_000
    served = np.bincount(hs.select(packets)[hs.select(packets) >= 0], minlength=100)
    assert (served > 0).sum() > 90


def test_bursts_by_name_and_what_is_refused():
    hs = dl.handlers(10)
    assert dl.traffic.make("bursts", hs, pool=512).digest == dl.traffic.bursts(hs, 8, pool=512).digest
    named = dl.traffic.make("bursts:3", hs, pool=512)
    assert (named.name, named.spec["mean_run"]) == ("bursts:3.0", 3.0) and named.digest == dl.traffic.bursts(hs, 3, pool=512).digest
    assert dl.traffic.bursts(hs, 3, pool=512, seed=1).digest != named.digest
    for wrong in (0.5, -1, float("nan"), "eight"):
        with pytest.raises(dl.UsageError, match="mean run length out of range"):
            dl.traffic.bursts(hs, wrong)


# --- the study -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def measured():
    """The study itself, run as briefly as it can be."""
    return studies.run("past-the-table", quick=True, rounds=8)


@pytest.fixture(scope="module")
def modelled(measured):
    """modelled(cost) -> the same recording with cost(slot) ns for a packet, and a little noise."""

    def make(cost, rounds=40):
        made = []
        for m in measured.measurements:
            rng = np.random.default_rng(1)
            ns = np.array([[cost(s) for s in m.slots]] * rounds)
            ticks = np.rint(ns * m.block * m.ticks_per_ns * np.exp(rng.normal(0, 0.001, ns.shape))).astype(np.int64)
            made.append(replace(
                m, ticks=ticks, order=np.array([rng.permutation(len(m.slots)) for _ in range(rounds)]),
                placement=np.arange(rounds) % 4, window=np.zeros(rounds, int), ledger={}, flagged=np.zeros(rounds, bool),
            ))  # fmt: skip
        return replace(measured, measurements=tuple(made))

    return make


def cost(s):
    """Grouping pays over branchy bodies alone and under uniform traffic; where it does not, it falls back."""
    if s.arm.startswith("table-grouped") and s.body == "branchy" and s.traffic == "uniform":
        return 30.0
    return {"scan": 300.0, "scan-simd": 50.0}.get(s.arm, 45.0)


def test_all_cells_are_measured_and_right(measured):
    assert measured.ok
    found = {(c.body, c.traffic, c.arm) for c in past.cells(measured)}
    arms = (*BATCHES, *past_the_table.SINGLE)
    assert found == set(product(("chain", "wide", "branchy"), ("uniform", "zipf", "hot", "bursts"), arms))
    scans = measured.measurements[-1]
    seen = {(s.arm, s.size) for s in scans.slots if s.role == "arm"}
    assert seen == set(product(("scan", "scan-simd", "table-compact"), ("tiny", "fat")))


def test_the_recording_comes_back_and_shows_all_cells(measured, tmp_path):
    measured.save(tmp_path / "p.json")
    tables = {t.name: t for t in past.past_tables(dl.load(tmp_path / "p.json"))}
    assert set(tables) == {"past-batches", "past-single", "past-scans", "past-latency"}
    assert len(tables["past-batches"].rows) == 3 * 4 * 5 and len(tables["past-single"].rows) == 3 * 4
    assert len(tables["past-latency"].rows) == 3 * 4 * (1 + len(BATCHES))
    assert all(all(row) for row in tables["past-batches"].rows)
    assert "What batches of B add" in report.tables(measured)


def test_the_limit_is_kept_undecided_or_broken_as_the_interval_says(modelled):
    good = past.cells(modelled(cost))
    assert {c.limit for c in good if c.batch} == {"kept"}
    assert "1.50 times as fast as the table (branchy, uniform)" in past.sentence(good)
    bad = past.cells(modelled(lambda s: 48.0 if s.arm == "table-grouped-16" and s.traffic == "hot" else cost(s)))
    assert [(c.traffic, c.limit) for c in bad if c.limit != "kept" and c.batch] == [("hot", "BROKEN")] * 3
    assert "3 of 60 cells are more than 5 % SLOWER" in past.sentence(bad)
    edge = past.cells(modelled(lambda s: 45.0 * 1.05 if s.arm == "table-runs-64" else cost(s)))
    assert {c.limit for c in edge if c.arm == "table-runs-64"} == {"undecided"}
    nothing = past.sentence(past.cells(modelled(lambda s: 45.0 if s.arm in BATCHES else cost(s))))
    assert nothing.startswith("Grouping packets by handler is nowhere seen to pay")


def test_latency_quantiles_by_hand():
    assert [past.quantile([[5, 50], [9, 49], [1000, 1]], q) for q in (0.5, 0.99, 1.0)] == [5, 9, 1000]


def test_the_figure_is_drawn_from_the_recording_alone(measured):
    assert "arms-past-the-table" in names(measured)
    figure = draw(measured, "arms-past-the-table")
    assert len(figure.axes) == 9
