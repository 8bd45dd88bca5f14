"""Between two CPUs: nothing is lost, twice or out of order in any ring; every lock excludes; what is planted is caught."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import dispatchlab as dl
from dispatchlab import _engine, labs
from dispatchlab.between import check_capacity, keep_rounds, thread_cpus, two_cpus
from dispatchlab.figures import draw, names
from dispatchlab.figures.style import render
from dispatchlab.postclaims import post_tables
from dispatchlab.report import tables
from dispatchlab.studies import lock as lock_study
from dispatchlab.studies import ring as ring_study

ROOT = Path(__file__).parent.parent
RINGS = [name for kind, name, _, _ in _engine.lab_versions() if kind == "ring" and name != "v1"]
LOCKS = [name for kind, name, _, _ in _engine.lab_versions() if kind == "lock"]
two = pytest.mark.skipif(len(_engine.allowed_cpus()) < 2, reason="one allowed CPU: there is no other to hand anything to")


@two
@pytest.mark.parametrize("capacity", [2, 64, 1 << 16])
@pytest.mark.parametrize("version", RINGS)
def test_a_ring_hands_over_every_item_once_and_in_order(version: str, capacity: int) -> None:
    items = 2_000 if capacity == 2 else 50_000
    out = _engine.lab_ring(version, two_cpus(), capacity, items)
    assert ring_study.failures(version, items, out, _engine.lab_transfer_expected(items)) == []


@pytest.mark.parametrize("version", ["v1", *RINGS])
def test_a_ring_works_within_one_thread_too(version: str) -> None:
    out = _engine.lab_ring(version, _engine.allowed_cpus()[:1], 64, 5000)
    assert ring_study.failures(version, 5000, out, _engine.lab_transfer_expected(5000)) == []


def test_lost_swapped_and_repeated_items_are_noticed() -> None:
    good = _engine.lab_ring("v1", _engine.allowed_cpus()[:1], 64, 100)
    assert ring_study.failures("v1", 101, good, good["checksum"])
    assert ring_study.failures("v1", 100, {**good, "wrong": 2}, good["checksum"])
    assert ring_study.failures("v1", 100, good, good["checksum"] ^ 1)


@two
@pytest.mark.parametrize("version", LOCKS)
def test_a_lock_excludes(version: str) -> None:
    out = _engine.lab_lock(version, two_cpus(), 2000)
    assert lock_study.failures(version, 4000, out["counter"]) == []
    assert lock_study.failures(version, 4001, out["counter"])


@two
@pytest.mark.parametrize("version", ["v0", "v7"])
def test_sleeping_locks_also_exclude_with_more_threads_than_cpus(version: str) -> None:
    cpus = thread_cpus(2 * len(_engine.allowed_cpus()), oversubscribe=True)
    out = _engine.lab_lock(version, cpus, 500, 0, 2000)
    assert out["counter"] == 500 * len(cpus)


@two
def test_latencies_come_one_for_each_item() -> None:
    out = _engine.lab_ring("v6", two_cpus(), 64, 500, 1000, True)
    assert len(np.frombuffer(out["latency"], np.int64)) == 500


# --- the sanitizer


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory):
    compiler = shutil.which(os.environ.get("CC", "cc"))
    if compiler is None:
        pytest.skip("no C compiler")
    folder = tmp_path_factory.mktemp("between")
    core = ROOT / "csrc/core"
    files = [*(core / "threads").glob("*.c"), core / "affinity.c", core / "clock.c", ROOT / "tests/c/between.c"]
    files = [f for f in files if f.name != "pipeline.c"]

    def make(*defines: str, sanitizer: tuple[str, ...] = ("-O1", "-g", "-fsanitize=thread")) -> Path:
        binary = folder / ("plain" + "".join(defines))
        where = [f"-I{p}" for p in (ROOT / "csrc/include", core, core / "threads")]
        flags = ["-std=c11", *sanitizer, "-D_GNU_SOURCE", *defines, *where]
        done = subprocess.run([compiler, *flags, *files, "-o", binary, "-lpthread"], capture_output=True, text=True)
        if done.returncode:
            pytest.skip(f"no ThreadSanitizer here: {done.stderr.strip().splitlines()[-1]}")
        return binary

    return make


def _sanitized(binary: Path, *words: object) -> subprocess.CompletedProcess[str]:
    done = subprocess.run([binary, *map(str, words)], capture_output=True, text=True, timeout=60)
    if done.returncode == 77:
        pytest.skip("one allowed CPU")
    if "unexpected memory mapping" in done.stderr:
        pytest.skip("ThreadSanitizer does not run under this kernel's address layout")
    return done


def test_every_ring_and_lock_is_clean_under_thread_sanitizer(build) -> None:
    binary = build()
    for version in RINGS:
        done = _sanitized(binary, "ring", version, 3000, 64)
        assert done.returncode == 0 and "WARNING" not in done.stderr, done.stderr
    for version in LOCKS:
        done = _sanitized(binary, "lock", version, 500, 0)
        assert done.returncode == 0 and "WARNING" not in done.stderr, done.stderr


def test_random_delays_between_the_steps_lose_and_swap_nothing(build) -> None:
    binary = build("-DDL_LAB_SHAKE", sanitizer=("-O2",))
    for version in RINGS:
        for capacity in (2, 64):
            assert _sanitized(binary, "ring", version, 20_000, capacity).returncode == 0, (version, capacity)
    for version in LOCKS:
        assert _sanitized(binary, "lock", version, 5000, 0).returncode == 0, version


@pytest.mark.parametrize("plant", ["RELAXED_STORE", "RELAXED_LOAD"])
def test_a_planted_wrong_order_is_caught_by_thread_sanitizer(build, plant: str) -> None:
    done = _sanitized(build(f"-DDL_PLANT_{plant}"), "ring", "v4", 3000, 64)
    assert "data race" in done.stderr


# --- bad input and interrupts


@pytest.mark.parametrize(
    ("version", "capacity"), [("v4", 0), ("v4", 1), ("v6", 0), ("v6", 1), ("v6", 100), ("v7", 1 << 60), ("v9", 100), ("v99", 64)]
)
def test_a_capacity_that_cannot_be_is_refused_in_one_line(version: str, capacity: int) -> None:
    with pytest.raises(dl.Error) as refused:
        check_capacity(version, capacity)
    assert "\n" not in str(refused.value)
    with pytest.raises((ValueError, MemoryError)):
        _engine.lab_ring(version, _engine.allowed_cpus()[:1], capacity, 10)


def test_more_threads_than_cpus_are_refused_unless_asked_for() -> None:
    most = len(_engine.allowed_cpus())
    with pytest.raises(dl.UsageError, match="oversubscribe"):
        thread_cpus(most + 1)
    assert len(thread_cpus(most + 1, oversubscribe=True)) == most + 1


def test_a_lock_study_refuses_threads_that_have_no_cpu_before_it_measures(tmp_path: Path) -> None:
    most = len(_engine.allowed_cpus())
    with pytest.raises(dl.UsageError, match=r"more threads than CPUs.*--oversubscribe"):
        dl.studies.run("lock", quick=True, threads=most + 1)


@two
def test_a_lock_study_with_more_threads_than_cpus_is_labelled() -> None:
    most = len(_engine.allowed_cpus())
    recording = dl.studies.run("lock", quick=True, threads=most + 1, oversubscribe=True, rounds=1)
    assert {(r["threads"], r["oversubscribed"]) for r in recording.extra["lock"]["rounds"]} == {(most + 1, True)}
    assert f"{most + 1} on fewer CPUs" in tables(recording)


def test_one_allowed_cpu_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_engine, "allowed_cpus", lambda: [0])
    with pytest.raises(dl.UsageError, match="two CPUs"):
        two_cpus()


def test_a_cpu_outside_the_allowed_set_is_refused() -> None:
    with pytest.raises(ValueError):
        _engine.lab_roundtrip([0, 99999], 10)


ENDLESS = """
from dispatchlab import _engine
from dispatchlab.between import two_cpus
print("go", flush=True)
try:
    {call}
