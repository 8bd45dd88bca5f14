"""Measuring: what is refused in one line, what an interrupt keeps, what the machine is like afterwards."""

import importlib
import json
import os
import re
import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest

import dispatchlab as dl
from dispatchlab import _engine, oracle
from dispatchlab.arms import MECHANISMS, prepare
from dispatchlab.cases import awkward, matrix
from dispatchlab.measure import BLOCK, Cell, choose_cpu, flag, measure_cells, parse_budget, shortest_block

PLACEMENTS = 4


@pytest.fixture(scope="module")
def hs():
    return dl.handlers(100, size="tiny")


@pytest.fixture(scope="module")
def tr(hs):
    return dl.traffic.uniform(hs, pool=4096)


def loop(slots, block, rounds, progress=None, cpu=-1, **changed):
    """The engine's timing loop over a plain plan."""
    number = np.arange(rounds)
    plan = {
        "order": np.tile(np.arange(len(slots), dtype=np.int16), rounds),
        "placement": (number % PLACEMENTS).astype(np.int8),
        "window": (number // PLACEMENTS).astype(np.int32),
        "shift": np.zeros(len(slots), np.int32),
        "lead": 0,
    } | changed
    return _engine.measure(tuple(slots), block, rounds, *plan.values(), cpu, 1.0, progress)


# --- refused in one line -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: dl.handlers(0), "number of handlers out of range: expected 1..512; got 0"),
        (lambda: dl.handlers(513), "expected 1..512; got 513"),
        (lambda: dl.handlers(-1), "expected 1..512; got -1"),
        (lambda: dl.handlers(10.0), "expected 1..512; got 10.0"),
        (lambda: dl.handlers(True), "expected 1..512; got True"),
        (lambda: dl.handlers("ten"), "expected 1..512; got 'ten'"),
        (lambda: dl.handlers(10, body="chian"), "unknown body 'chian': .*did you mean chain"),
        (lambda: dl.handlers(10, size="fatt"), "unknown size of body chain 'fatt': .*did you mean fat"),
        (lambda: dl.handlers(10, order="revers"), "unknown order 'revers': .*did you mean reverse"),
        (lambda: dl.handlers(10, placement="packd"), "unknown placement 'packd': .*did you mean packed"),
        (lambda: dl.handlers(10, residual=1.1), "residual share out of range: expected a number in 0..1; got 1.1"),
        (lambda: dl.handlers(10, residual=-0.1), "got -0.1"),
        (lambda: dl.handlers(10, residual=float("nan")), "got nan"),
        (lambda: dl.handlers(10, residual="some"), "got 'some'"),
        (lambda: dl.handlers(3, order=[0, 1]), "order cannot be used: expected 3 whole numbers in 0..2"),
        (lambda: dl.handlers(3, order=[0, 1, 1]), "order: not a permutation: expected each of 0..2 once"),
        (lambda: dl.handlers(3, order=[0, 1, 3]), "order cannot be used: expected 3 whole numbers in 0..2"),
        (lambda: dl.handlers(3, order=[0, 1, 1.5]), "order cannot be used"),
        (lambda: dl.handlers(3, order="frequency"), "order: no frequencies: expected frequency=, one number per handler"),
        (lambda: dl.handlers(3, keys=[1, 2]), "keys cannot be used: expected 3 whole numbers in 0..65535"),
        (lambda: dl.handlers(3, keys=[1, 2, 65536]), "keys cannot be used: expected 3 whole numbers in 0..65535"),
        (lambda: dl.handlers(3, keys=[1, 2, -1]), "keys cannot be used"),
        (lambda: dl.handlers(3, overlap=True), "overlap: no predicates to overlap: expected a residual handler"),
    ],
)  # fmt: skip
def test_handlers_that_cannot_be(make, says):
    with pytest.raises(dl.UsageError, match=says) as error:
        make()
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"arm_names": "scann"}, "unknown arm 'scann': .*did you mean scan"),
        ({"arm_names": ["scan", "table-compat"]}, "unknown arm 'table-compat': .*did you mean table-compact"),
        ({"arm_names": []}, "nothing to measure"),
        ({"budget": "0s"}, "budget cannot be used: expected a time such as .*; got '0s'"),
        ({"budget": "-1"}, "got '-1'"),
        ({"budget": -1}, "got -1"),
        ({"budget": "abc"}, "got 'abc'"),
        ({"budget": float("nan")}, "got nan"),
        ({"budget": float("inf")}, "got inf"),
        ({"budget": "1e-6"}, "got '1e-6'"),
        ({"budget": True}, "got True"),
        ({"rounds": 0}, "number of rounds out of range: expected 1..20000; got 0"),
        ({"rounds": -3}, "got -3"),
        ({"rounds": 2.5}, "got 2.5"),
        ({"rounds": 10**9}, "got 1000000000"),
        ({"cpu": 100_000}, "cpu: cannot pin there: expected one of the allowed CPUs .*; got 100000"),
        ({"cpu": -1}, "cpu: cannot pin there: .*; got -1"),
        ({"cpu": "0"}, "cpu: cannot pin there: .*; got '0'"),
        ({"block": 0}, "block cannot be used: expected 1 packet or more; got 0"),
        ({"block": 5000}, "expected a pool of 5000 packets or more, or a divisor of it; got 4096 packets"),
        ({"block": 1}, "the block is too short for this clock: .*use a block of [0-9]+ packets or more"),
    ],
)
def test_measurements_that_cannot_be(hs, tr, arguments, says):
    settings = {"arm_names": "scan", "rounds": 2, "block": 2048} | arguments
    if "budget" in arguments:
        del settings["rounds"]
    with pytest.raises(dl.UsageError, match=says) as error:
        dl.measure(settings.pop("arm_names"), hs, tr, **settings)
    assert "\n" not in str(error.value)


