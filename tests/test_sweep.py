"""A sweep is the same however often it was interrupted and wherever it ran; what cannot be swept costs one line."""

import csv
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import dispatchlab as dl
from dispatchlab.cli import main
from dispatchlab.commands.sweep import traffics
from dispatchlab.sweep import CSV, PLAN, Folder, Plan, run
from dispatchlab.sweeptable import COLUMNS

GRID = ["--handlers", "4,10", "--traffic", "uniform,hot:0.9,2", "--residual", "0,0.3", "--rounds", "8"]
PLANNED = Plan((4, 10), ("uniform", "hot:0.9,2"), ("chain",), ("scan", "scan-ordered", "table-compact"), (0.0, 0.3), rounds=8)
ROOT = Path(dl.__file__).parent.parent
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}


def command(*words: str) -> list[str]:
    return [sys.executable, "-m", "dispatchlab", "sweep", *words]


def facts(folder: Path) -> dict[str, object]:
    """All that two sweeps of one plan must agree in, by file."""
    found = {}
    for file in folder.glob("*-*.json"):
        m, extra = (r := dl.load(file)).measurements[0], dict(r.extra["sweep"])
        extra.pop("host")
        found[file.name] = (dict(m.checksums), dict(m.expected), dict(m.probes), m.order.tolist(), m.slots, extra)
    return found


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sweep that nothing interrupted."""
    folder = tmp_path_factory.mktemp("whole")
    assert main(["sweep", *GRID, "--out", str(folder)]) == 0
    return folder


def test_every_combination_is_a_recording_and_every_arm_a_row(whole: Path) -> None:
    assert set(facts(whole)) == {PLANNED.file_of(c) for c in PLANNED.combinations()}
    with (whole / CSV).open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 8 * 3 and tuple(rows[0]) == COLUMNS
    for row in rows:
        assert float(row["low"]) <= float(row["ns"]) <= float(row["high"])
        assert row["ok"] == "True" and len(row["host"]) == 16
    base = [row for row in rows if row["arm"] == "table-compact"]
    assert all(float(row["ratio"]) == 1 for row in base)
    together = {(row["handlers"], row["traffic"], row["body"], row["residual"]): set() for row in rows}
    for row in rows:
        together[row["handlers"], row["traffic"], row["body"], row["residual"]].add(row["checksum"])
    assert all(len(sums) == 1 for sums in together.values()), "arms of one combination answer alike"


def test_the_arms_of_a_combination_are_interleaved_in_one_measurement(whole: Path) -> None:
    recording = dl.load(next(whole.glob("10-uniform-*.json")))
    assert [len(recording.measurements), len(recording.measurements[0].slots)] == [1, 4]
    assert recording.ratio("scan", "table-compact").n == 8


def test_what_is_finished_is_never_measured_again(whole: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = {file.name: file.stat().st_mtime_ns for file in whole.glob("*-*.json")}
    table = (whole / CSV).read_bytes()
    assert main(["sweep", *GRID, "--out", str(whole)]) == 0
    assert {file.name: file.stat().st_mtime_ns for file in whole.glob("*-*.json")} == before
    assert capsys.readouterr().out.count(" kept ") == 8
    assert (whole / CSV).read_bytes() == table


def test_a_sweep_that_was_killed_goes_on_to_the_same_files(whole: Path, tmp_path: Path) -> None:
    folder, kept = tmp_path / "killed", 0
    for after in (1, 4):  # kill -9 when so many files are there
        process = subprocess.Popen(command(*GRID, "--out", str(folder)), stdout=subprocess.DEVNULL, env=ENVIRONMENT)
        wait(lambda goal=after: len(list(folder.glob("*-*.json"))) >= goal)
        process.send_signal(signal.SIGKILL)
        process.wait()
        times = {file.name: file.stat().st_mtime_ns for file in folder.glob("*-*.json")}
        assert kept < len(times) < 8
        kept = len(times)
    (folder / f".{'0' * 16}.tmp").write_bytes(b"half a recording")
    assert main(["sweep", *GRID, "--out", str(folder)]) == 0
    assert {name: (folder / name).stat().st_mtime_ns for name in times} == times
    assert facts(folder) == facts(whole)
    assert sorted(f.name for f in folder.iterdir()) == sorted(f.name for f in whole.iterdir())


def wait(ready, seconds: float = 30) -> None:
    end = time.monotonic() + seconds
    while not ready():
        assert time.monotonic() < end, "nothing happened"
        time.sleep(0.02)


def test_a_damaged_file_is_measured_again_and_a_whole_one_of_another_plan_is_refused(whole: Path, tmp_path: Path) -> None:
    for file in whole.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    first, second = (tmp_path / PLANNED.file_of(c) for c in PLANNED.combinations()[:2])
    first.write_bytes(first.read_bytes()[:900])
    how = []
    with Folder(tmp_path, PLANNED) as folder:
        run(PLANNED, folder, lambda c, r, said: how.append(said))
    assert sorted(how) == ["kept"] * 7 + ["measured"]
    assert facts(tmp_path) == facts(whole)
    first.write_bytes(second.read_bytes())
    with Folder(tmp_path, PLANNED) as folder, pytest.raises(dl.UsageError, match="not of this sweep"):
        folder.finished(PLANNED.combinations()[0])


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--handlers", "4,11"], "another plan: expected handlers [4, 10]; got handlers [4, 11]"),
        (["--seed", "1"], "another plan: expected seed 0; got seed 1"),
        (["--rounds", "9"], "another plan: expected rounds 8; got rounds 9"),
    ],
)
def test_another_plan_in_the_same_folder_is_refused(
    words: list[str], says: str, whole: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = sorted(f.name for f in whole.iterdir())
    assert main(["sweep", *GRID, *words, "--out", str(whole)]) == 2
    assert says in (err := capsys.readouterr().err) and err.count("\n") == 1
    assert sorted(f.name for f in whole.iterdir()) == before


def test_a_folder_holds_one_sweep_at_a_time_and_no_foreign_plan(tmp_path: Path) -> None:
    with Folder(tmp_path, PLANNED), pytest.raises(dl.UsageError, match="another sweep is at work"):
        Folder(tmp_path, PLANNED).__enter__()
    (tmp_path / PLAN).write_text(json.dumps([1]), encoding="ascii")
    with pytest.raises(dl.UsageError, match="not the plan of a sweep"):
        Folder(tmp_path, PLANNED).__enter__()


BAD = {
    "--handlers": ["", "ten", "0", "600", "4,4"],
    "--traffic": ["nothing", "zipf:x", "missing.csv"],
    "--body": ["chian"],
    "--arm": ["scam", ""],
    "--residual": ["2", "x"],
    "--budget": ["0s"],
    "--rounds": ["0"],
    "--cpu": ["99999"],
}


@pytest.mark.parametrize(("option", "value"), [(o, v) for o, values in BAD.items() for v in values])
def test_what_cannot_be_swept_costs_one_line_and_no_recording(
    option: str, value: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--handlers", "4", "--traffic", "uniform", "--rounds", "8"]
    assert main(["sweep", *words, option, value, "--out", str(tmp_path)]) in (1, 2)
    assert capsys.readouterr().err.count("\n") == 1
    assert not list(tmp_path.glob("*-*.json"))


def test_an_arm_that_cannot_hold_the_last_combination_is_refused_before_the_first_is_measured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["sweep", "--handlers", "4,200", "--traffic", "uniform", "--arm", "switch", "--out", str(tmp_path)]) == 2
    assert "switch" in capsys.readouterr().err
    assert not list(tmp_path.glob("*-*.json"))


def test_a_number_behind_a_comma_belongs_to_the_traffic_before_it(tmp_path: Path) -> None:
    assert traffics(["uniform,hot:0.9,2,zipf:1.1", "bursts"]) == ("uniform", "hot:0.9,2", "zipf:1.1", "bursts")
    file = tmp_path / "a,b.csv"
    file.write_text("key,packets\nx,1\n", encoding="ascii")
    assert traffics([str(file), "worst"]) == (str(file), "worst")


def test_a_traffic_file_that_changed_makes_another_plan(tmp_path: Path) -> None:
    counts = tmp_path / "counts.csv"
    counts.write_text("key,packets\nx,1\ny,2\n", encoding="ascii")
    words = ["sweep", "--handlers", "4", "--traffic", str(counts), "--rounds", "8", "--out", str(tmp_path / "out")]
    assert main(words) == 0
    counts.write_text("key,packets\nx,1\ny,3\n", encoding="ascii")
    assert main(words) == 2
