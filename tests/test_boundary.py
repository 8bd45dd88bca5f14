"""The plugin boundary, measured: the same work on both sides, batches that answer as single packets do, and what is said of it."""

from dataclasses import replace

import numpy as np
import pytest

import dispatchlab as dl
from dispatchlab import claims, crossings, oracle, report, studies
from dispatchlab.arms import prepare, results
from dispatchlab.crossings import crossing_tables
from dispatchlab.errors import ToolError
from dispatchlab.figures import draw, names
from dispatchlab.plugins import load
from dispatchlab.plugins.building import build
from dispatchlab.studies import boundary

BATCHES = boundary.BATCHES
ROUNDS = 60

STUBBORN = """
#include <dispatchlab/plugin.h>
#include <stddef.h>
static uint32_t claimed_keys(uint16_t *keys, uint32_t capacity) {
  for (uint32_t i = 0; i < COUNT && i < capacity; ++i) keys[i] = (uint16_t)(FIRST + i);
  return COUNT;
}
static int32_t create(void **instance) { *instance = NULL; return DISPATCHLAB_OK; }
static void destroy(void *instance) { (void)instance; }
static int32_t process(void *instance, const dispatchlab_view *packet, uint32_t *result) {
  (void)instance;
  *result = packet->key * 31u + packet->bytes[1];
  return DISPATCHLAB_OK;
}
static int32_t process_batch(void *instance, const dispatchlab_batch *batch) {
  (void)instance;
  for (uint64_t i = 0; i < batch->count; ++i) {
    const dispatchlab_view *view = (const void *)((const char *)batch->views + i * batch->view_stride);
    *(uint32_t *)(void *)((char *)batch->results + i * batch->result_stride) = view->key * 31u + view->bytes[1];
    if (view->bytes[0] < REFUSES) return DISPATCHLAB_FAILED;
  }
  return DISPATCHLAB_OK;
}
static const dispatchlab_plugin table = {
    .magic = DISPATCHLAB_PLUGIN_MAGIC, .abi_version = 2, .struct_size = sizeof(dispatchlab_plugin), .oldest_host = 1,
    .name = "stubborn", .claimed_keys = claimed_keys, .create = create, .destroy = destroy, .process = process,
    .process_batch = process_batch};
DISPATCHLAB_PLUGIN_DEFINE(table)
"""


@pytest.fixture(scope="module")
def plugins(tmp_path_factory):
    """Two plugins that take batches; one refuses every batch with a first payload byte below 3 in it."""
    folder = tmp_path_factory.mktemp("batches")
    (folder / "p.c").write_text(STUBBORN)
    one = build(folder / "p.c", folder / "one.so", ("-DFIRST=50000", "-DCOUNT=3", "-DREFUSES=0"))
    two = build(folder / "p.c", folder / "two.so", ("-DFIRST=50100", "-DCOUNT=2", "-DREFUSES=3"))
    return [load(one), load(two)]


@pytest.fixture(scope="module")
def measured():
    """The study itself, run as briefly as it can be."""
    return studies.run("boundary", quick=True, budget=1.0)


# --- batches -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("arm", BATCHES)
def test_batches_over_built_in_handlers_and_two_plugins_answer_a_million_packets_as_the_oracle_does(plugins, arm):
    hs = dl.handlers(20, size="tiny", residual=0, plugins=plugins)
    tr = dl.traffic.uniform(hs, pool=1 << 20)
    wanted = oracle.answers(hs, tr.packets)
    assert np.array_equal(results(arm, hs, tr), wanted)
    slot = prepare(arm, hs, tr)
    assert {slot.count()[0], *(slot.run(placement) for placement in range(4))} == {oracle.checksum(wanted)}


@pytest.mark.parametrize("n", [1, 7, 8, 9, 63, 65, 255, 257, 1000])
def test_a_last_batch_that_is_not_full_loses_nothing(plugins, n):
    hs = dl.handlers(1, size="tiny", residual=0, plugins=plugins)
    tr = dl.traffic.from_packets(dl.traffic.uniform(hs, pool=1024).packets[:n].copy(), hs)
    for arm in BATCHES:
        assert np.array_equal(results(arm, hs, tr), oracle.answers(hs, tr.packets)), arm


def test_a_sampled_packet_waits_for_its_whole_batch(plugins):
    hs = dl.handlers(1, size="tiny", residual=0, plugins=plugins[:1])
    tr = dl.traffic.uniform(hs, pool=1024)
    checksum, ticks = prepare("batch-64", hs, tr).sample(1, 0)
    assert checksum == oracle.checksum(oracle.answers(hs, tr.packets))
    assert all(len(set(batch)) == 1 for batch in np.frombuffer(ticks, np.int64).reshape(16, 64).tolist())


# --- the study -----------------------------------------------------------------------------------------------------