def test_too_small_a_budget_says_the_smallest_that_works(hs, tr):
    with pytest.raises(dl.UsageError, match=r"too small for 8 rounds of 3 slots: expected [0-9.]+ s or more; got 1e-05 s"):
        dl.measure(["scan", "table-compact"], hs, tr, budget=1e-5)


def test_sets_and_traffics_go_in_pairs(hs, tr):
    with pytest.raises(dl.UsageError, match="handler sets and traffics go in pairs"):
        dl.measure("scan", [hs, hs], tr, rounds=2)


@pytest.mark.parametrize(
    ("budget", "seconds"),
    [("2s", 2), ("500ms", 0.5), ("1m", 60), ("1.5", 1.5), (3, 3), (0.25, 0.25), (" .5 s ", 0.5), ("2min", 120)],
)
def test_budgets(budget, seconds):
    assert parse_budget(budget) == seconds


@pytest.mark.parametrize(
    "packets",
    [np.zeros(4, np.uint8), np.zeros((2, 2), dl.traffic.PACKET), np.zeros(0, dl.traffic.PACKET), [1, 2], None, b"x" * 32],
)
def test_what_is_not_packets(packets):
    with pytest.raises(dl.TrafficError) as error:
        dl.traffic.from_packets(packets)
    assert "\n" not in str(error.value)


def test_packets_of_any_strides_and_read_only_ones_are_fine(hs, tr):
    twice = np.repeat(tr.packets, 2)
    strided, frozen = twice[::2], tr.packets
    assert not frozen.flags.writeable and not strided.flags.c_contiguous
    for packets in (strided, frozen):
        assert dl.traffic.from_packets(packets, hs).digest == tr.digest


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        ({"order": np.zeros(3, np.int16)}, ValueError),
        ({"order": np.full(4, 1, np.int16)}, ValueError),
        ({"order": np.full(4, -1, np.int16)}, ValueError),
        ({"placement": np.full(4, 4, np.int8)}, ValueError),
        ({"window": np.full(4, -1, np.int32)}, ValueError),
        ({"window": np.zeros(4, np.float32)[::2]}, (ValueError, BufferError)),
        ({"window": None}, TypeError),
        ({"shift": np.full(1, -1, np.int32)}, ValueError),
        ({"shift": np.zeros(2, np.int32)}, ValueError),
        ({"lead": -1}, ValueError),
        ({"block": 0}, ValueError),
        ({"block": 4097}, ValueError),
        ({"rounds": -1}, ValueError),
        ({"slots": ()}, ValueError),
        ({"slots": ("scan",)}, TypeError),
        ({"cpu": 100_000}, ValueError),
    ],
)
def test_the_loop_refuses_a_plan_that_does_not_fit(hs, tr, changed, error):
    plan = {
        "slots": (prepare("scan", hs, tr),), "block": 512, "rounds": 4, "order": np.zeros(4, np.int16),
        "placement": np.zeros(4, np.int8), "window": np.zeros(4, np.int32), "shift": np.zeros(1, np.int32),
        "lead": 0, "cpu": -1, "ticks_per_ns": 1.0,
    } | changed  # fmt: skip
    with pytest.raises(error):
        _engine.measure(**plan)


