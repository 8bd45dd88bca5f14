"""The instruments: the clock moves forward, pins come off again, ledgers and counters see what was provoked,
and what cannot be read says why."""

import errno
import mmap
import os
import platform
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from dispatchlab import _engine, counters
from dispatchlab.errors import UsageError

ROOT = Path(__file__).parent.parent
CORE = ROOT / "csrc" / "core"
WORK = ["cycles", "instructions", "branches", "branch-misses"]
HARDWARE = [*WORK, "L1i-misses", "iTLB-misses", "frontend-stalls"]
SOFTWARE = ["task-clock", "context-switches", "cpu-migrations", "page-faults"]
LEDGER = {"voluntary", "involuntary", "minor_faults", "major_faults", "steal", "migrations", "skew_ppb"}
PAGES = 256
NAPS = 7

linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux pins threads and counts events")
two_cpus = pytest.mark.skipif(len(_engine.allowed_cpus()) < 2, reason="only one CPU is allowed here")


def touch_fresh_pages() -> None:
    with mmap.mmap(-1, PAGES * mmap.PAGESIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as fresh:
        fresh.madvise(mmap.MADV_NOHUGEPAGE)
        for page in range(PAGES):
            fresh[page * mmap.PAGESIZE] = 1


def nap() -> None:
    for _ in range(NAPS):
        time.sleep(0.001)


def move_between_cpus() -> None:
    first, second = _engine.allowed_cpus()[:2]
    for cpu in [first, second]:
        _engine.pinned(cpu, lambda: None)


# --- clock


def test_the_clock_moves_forward_and_knows_its_rate() -> None:
    info = _engine.clock_info()
    assert info["source"] in {"tsc", "cntvct", "monotonic"}
    assert info["step"] > 0
    assert info["cost"] >= 0
    readings = np.array([_engine.clock_reading() for _ in range(5000)], dtype=np.uint64)
    smallest, backward = _engine.clock_steps(readings)
    assert smallest > 0
    assert backward == 0

    ticks, ns = _engine.clock_reading(), time.monotonic_ns()
    time.sleep(0.05)
    ticks, ns = _engine.clock_reading() - ticks, time.monotonic_ns() - ns
    assert ticks / ns == pytest.approx(info["ticks_per_ns"], rel=0.05)


def test_a_clock_that_steps_back_is_seen() -> None:
    assert _engine.clock_steps(np.array([10, 13, 13, 8, 20], dtype=np.uint64)) == (3, 5)
    assert _engine.clock_steps(np.array([2**64 - 1, 4], dtype=np.uint64)) == (5, 0)
    assert _engine.clock_steps(np.array([7, 7, 7], dtype=np.uint64)) == (0, 0)
    with pytest.raises(ValueError, match="64-bit"):
        _engine.clock_steps(np.zeros(4, dtype=np.uint32))


# --- pinning


@linux
def test_a_pin_holds_during_the_call_and_the_mask_comes_back() -> None:
    before = os.sched_getaffinity(0)
    assert sorted(before) == _engine.allowed_cpus()
    for cpu in _engine.allowed_cpus():
        assert _engine.pinned(cpu, lambda: os.sched_getaffinity(0)) == {cpu}
        assert os.sched_getaffinity(0) == before


@linux
def test_the_mask_comes_back_when_the_call_raises() -> None:
    before = os.sched_getaffinity(0)
    with pytest.raises(ZeroDivisionError):
        _engine.pinned(_engine.allowed_cpus()[0], lambda: 1 // 0)
    assert os.sched_getaffinity(0) == before


@linux
@two_cpus
def test_a_cpu_outside_the_allowed_set_is_refused_by_a_line_naming_the_set() -> None:
    before = os.sched_getaffinity(0)
    last = max(before)
    try:
        os.sched_setaffinity(0, before - {last})
        with pytest.raises(ValueError, match=rf"allowed CPUs {min(before)}.*; got {last}$"):
            _engine.pinned(last, lambda: None)
        with pytest.raises(UsageError, match=f"got {last}$"):
            counters.count(lambda: None, cpu=last)
        assert os.sched_getaffinity(0) == before - {last}
    finally:
        os.sched_setaffinity(0, before)
    for nonsense in (-1, 10**6, 2**31 - 1):
        with pytest.raises(ValueError, match=f"got {nonsense}$"):
            _engine.pinned(nonsense, lambda: None)


# --- ledger


@linux
@pytest.mark.parametrize(
    ("column", "provoke", "least"), [("voluntary", nap, NAPS), ("minor_faults", touch_fresh_pages, PAGES)]
)
def test_the_ledger_sees_what_was_provoked(column: str, provoke: Callable[[], None], least: int) -> None:
    row = _engine.ledger_call(provoke)
    assert set(row) == LEDGER
    assert row[column] >= least
    assert _engine.ledger_call(lambda: None)[column] < least


@linux
@two_cpus
def test_the_ledger_sees_a_migration() -> None:
    before = os.sched_getaffinity(0)
    first, second = sorted(before)[:2]
    try:
        os.sched_setaffinity(0, {first})
        assert _engine.ledger_call(lambda: None)["migrations"] == 0
        assert _engine.ledger_call(lambda: os.sched_setaffinity(0, {second}))["migrations"] == 1
    finally:
        os.sched_setaffinity(0, before)


@linux
def test_the_ledger_sees_preemption() -> None:
    cpu = _engine.allowed_cpus()[0]
    busy = f"import os; os.sched_setaffinity(0, {{{cpu}}}); print(flush=True)\nwhile True: pass"
    rival = subprocess.Popen([sys.executable, "-c", busy], stdout=subprocess.PIPE)
    try:
        assert rival.stdout is not None
        rival.stdout.readline()
        end = time.monotonic() + 0.3

        def spin() -> None:
            while time.monotonic() < end:
                pass

        assert _engine.pinned(cpu, lambda: _engine.ledger_call(spin, cpu))["involuntary"] > 0
    finally:
        rival.kill()
        rival.communicate()


@linux
def test_steal_is_read_for_every_allowed_cpu_and_for_none_that_is_missing() -> None:
    lines = Path("/proc/stat").read_text().splitlines()
    if len(lines[0].split()) < 9:
        pytest.skip("this kernel's /proc/stat has no steal column")
    for cpu in [*_engine.allowed_cpus(), -1]:
        assert _engine.ledger_call(lambda: None, cpu)["steal"] >= 0
    assert _engine.ledger_call(lambda: None, 99999)["steal"] == -1


# --- counters


@linux
def test_software_counters_count() -> None:
    def both() -> None:
        nap()
        touch_fresh_pages()

    seen = counters.count(both)
    assert list(seen) == HARDWARE + SOFTWARE
    assert NAPS <= (seen["context-switches"].value or 0) < NAPS + 100
    assert PAGES <= (seen["page-faults"].value or 0) < PAGES + 100
    assert (seen["task-clock"].value or 0) > 0
    idle = counters.count(lambda: None)
    assert (idle["page-faults"].value or 0) < PAGES
    assert idle["context-switches"].value is not None


@linux
@two_cpus
def test_migrations_are_counted_or_explained() -> None:
    seen = counters.count(move_between_cpus)["cpu-migrations"]
    assert (seen.value or 0) >= 1 or seen.reason


@linux
def test_hardware_counters_have_a_positive_value_or_a_reason() -> None:
    seen = counters.count(lambda: sum(range(100_000)), cpu=_engine.allowed_cpus()[0])
    for name in HARDWARE:
        count = seen[name]
        if count.value is None:
            assert count.reason
            assert count.source is None
        else:
            assert count.reason is None
            assert 0 < count.running_ns <= count.enabled_ns
    for name in ["cycles", "instructions", "branches"]:
        assert seen[name].value != 0


@linux
def test_available_names_every_counter() -> None:
    reasons = counters.available()
    assert list(reasons) == HARDWARE + SOFTWARE
    assert reasons["task-clock"] is None


def test_what_the_counted_call_raises_passes_through() -> None:
    with pytest.raises(ZeroDivisionError):
        counters.count(lambda: 1 // 0)


@pytest.mark.parametrize(
    "name", ["EACCES", "EPERM", "ENOENT", "EINVAL", "EOPNOTSUPP", "ENODEV", "ENOSYS", "EMFILE"]
)
def test_every_refusal_has_its_own_line(name: str) -> None:
    line = _engine.counter_reason(getattr(errno, name))
    assert line.startswith(f"{name}: ")
    assert "\n" not in line
    assert ("perf_event_paranoid is" in line) == (
        name in {"EACCES", "EPERM"} and Path("/proc/sys/kernel/perf_event_paranoid").exists()
    )


def test_an_unknown_refusal_still_says_something() -> None:
    assert _engine.counter_reason(0) == ""
    assert "4321" in _engine.counter_reason(4321)


# A kernel that refuses, made with a seccomp filter: load the call's number, compare, answer errno or allow.
REFUSING = """
import ctypes, struct, sys
from dispatchlab import counters
number, code = int(sys.argv[1]), int(sys.argv[2])
rules = [(0x20, 0, 0, 0), (0x15, 0, 1, number), (0x06, 0, 0, 0x00050000 | code), (0x06, 0, 0, 0x7FFF0000)]
program = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *rule) for rule in rules))
filter = ctypes.create_string_buffer(struct.pack("HP", len(rules), ctypes.addressof(program)))
prctl = ctypes.CDLL(None, use_errno=True).prctl
if prctl(38, 1, 0, 0, 0) or prctl(22, 2, filter, 0, 0):
    sys.exit(77)
for name, seen in counters.count(lambda: sum(range(1000))).items():
    print(name, seen.value, seen.source, seen.reason, sep="|")
"""
PERF_EVENT_OPEN = {"x86_64": 298, "aarch64": 241}


def run_python(code: str, *arguments: object) -> list[list[str]]:
    """Lines of fields that the code printed in a process of its own."""
    command = [sys.executable, "-P", "-c", code, *map(str, arguments)]  # -P: the installed package, not ./
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode == 77:
        pytest.skip("this kernel does not let a process restrict itself")
    assert done.returncode == 0, done.stderr
    return [line.split("|") for line in done.stdout.splitlines()]


@linux
@pytest.mark.skipif(platform.machine() not in PERF_EVENT_OPEN, reason="system call number not known here")
@pytest.mark.parametrize("name", ["EACCES", "EPERM", "ENOENT", "EINVAL", "ENOSYS"])
def test_a_kernel_that_refuses_leaves_software_counts_and_named_reasons(name: str) -> None:
    rows = run_python(REFUSING, PERF_EVENT_OPEN[platform.machine()], getattr(errno, name))
    seen = {row[0]: row[1:] for row in rows}
    assert list(seen) == HARDWARE + SOFTWARE
    for counter in [*HARDWARE, "cpu-migrations"]:
        value, source, reason = seen[counter]
        assert (value, source) == ("None", "None")
        assert reason.startswith(f"{name}: ")
    for counter in ["task-clock", "context-switches", "page-faults"]:
        value, source, reason = seen[counter]
        assert int(value) >= 0
        assert (source, reason) == ("accounting", "None")


UNPRIVILEGED = """
import os, time
from dispatchlab import counters
os.setgroups([]); os.setgid(65534); os.setuid(65534)
for name, seen in counters.count(lambda: [time.sleep(0.001) for _ in range(7)]).items():
    print(name, seen.value, seen.source, seen.reason, sep="|")
"""


@linux
@pytest.mark.skipif(getattr(os, "geteuid", lambda: 1)() != 0, reason="needs root to give root up")
def test_an_ordinary_user_gets_context_switches_too() -> None:
    """Restricted to user mode, as that user's events may be, a software event would count 0 switches."""
    seen = {row[0]: row[1:] for row in run_python(UNPRIVILEGED)}
    assert int(seen["context-switches"][0]) >= NAPS
    assert int(seen["task-clock"][0]) > 0


# --- what cannot be provoked on a real machine


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = shutil.which(os.environ.get("CC", "cc"))
    if compiler is None:
        pytest.skip("no C compiler")
    binary = tmp_path_factory.mktemp("driver") / "instruments"
    core = [*CORE.glob("counters*.c"), *(CORE / f"{name}.c" for name in ["ledger", "clock", "affinity"])]
    flags = ["-std=c11", "-D_GNU_SOURCE", f"-I{CORE}"]
    subprocess.run([compiler, *flags, *core, ROOT / "tests/c/instruments.c", "-o", binary], check=True)
    return binary


@pytest.fixture(scope="module")
def answers(driver: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[int]]:
    """Answers by question, on a machine with two kinds of cores."""
    devices = tmp_path_factory.mktemp("devices")
    kinds = {"cpu_core": (4, "0-3,5\n"), "cpu_atom": (10, "4,6-8\n"), "uncore": (20, ""), "software": (1, "")}
    for name, (kind, cpus) in kinds.items():
        (devices / name).mkdir()
        (devices / name / "type").write_text(f"{kind}\n")
        if cpus:
            (devices / name / "cpus").write_text(cpus)
    done = subprocess.run([driver, devices], capture_output=True, text=True, check=True)
    return {name: [int(v) for v in values] for name, *values in map(str.split, done.stdout.splitlines())}


PERF, ACCOUNTING = 1, 2
UNPINNED_HYBRID, NEVER_SCHEDULED = -1, -2


@linux
def test_events_name_the_core_kind_of_the_pinned_cpu(answers: dict[str, list[int]]) -> None:
    assert answers["pmu/0"] == [0, 4 << 32]
    assert answers["pmu/4"] == [0, 10 << 32]
    assert answers["pmu/5"] == [0, 4 << 32]
    assert answers["pmu/9"][0] == errno.ENODEV
    assert answers["pmu/-1"][0] == UNPINNED_HYBRID


@linux
def test_one_core_kind_needs_no_name(driver: Path, tmp_path: Path) -> None:
    (tmp_path / "armv8_pmuv3").mkdir()
    (tmp_path / "armv8_pmuv3" / "type").write_text("8\n")
    (tmp_path / "armv8_pmuv3" / "cpus").write_text("0-9\n")
    lines = subprocess.run([driver, tmp_path], capture_output=True, text=True, check=True).stdout.splitlines()
    assert "pmu/0 0 0" in lines
    assert "pmu/-1 0 0" in lines


@linux
def test_shared_counters_are_scaled_by_the_time_they_ran(answers: dict[str, list[int]]) -> None:
    work = [answers[f"shared/{name}"][:2] for name in WORK]
    assert work == [[4000, PERF], [8000, PERF], [12000, PERF], [16000, PERF]]


@linux
def test_a_counter_that_never_ran_is_not_zero(answers: dict[str, list[int]]) -> None:
    for name in HARDWARE + SOFTWARE:
        assert answers[f"starved/{name}"][:3] == [-1, 0, NEVER_SCHEDULED]


@linux
def test_events_that_fit_no_group_count_alone(answers: dict[str, list[int]]) -> None:
    for name in HARDWARE + SOFTWARE:
        assert answers[f"no_groups/{name}"] == [4000, PERF, 0, 1]


@linux
def test_without_descriptors_the_accounting_stands_in(answers: dict[str, list[int]]) -> None:
    for name in [*HARDWARE, "cpu-migrations"]:
        assert answers[f"no_files/{name}"][:3] == [-1, 0, errno.EMFILE]
    for name in ["task-clock", "context-switches", "page-faults"]:
        assert answers[f"no_files/{name}"][1:3] == [ACCOUNTING, 0]


@linux
def test_hardware_counts_user_mode_and_software_everything(answers: dict[str, list[int]]) -> None:
    assert {answers[f"modes/{name}"][2] for name in [*HARDWARE, "cpu-migrations"]} == {errno.ENOENT}


@linux
def test_a_machine_of_4096_cpus_has_all_of_its_allowed_set(answers: dict[str, list[int]]) -> None:
    assert answers["save"] == [0]
    assert answers["allowed"] == [5, 0, 1, 2]
    assert answers["described"] == [0, 0]


@linux
def test_steal_is_read_from_the_right_column_of_the_right_line(answers: dict[str, list[int]]) -> None:
    assert [answers[f"steal/{which}"] for which in ["sum", "one", "eleven"]] == [[300], [80], [220]]
    for unreadable in ["offline", "namesake", "old", "cut", "empty"]:
        assert answers[f"steal/{unreadable}"] == [-1]


@linux
def test_a_ledger_row_is_the_difference_or_minus_one(answers: dict[str, list[int]]) -> None:
    def row(name: str) -> dict[str, int]:
        return {column: answers[f"{name}/{column}"][0] for column in LEDGER}

    counts = {"voluntary": 1, "involuntary": 2, "minor_faults": 3, "major_faults": 4, "steal": 5}
    assert row("moved") == {**counts, "migrations": 1, "skew_ppb": 5000}
    assert row("stepped")["skew_ppb"] > 1_000_000_000
    assert set(row("missing").values()) == {-1}
