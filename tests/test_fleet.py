"""A sweep on a Dask cluster gives what a sweep here gives, whatever happens to a worker."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import dispatchlab as dl
from dispatchlab.cli import main
from dispatchlab.fleet import connect
from dispatchlab.sweep import Plan

ROOT = Path(dl.__file__).parent.parent
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
GRID = ["--handlers", "4,10", "--traffic", "uniform,hot", "--arm", "scan,table-compact"]
PLANNED = Plan((4, 10), ("uniform", "hot"), ("chain",), ("scan", "table-compact"), (0.1,), rounds=8)


def dask(*words: str) -> subprocess.Popen[bytes]:
    started = [sys.executable, "-m", "distributed.cli." + words[0], *words[1:]]
    return subprocess.Popen(started, env=ENVIRONMENT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def worker(file: Path, *more: str) -> subprocess.Popen[bytes]:
    """Without a nanny, so that a worker that is killed stays dead; it takes part."""
    resources = more or ("--resources", "dispatchlab=1")
    return dask("dask_worker", "--scheduler-file", str(file), "--nthreads", "1", "--no-nanny", "--no-dashboard", *resources)


def sweep(scheduler: object, folder: Path, *more: str) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-m", "dispatchlab", "sweep", *GRID, *more, "--out", str(folder), "--on", str(scheduler)]
    return subprocess.run(words, env=ENVIRONMENT, capture_output=True, text=True, timeout=60)


@contextlib.contextmanager
def ended(*processes: subprocess.Popen[bytes]) -> Iterator[None]:
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def wait(ready: Callable[[], bool]) -> None:
    end = time.monotonic() + 30
    while not ready():
        assert time.monotonic() < end, "nothing happened"
        time.sleep(0.05)


@pytest.fixture(scope="module")
def scheduler(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The file of a scheduler without workers."""
    pytest.importorskip("distributed", reason="the extra fleet is not installed")
    file = tmp_path_factory.mktemp("dask") / "scheduler.json"
    process = dask("dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", str(file))
    with ended(process):
        wait(file.exists)
        yield file


def facts(folder: Path) -> dict[str, object]:
    found = {}
    for file in folder.glob("*-*.json"):
        m = dl.load(file).measurements[0]
        found[file.name] = (dict(m.checksums), dict(m.probes), m.order.tolist(), m.slots)
    return found


def test_without_a_worker_that_takes_part_one_line_says_how_to_start_one(scheduler: Path, tmp_path: Path) -> None:
    with ended(worker(scheduler, "--name", "idle")):
        done = sweep(scheduler, tmp_path, "--rounds", "8")
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1 and "--resources dispatchlab=1" in done.stderr


READY = "import sys, distributed; distributed.Client(scheduler_file=sys.argv[1], timeout=20).wait_for_workers(2, timeout=30)"


@pytest.fixture(scope="module")
def workers(scheduler: Path) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Two that take part."""
    started = [worker(scheduler), worker(scheduler)]
    with ended(*started):
        subprocess.run([sys.executable, "-c", READY, str(scheduler)], check=True, capture_output=True, timeout=60)
        yield started


def test_two_workers_give_the_cells_that_one_machine_gives(scheduler: Path, workers: list[object], tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    done = sweep(scheduler, there, "--rounds", "8")
    assert done.returncode == 0 and done.stdout.count(" measured ") == 4, done.stderr
    assert main(["sweep", *GRID, "--rounds", "8", "--out", str(here)]) == 0
    assert len(facts(here)) == 4 and facts(here) == facts(there)
    assert sorted(f.name for f in here.iterdir()) == sorted(f.name for f in there.iterdir())
    hosts = {dl.load(file).extra["sweep"]["host"] for folder in (here, there) for file in folder.glob("*-*.json")}
    assert len(hosts) == 1, "the same machine, however it was asked"


def test_a_worker_that_is_killed_costs_no_cell(
    scheduler: Path, workers: list[subprocess.Popen[bytes]], tmp_path: Path
) -> None:
    words = [*GRID, "--budget", "500ms", "--out", str(tmp_path), "--on", str(scheduler)]
    started = [sys.executable, "-m", "dispatchlab", "sweep", *words]
    process = subprocess.Popen(started, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait(lambda: bool(list(tmp_path.glob("*-*.json"))))
    workers[0].send_signal(signal.SIGKILL)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert out.count(" measured ") == 4
    assert set(facts(tmp_path)) == {PLANNED.file_of(c) for c in PLANNED.combinations()}


GOES_ON = """
import sys
from dispatchlab import fleet
from dispatchlab.errors import ToolError
from dispatchlab.sweep import Folder, Plan
plan = Plan((4, 10), ("uniform",), ("chain",), ("scan",), (0.1, 0.2, 0.3, 0.4), budget=0.5)
with Folder(sys.argv[1], plan) as folder:
    try:
        fleet.run(plan, folder, lambda c, r, how: print(how, flush=True), sys.argv[2], patience=1)
    except ToolError as error:
        sys.exit(str(error))
"""


def test_when_all_workers_are_gone_what_came_is_kept_and_the_rest_is_told(
    scheduler: Path, workers: list[subprocess.Popen[bytes]], tmp_path: Path
) -> None:
    words = [sys.executable, "-c", GOES_ON, str(tmp_path), str(scheduler)]
    process = subprocess.Popen(words, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait(lambda: bool(list(tmp_path.glob("*-*.json"))))
    for each in workers:
        each.send_signal(signal.SIGKILL)
    out, err = process.communicate(timeout=60)
    kept = len(list(tmp_path.glob("*-*.json")))
    assert process.returncode == 1 and 1 <= kept < 8
    assert out.count("measured") == kept
    assert f"all workers are gone, {8 - kept} combinations are not measured" in err


def test_a_scheduler_that_does_not_answer_costs_one_line() -> None:
    pytest.importorskip("distributed", reason="the extra fleet is not installed")
    for nowhere in ("nonsense://nowhere", "tcp://127.0.0.1:1", "127.0.0.1"):
        with pytest.raises(dl.Error, match="no scheduler answers") as refused:
            connect(nowhere)
        assert "\n" not in str(refused.value)


def test_a_missing_extra_costs_one_line(tmp_path: Path) -> None:
    hide = tmp_path / "distributed.py"
    hide.write_text("raise ImportError('hidden')\n", encoding="ascii")
    words = [sys.executable, "-m", "dispatchlab", "sweep", *GRID, "--out", str(tmp_path / "out"), "--on", "tcp://127.0.0.1:1"]
    path = os.pathsep.join([str(tmp_path), ENVIRONMENT["PYTHONPATH"]])
    done = subprocess.run(words, env={**ENVIRONMENT, "PYTHONPATH": path}, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1 and "dispatchlab[fleet]" in done.stderr