@pytest.mark.parametrize("packets", [np.zeros(33, np.uint8), None, np.zeros((8, 64), np.uint8)[:, ::2]])
def test_a_slot_refuses_packets_that_are_not(hs, packets):
    with pytest.raises((ValueError, TypeError, BufferError)):
        _engine.slot("scan", hs.engine, packets)


# --- the loop ------------------------------------------------------------------------------------------------------


def test_the_reference_is_the_oracle():
    for case in matrix((10,), 256):
        selected, answers = prepare("scan", case.handlers, case.traffic).reference()
        assert np.array_equal(np.frombuffer(selected, np.int32), case.handlers.select(case.traffic.packets)), case.name
        assert np.array_equal(np.frombuffer(answers, np.uint32), oracle.answers(case.handlers, case.traffic.packets)), case.name


@pytest.mark.parametrize(("pool", "block"), [(2048, 512), (512, 512), (128, 512), (1000, 300)])
def test_every_block_gives_the_checksum_of_its_own_packets(hs, pool, block):
    tr = dl.traffic.uniform(hs, pool=pool)
    plain = dl.handlers(hs.count, size=hs.size, residual=0)  # what mechanism arms can hold
    slots = [prepare(arm.name, plain if arm.family == "mechanism" else hs, tr) for arm in dl.arms()]
    out = loop(slots, block, 4 * PLACEMENTS)
    assert out["rounds"] == 4 * PLACEMENTS
    assert out["mismatches"] == [0] * len(slots)
    assert (np.frombuffer(out["ticks"], np.int64) > 0).all()


def test_the_expected_checksum_of_a_window_is_that_of_its_packets(hs, tr):
    expected = np.frombuffer(prepare("scan", hs, tr).expected(1024), np.uint64).tolist()
    answers = oracle.answers(hs, tr.packets)
    assert expected == [oracle.checksum(answers[at : at + 1024]) for at in range(0, 4096, 1024)]


def test_a_packet_altered_under_the_loop_is_noticed(hs, tr):
    packets = tr.packets.copy()
    packets["key"][0] = hs.keys[0]
    slot = _engine.slot("scan", hs.engine, packets)
    seen = []

    def alter(done):
        packets["key"][0] = hs.keys[1]
        seen.append(done)

    rounds = 256
    while not seen or seen[0] >= rounds - 1:
        packets["key"][0] = hs.keys[0]
        seen.clear()
        rounds *= 2
        wrong = loop([slot], 4096, rounds, alter)["mismatches"][0]
    assert wrong in (rounds - seen[0], rounds - seen[0] - 1)


class Altered:
    """A slot that is not what it should be in what one of its methods returns."""

    def __init__(self, slot, method, change):
        self.slot, self.method, self.change = slot, method, change

    def __getattr__(self, name):
        given = getattr(self.slot, name)
        return given if name != self.method else lambda *a: self.change(given(*a), *a)


@pytest.mark.parametrize(
    ("method", "change", "says"),
    [
        ("run", lambda sum, placement: sum ^ (placement == 2), "code placement 2 gives another checksum than the reference"),
        ("count", lambda counted: (counted[0], counted[1][::-1]), "probes differ from the enumeration on [0-9]+ of 4096"),
    ],
)
def test_a_recording_with_wrong_answers_or_probes_is_failed(hs, tr, monkeypatch, method, change, says):
    module = importlib.import_module("dispatchlab.cells")
    monkeypatch.setattr(module, "prepare", lambda *a: Altered(prepare(*a), method, change))
    prepared = module.prepare_cells([Cell("scan", hs, tr)], 0, 2048)
    assert len(prepared.failures) == 1
    assert re.search(f"^scan: {says}", prepared.failures[0])


@pytest.mark.parametrize("order", ["registration", "shuffled"])
def test_counted_probes_are_those_of_the_enumeration(order):
    overlapping = dl.handlers(100, size="tiny", order=order, overlap=True)
    plain = dl.handlers(100, size="tiny", order=order, residual=0)
    for arm in dl.arms():
        hs = plain if arm.family == "mechanism" else overlapping
        tr = dl.traffic.zipf(hs, pool=4096)
        assert np.array_equal(dl.count_probes(arm.name, hs, tr), dl.expected_probes(arm.name, hs, tr)), arm.name