def test_all_ways_across_do_the_very_same_work(measured):
    m = measured.measurements[0]
    assert measured.ok
    for size in boundary.SIZES:
        mine = [s for s in m.slots if s.size == size]
        assert len({m.checksums[s.label] for s in mine}) == 1, "inside and outside give one checksum"
        assert {(s.arm, s.plugins) for s in mine} == {("erasure", 0), ("erasure", 1), *((arm, 1) for arm in BATCHES)}
    assert [p["name"] for p in measured.extra["plugins"]] == ["crossing"] * 2
    assert len({p["sha256"] for p in measured.extra["plugins"]}) == 2


def test_the_recording_comes_back_with_who_came_from_a_plugin(measured, tmp_path):
    measured.save(tmp_path / "b.json")
    again = dl.load(tmp_path / "b.json")
    assert [s.plugins for s in again.measurements[0].slots] == [s.plugins for s in measured.measurements[0].slots]


def test_the_handler_outside_is_the_formula_of_the_one_inside():
    with boundary.compiled() as found:
        for size, plugin in found.items():
            inside, outside = boundary.sets(size, plugin)
            tr = boundary.traffic(inside, 0)
            assert np.array_equal(oracle.answers(outside, tr.packets), oracle.answers(inside, tr.packets))


# --- what is said of it --------------------------------------------------------------------------------------------


@pytest.fixture
def modelled(measured):
    """modelled(cost) -> the same recording with cost(slot) ns for a packet, and a little noise."""

    def make(cost):
        m = measured.measurements[0]
        rng = np.random.default_rng(1)
        ns = np.array([[cost(s) for s in m.slots]] * ROUNDS)
        ticks = np.rint(ns * m.block * m.ticks_per_ns * np.exp(rng.normal(0, 0.001, ns.shape))).astype(np.int64)
        plain = replace(
            m, ticks=ticks, order=np.array([rng.permutation(len(m.slots)) for _ in range(ROUNDS)]),
            placement=np.arange(ROUNDS) % 4, window=np.zeros(ROUNDS, int), ledger={}, flagged=np.zeros(ROUNDS, bool),
        )  # fmt: skip
        return replace(measured, measurements=(plain,))

    return make


def machine(crossing, saved):
    """ns of a slot where crossing costs so much and batches save so much of it."""

    def cost(s):
        inside = 5.0 if s.size == "tiny" else 40.0
        return inside + crossing * (s.plugins > 0) - saved * s.arm.startswith("batch")

    return cost


def answers(recording):
    return {t.claim.id: t.answer for t in claims.evaluate(recording)}


def test_the_published_machine_bears_the_claims_out(modelled):
    recording = modelled(machine(3.0, -0.1))
    assert set(answers(recording).values()) == {"holds"} and len(answers(recording)) == 3
    found = crossings.crossings(recording.measurements[0])
    assert [c.batch for c in found] == [0, 1, 8, 64, 256] * 2
    assert all(c.more.low <= (3.1 if c.batch else 3.0) <= c.more.high for c in found)
    assert all(c.recovered.low <= -0.1 <= c.recovered.high for c in found if c.recovered is not None)
    assert "no batch is seen to recover any of it" in crossings.sentence(found)


def test_a_machine_on_which_batches_pay_contradicts_them(modelled):
    recording = modelled(machine(9.0, 4.0))
    assert set(answers(recording).values()) == {"does not hold here"}
    assert "recover 4.0" in crossings.sentence(crossings.crossings(recording.measurements[0]))


def test_a_free_crossing_is_not_called_a_cost(modelled):
    found = crossings.crossings(modelled(machine(0.0, 0.0)).measurements[0])
    assert "not told from nothing" in crossings.sentence(found)


def test_table_and_figure_come_from_the_recording_alone(modelled):
    recording = modelled(machine(3.0, 0.0))
    (table,) = crossing_tables(recording)
    assert len(table.rows) == 10 and table.rows[0][:2] == ("tiny", "packet by packet")
    assert "What the plugin boundary costs" in report.tables(recording)
    assert "boundary" in names(recording)
    figure = draw(recording, "boundary")
    assert [a.get_xlabel() for a in figure.axes] == ["packets handed over in one call"] * 2
    assert figure.axes[0].get_ylabel() == "ns per packet more than inside"


# --- building ------------------------------------------------------------------------------------------------------


def test_a_symbol_that_nothing_supplies_is_an_error_when_it_is_built(tmp_path):
    (tmp_path / "bad.c").write_text("int f(void) { return nobody_supplies_this(); }\n")
    with pytest.raises(ToolError, match="nobody_supplies_this") as caught:
        build(tmp_path / "bad.c", tmp_path / "bad.so")
    assert "\n" not in str(caught.value) and not (tmp_path / "bad.so").exists()