except KeyboardInterrupt:
    import threading
    print("joined", len(__import__("os").listdir("/proc/self/task")), flush=True)
"""


@two
@pytest.mark.skipif(sys.platform != "linux", reason="counts threads in /proc")
@pytest.mark.parametrize(
    "call",
    ['_engine.lab_ring("v2", two_cpus(), 64, 1 << 40)', '_engine.lab_lock("v5", two_cpus(), 1 << 40)'],
    ids=["ring", "lock"],
)
def test_an_interrupt_joins_the_threads(call: str) -> None:
    child = subprocess.Popen([sys.executable, "-c", ENDLESS.format(call=call)], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None and child.stdout.readline() == "go\n"
    time.sleep(0.3)
    child.send_signal(signal.SIGINT)
    out, _ = child.communicate(timeout=30)
    assert out.split()[0] == "joined" and child.returncode == 0


def test_an_interrupt_keeps_the_finished_rounds() -> None:
    def stop() -> dict:
        raise KeyboardInterrupt

    assert keep_rounds([lambda: {"a": 1}, lambda: {"a": 2}, stop, lambda: {"a": 3}]) == ([{"a": 1}, {"a": 2}], True)


# --- what recordings say


def test_near_and_far_are_found_in_the_data_and_one_mode_stays_one() -> None:
    both = labs.modes([70.0, 72.0, 75.0, 260.0, 255.0])
    assert both.of == ("near", "near", "near", "far", "far") and 75 < both.threshold < 255
    assert labs.modes([70.0, 72.0, 90.0]).names == ("one",)


def test_one_preempted_round_is_no_mode() -> None:
    assert labs.modes([*np.linspace(70, 80, 60), 50_000.0]).names == ("one",)


def test_jain_is_one_for_equal_shares_and_a_half_when_one_of_two_has_all() -> None:
    assert labs.jain([5, 5]) == 1.0 and labs.jain([7, 0]) == 0.5


@two
@pytest.mark.parametrize("name", ["roundtrip", "pipeline"])
def test_a_quick_study_runs_from_end_to_end(name: str, tmp_path: Path) -> None:
    recording = dl.studies.run(name, quick=True)
    recording.save(tmp_path / "r.json")
    again = dl.load(tmp_path / "r.json")
    assert again == recording and name in again.extra
    assert tables(again) == tables(recording)
    assert name in names(again)
    assert render(draw(again, name), "png") == render(draw(recording, name), "png")


def _rings(v5: float, v9: float, sample) -> dl.Recording:
    rng = np.random.default_rng(1)
    speeds = {"v2": 5.0, "v3": 15.0, "v4": 50.0, "v5": v5, "v9": v9}
    rounds = [
        {"version": v, "capacity": 1024, "million_per_s": x * rng.normal(1, 0.01), "before_ns": 70.0, "after_ns": 70.0}
        for _ in range(200)
        for v, x in speeds.items()
    ]
    why = {"cache misses": "none", "energy": "none"}
    return sample(extra={"ring": {"items": 9, "rounds": rounds, "counters": why}}, measurements=[])


def test_findings_of_the_posts_can_hold_fail_and_stay_open(sample) -> None:
    answers = [row[-1] for row in next(post_tables(_rings(120.0, 240.0, sample))).rows]
    assert answers == ["holds"] * 5
    answers = [row[-1] for row in next(post_tables(_rings(60.0, 60.0, sample))).rows]
    assert answers == ["holds", "holds", "does not hold here", "holds", "does not hold here"]
    assert next(post_tables(_rings(100.0, 130.0, sample))).rows[-1][-1].startswith("unresolved")


@two
def test_the_benchmark_beside_boost_runs_and_loses_nothing() -> None:
    bench = ROOT / "tests/bench/spsc.py"
    done = subprocess.run([sys.executable, bench, "20000", "1"], capture_output=True, text=True)
    if "boost/lockfree" in done.stderr:
        pytest.skip("Boost's headers are not installed")
    assert done.returncode == 0, done.stderr
    assert "dl_ring-in-place" in done.stdout and "boost-arrays" in done.stdout