def test_the_same_seed_gives_the_same_plan(hs, tr):
    first, again, other = (
        measure_cells("m", [Cell("scan", hs, tr), Cell("table-compact", hs, tr)], rounds=12, block=2048, seed=seed)
        for seed in (5, 5, 6)
    )
    assert np.array_equal(first.order, again.order) and np.array_equal(first.placement, again.placement)
    assert not np.array_equal(first.order, other.order)
    assert first.checksums == again.checksums == first.expected
    assert first.ticks.shape == (12, 3)
    assert not first.failures


def test_every_slot_runs_once_in_every_round(hs, tr):
    m = measure_cells("m", [Cell(arm, hs, tr) for arm in ("scan", "scan-mtf", "direct-call")], rounds=8, block=2048)
    assert (np.sort(m.order, axis=1) == np.arange(4)).all()
    assert (m.ticks > 0).all()


def test_disturbed_rounds_are_flagged_and_kept():
    ledger = {"involuntary": np.array([0, 1, -1]), "skew_ppb": np.array([0, 0, 200_000])}
    assert flag(ledger, np.full(3, 1e9)).tolist() == [False, True, True]


# --- what is left alone --------------------------------------------------------------------------------------------


def test_the_cpus_allowed_before_are_allowed_afterwards(hs, tr):
    before = os.sched_getaffinity(0)
    seen = []
    rounds = 256
    while not seen:
        rounds *= 2
        loop([prepare("scan", hs, tr)], 4096, rounds, lambda _: seen.append(os.sched_getaffinity(0)), choose_cpu(None))
    assert seen[0] == {choose_cpu(None)}
    assert os.sched_getaffinity(0) == before


def test_progress_that_raises_ends_the_measurement_and_unpins(hs, tr):
    before = os.sched_getaffinity(0)

    def progress(done):
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        loop([prepare("scan", hs, tr)], 4096, 1_000_000, progress, choose_cpu(None))
    assert os.sched_getaffinity(0) == before


def test_progress_only_ever_grows(hs, tr):
    seen = []
    dl.measure("scan", hs, tr, budget="300ms", block=2048, progress=lambda done, planned: seen.append((done, planned)))
    assert seen
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    assert all(0 <= done <= planned for done, planned in seen)


def test_other_threads_run_meanwhile(hs, tr):
    turns = 0
    stop = threading.Event()

    def count():
        nonlocal turns
        while not stop.is_set():
            turns += 1
            time.sleep(0.0005)

    thread = threading.Thread(target=count)
    thread.start()
    try:
        before = turns
        loop([prepare("scan", hs, tr)], 4096, 600)
        during = turns - before
    finally:
        stop.set()
        thread.join()
    assert during > 5


@pytest.mark.parametrize("slots", [1, 2, 3])
def test_a_request_to_stop_is_never_lost(hs, tr, slots):
    """Not even when it comes after the last block of a round, which is whole then."""
    held = [prepare("scan", hs, tr) for _ in range(slots)]
    for _ in range(3):
        calls = []

        def interrupt(done, calls=calls):
            calls.append(done)
            raise KeyboardInterrupt

        out = loop(held, 4096, 2000, interrupt)
        assert out["interrupted"] and len(calls) == 1
        assert out["rounds"] - calls[0] in (0, 1)
        assert len(out["ticks"]) == out["rounds"] * slots * 8
        assert (np.frombuffer(out["ticks"], np.int64) > 0).all()


INTERRUPTED = """
    import sys
    import dispatchlab as dl
    hs = dl.handlers(100, size="tiny")
    tr = dl.traffic.uniform(hs, pool=4096)
    def progress(done, planned):
        if done >= 2:
            print("measuring", file=sys.stderr, flush=True)
    m = dl.measure(["scan", "table-compact"], hs, tr, budget="60s", progress=progress)
    one = m.measurements[0]
    m.save(sys.argv[1])
    print(len(one.ticks), one.ticks.min(), one.clock["interrupted"], m.ok)
"""


def test_an_interrupt_keeps_the_rounds_that_are_whole(tmp_path):
    path = tmp_path / "kept.json"
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(INTERRUPTED), str(path)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stderr.readline() == "measuring\n"
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    rounds, fastest, interrupted, ok = out.split()
    assert int(rounds) >= 2 and int(fastest) > 0
    assert (interrupted, ok) == ("True", "True")
    kept = json.loads(path.read_text())
    assert len(dl.load(path).measurements[0].ticks) == int(rounds)
    assert kept["study"] == "measure"


LEAKS = """
    import gc, resource
    import numpy as np
    import dispatchlab as dl
    from dispatchlab import _engine
    hs, plain = dl.handlers(100, size="tiny"), dl.handlers(100, size="tiny", residual=0)
    packets = dl.traffic.uniform(hs, pool=512).packets
    number = np.zeros(8, np.int16)
    plan = number, number.astype(np.int8), number.astype(np.int32), np.zeros(1, np.int32), 32

    def once():
        for arm in dl.arms():
            own = plain if arm.family == "mechanism" else hs
            slot = _engine.slot(arm.name, own.engine, packets, np.zeros(100, np.uint64))
            slot.results(), slot.count(), slot.run(0), slot.reference(), slot.expected(64), slot.sample(3, 1)
        _engine.measure((slot,), 64, 8, *plan, -1, 1.0)
        for wrong in (("no such arm", hs.engine, packets), ("scan", hs.engine, b"x"), ("scan", hs.engine, packets, b"x"),
                      ("virtual", hs.engine, packets)):
            try:
                _engine.slot(*wrong)
            except ValueError:
                pass

    def grown(times):
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        objects = len(gc.get_objects())
        for _ in range(times):
            once()
        gc.collect()
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before, len(gc.get_objects()) - objects

    grown(20)
    print(*grown(60))
"""


def test_slots_and_measurements_leak_nothing():
    """60 slots of every arm: the smallest of their tables has 24 KiB, 1.4 MiB if each were leaked."""
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(LEAKS)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    kibibytes, objects = map(int, done.stdout.split())
    assert kibibytes < 1024
    assert objects < 50


def test_slots_keep_what_they_need_alive():
    hs = dl.handlers(10, size="tiny")
    wanted = oracle.answers(hs, awkward(hs, 256, 1).packets)
    slot = prepare("table-compact", dl.handlers(10, size="tiny"), awkward(hs, 256, 1))
    assert np.array_equal(np.frombuffer(slot.results(), np.uint32), wanted)


# --- what ran before must not decide -------------------------------------------------------------------------------


def test_slots_of_one_code_keep_off_each_others_packets(hs, tr):
    """A sequence that the same code has just run is in the predictor's memory: the second would look faster than the first."""
    m = measure_cells("m", [Cell("scan", hs, tr), Cell("table-compact", hs, tr)], rounds=64, block=512)
    assert m.clock["shift"] == [0, 0, 4], "the twin of table-compact runs half a pool of 8 blocks away"
    slowed = [Cell("scan", hs, tr), *(Cell("scan", hs, tr, f"{d}", delay_ppm=d) for d in (1, 2))]
    assert measure_cells("m", slowed, rounds=64, block=512).clock["shift"] == [0, 2, 4, 6]


@pytest.mark.parametrize("arm", [a.name for a in dl.arms()])
def test_a_block_answers_the_same_whatever_leads_in(hs, tr, arm):
    if arm in MECHANISMS:
        hs = dl.handlers(hs.count, size=hs.size, residual=0)
    slots = (prepare(arm, hs, tr), prepare(arm, hs, tr))
    for lead in (0, 1, 100, 4096, 100_000):
        done = loop(slots, 512, 64, shift=np.array([0, 3], np.int32), lead=lead)
        assert done["mismatches"] == [0, 0] and done["rounds"] == 64


def test_a_block_grows_until_the_clock_can_time_it(hs, tr):
    pool = dl.traffic.uniform(hs, pool=1 << 15)
    m = measure_cells("m", [Cell("null", hs, pool)], rounds=16)
    fastest, shortest = m.ticks.min(), shortest_block(m.clock)
    assert m.block == BLOCK or (m.ticks.max() > 0 and fastest > shortest / 2)
    assert m.block >= BLOCK and len(pool) % m.block == 0


def test_a_slowed_slot_is_the_same_slot_but_for_its_delay(hs, tr):
    slot = prepare("table-compact", hs, tr)
    slowed = slot.slowed(500_000)
    assert slowed.results() == slot.results() and slowed.footprint == slot.footprint
    del slot
    done = loop((prepare("table-compact", hs, tr), slowed), 2048, 40)
    ticks = np.frombuffer(done["ticks"], np.int64).reshape(40, 2)
    before = np.frombuffer(done["undelayed"], np.int64).reshape(40, 2)
    assert np.array_equal(ticks[:, 0], before[:, 0])
    assert np.median(ticks[:, 1] / before[:, 1]) == pytest.approx(1.5, abs=0.02), "what was added is what was asked for"
