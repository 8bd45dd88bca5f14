"""The tuner promises to leave the machine as it found it, whatever kills it, and to say what each knob did."""

import fcntl
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from dispatchlab.cli import main
from dispatchlab.errors import Error
from dispatchlab.machine import tune
from dispatchlab.machine.journal import Entry, Journal, parse, place
from dispatchlab.machine.knobs import chosen

CPU = "sys/devices/system/cpu"
ASLR = Path("/proc/sys/kernel/randomize_va_space")
THP = Path("/sys/kernel/mm/transparent_hugepage/enabled")
CPUSET = Path("/sys/fs/cgroup/cpuset")

FILES = {
    f"{CPU}/online": "0-1\n",
    f"{CPU}/smt/control": "on\n",
    f"{CPU}/cpu1/topology/thread_siblings_list": "1\n",
    f"{CPU}/intel_pstate/no_turbo": "0\n",
    "proc/sys/kernel/random/boot_id": "5c0e-boot\n",
    "proc/sys/kernel/nmi_watchdog": "1\n",
    "proc/irq/24/smp_affinity_list": "0-1\n",
    "proc/irq/25/smp_affinity_list": "0\n",
    "sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never\n",
    "sys/fs/cgroup/cgroup.controllers": "cpuset cpu\n",
    "sys/fs/cgroup/cgroup.subtree_control": "cpu\n",
} | {
    f"{CPU}/cpufreq/policy{n}/{name}": text
    for n in (0, 1)
    for name, text in {
        "scaling_governor": "powersave\n",
        "scaling_min_freq": "800000\n",
        "scaling_max_freq": "3600000\n",
        "scaling_available_governors": "performance powersave\n",
    }.items()
}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "tree"
    for name, text in FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def state(root: Path) -> dict[str, bytes | None]:
    return {str(p.relative_to(root)): p.read_bytes() if p.is_file() else None for p in sorted(root.rglob("*"))}


def cli(*argv: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "dispatchlab", "tune", *argv], capture_output=True, text=True, check=False)


KILLER = """
import os, signal, sys
from pathlib import Path
from dispatchlab.cli import main, parser
from dispatchlab.machine import tune

parser()  # imports every command once, and not once in each child
root, torn, plain = sys.argv[1], sys.argv[2] == "torn", tune.write

def state():
    return {str(p): p.read_bytes() if p.is_file() else None for p in sorted(Path(root).rglob("*"))}

def fork(argv, deadly):
    pid = os.fork()
    if pid == 0:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        left = [deadly]
        def write(r, path, value):
            left[0] -= 1
            plain(r, path, "" if torn and left[0] == 0 else value)
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)
        tune.write = write
        os._exit(main(argv))
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

before, kills = state(), 0
while True:
    code = fork(["tune", "--root", root, "--", "true"], kills + 1)
    if code != -signal.SIGKILL:
        assert code == 0, code
        break
    kills += 1
    deadly = 1
    while fork(["tune", "--root", root, "--restore"], deadly) == -signal.SIGKILL:  # the restore is killed too, then again later
        deadly += 3
        assert deadly < 50
    assert state() == before, kills
assert state() == before
print(kills)
"""


@pytest.mark.parametrize("how", ["after", "torn"])
def test_killed_after_every_single_write_in_turn_the_restored_tree_is_byte_identical(tree: Path, how: str) -> None:
    done = subprocess.run([sys.executable, "-c", KILLER, str(tree), how], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout.split()[-1]) >= 20  # 12 writes of tuning, then those of putting back
    assert not place(tree).exists()


def test_each_knob_is_written_read_back_and_shown_and_dry_run_writes_nothing(
    tree: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = state(tree)
    assert main(["tune", "--root", str(tree), "--dry-run"]) == 0
    assert "madvise" in capsys.readouterr().out
    assert state(tree) == before
    assert main(["tune", "--root", str(tree)]) == 0
    shown = capsys.readouterr().out
    assert chosen((tree / "sys/kernel/mm/transparent_hugepage/enabled").read_text()) == "never"
    assert (tree / f"{CPU}/cpufreq/policy1/scaling_min_freq").read_text() == "3600000"
    assert (tree / "proc/irq/24/smp_affinity_list").read_text() == "0"
    assert "smt" in shown and "yes" in shown and "--restore" in shown
    assert main(["tune", "--root", str(tree)]) == 0  # twice: the tuned values are not taken for the old ones
    assert main(["tune", "--root", str(tree), "--restore"]) == 0
    assert state(tree) == before


def test_the_journal_is_on_the_disk_before_the_first_write(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    events: list[str] = []
    plain = os.fsync

    def flush(fd: int) -> None:
        events.append("folder" if os.path.isdir(f"/proc/self/fd/{fd}") else "file")
        plain(fd)

    monkeypatch.setattr(os, "fsync", flush)
    monkeypatch.setattr(tune, "write", lambda *a: events.append("write"))
    assert main(["tune", "--root", str(tree)]) == 0
    assert events[:3] == ["file", "folder", "write"]
    found = parse(place(tree).read_bytes())
    assert found.whole and {e.path for e in found.entries} >= {f"{CPU}/smt/control", "proc/irq/24/smp_affinity_list"}


def test_a_journal_cut_short_anywhere_gives_its_whole_values_and_one_line(
    tree: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = state(tree)
    assert main(["tune", "--root", str(tree), "--skip", "cpuset"]) == 0
    data = place(tree).read_bytes()
    tuned = state(tree)
    capsys.readouterr()
    for cut in range(1, len(data), 97):
        place(tree).write_bytes(data[:cut])
        whole = parse(data[:cut]).entries
        assert main(["tune", "--root", str(tree), "--restore"]) == 0
        assert "cut short" in (line := capsys.readouterr().out) and line.count("\n") == 1
        after = state(tree)
        assert {p for p in tuned if after[p] != tuned[p]} == {e.path for e in whole if before[e.path] != tuned[e.path]}
        for path in tuned:
            if tuned[path] is not None:
                (tree / path).write_bytes(tuned[path] or b"")


def test_values_of_another_boot_are_not_written(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tune", "--root", str(tree)]) == 0
    (tree / "proc/sys/kernel/random/boot_id").write_text("another\n")
    tuned = state(tree)
    capsys.readouterr()
    assert main(["tune", "--root", str(tree), "--restore"]) == 0
    assert "another boot" in capsys.readouterr().out
    assert state(tree) == tuned and not place(tree).exists()


def test_a_restore_that_fails_keeps_the_journal(
    tree: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = state(tree)
    assert main(["tune", "--root", str(tree)]) == 0
    watchdog, plain = "proc/sys/kernel/nmi_watchdog", tune.write

    def refuse(root: Path, path: str, value: str) -> None:
        if path == watchdog:
            raise PermissionError(1, "Operation not permitted")
        plain(root, path, value)

    with monkeypatch.context() as patch:
        patch.setattr(tune, "write", refuse)
        assert main(["tune", "--root", str(tree), "--restore"]) == 2
    assert watchdog in (line := capsys.readouterr().err) and line.count("\n") == 1
    assert place(tree).stat().st_size
    assert main(["tune", "--root", str(tree), "--restore"]) == 0
    assert state(tree) == before


def test_two_tuners_exclude_each_other(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = state(tree)
    journal = Journal(place(tree))
    try:
        assert main(["tune", "--root", str(tree)]) == 2
        assert "another tuner" in capsys.readouterr().err
        journal.record("boot", [Entry("write", "x", "1", "1")])
        with pytest.raises(Error, match="not put back"):
            journal.record("boot", [])
    finally:
        journal.close()
    assert state(tree) == before


@pytest.mark.parametrize(
    ("argv", "names"),
    [(["--only", "warp"], "warp"), (["--cpu", "7"], "0-1"), (["--priority", "100"], "100"), (["--", "/no/such"], "/no/such")],
)
def test_what_cannot_be_done_is_one_line_and_changes_nothing(
    tree: Path, capsys: pytest.CaptureFixture[str], argv: list[str], names: str
) -> None:
    before = state(tree)
    assert main(["tune", "--root", str(tree), *argv]) == 2
    assert names in (line := capsys.readouterr().err) and line.count("\n") == 1
    assert state(tree) == before


def machine() -> tuple[object, ...]:
    return ASLR.read_text(), THP.read_text(), sorted(p.name for p in CPUSET.iterdir() if p.is_dir()), os.sched_getaffinity(0)


def _reason() -> str:
    if os.geteuid() != 0:
        return "not root"
    if not (CPUSET / "cpuset.cpus").exists():
        return "no v1 cpuset here"
    able = all(os.access(p, os.W_OK) and p.stat().st_mode & 0o200 for p in (ASLR, THP))
    return "" if able else "ASLR or THP cannot be written here"


REAL = ["--only", "aslr-system", "--only", "thp", "--only", "cpuset", "--only", "aslr", "--only", "pin"]
SHOW = (
    f"print(open('{ASLR}').read(), open('{THP}').read(), open('/proc/self/cgroup').read(), open('/proc/self/personality').read(), "
    "__import__('os').sched_getaffinity(0), flush=True)"
)


@pytest.mark.usefixtures("whole_machine")
@pytest.mark.skipif(bool(_reason()), reason=_reason() or "runs")
def test_on_this_machine_aslr_thp_and_the_cpuset_are_changed_and_put_back() -> None:
    before = machine()
    done = cli(*REAL, "--", sys.executable, "-c", SHOW)
    assert done.returncode == 0, done.stderr
    inside = done.stdout
    assert "[never]" in inside and ":cpuset:/dispatchlab\n" in inside and "00040000" in inside
    assert f"{{{max(os.sched_getaffinity(0))}}}" in inside
    assert machine() == before


@pytest.mark.usefixtures("whole_machine")
@pytest.mark.skipif(bool(_reason()), reason=_reason() or "runs")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_on_this_machine_a_signal_ends_the_command_and_puts_everything_back(number: signal.Signals) -> None:
    before = machine()
    code = f"{SHOW}; print('ready', flush=True); import time; time.sleep(60)"
    argv = [sys.executable, "-m", "dispatchlab", "tune", *REAL, "--", sys.executable, "-c", code]
    tuner = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, start_new_session=True)
    assert tuner.stdout is not None
    try:
        while "ready" not in (line := tuner.stdout.readline()):
            assert line
        assert machine() != before
        os.killpg(tuner.pid, number)  # as a terminal does
        assert tuner.wait(20) == (-number if number == signal.SIGKILL else 128 + number)
    finally:
        tuner.stdout.close()
        if number == signal.SIGKILL:
            assert main(["tune", "--restore"]) == 0
    assert machine() == before


@pytest.mark.usefixtures("whole_machine")
@pytest.mark.skipif(bool(_reason()), reason=_reason() or "runs")
def test_tuned_is_undone_when_its_body_fails() -> None:
    import dispatchlab as dl

    before = machine()
    with pytest.raises(ZeroDivisionError), dl.tuned(only=("thp", "pin", "aslr")) as outcomes:
        assert {o.knob for o in outcomes if o.done} == {"thp", "pin", "aslr"}
        assert "[never]" in THP.read_text()
        raise ZeroDivisionError
    assert machine() == before
    assert not int(Path("/proc/self/personality").read_text(), 16) & 0x40000


def test_the_lock_is_the_kernels_so_that_a_dead_tuner_holds_nothing(tree: Path) -> None:
    fd = os.open(place(tree), os.O_RDWR | os.O_CREAT)
    fcntl.flock(fd, fcntl.LOCK_EX)
    os.close(fd)
    assert main(["tune", "--root", str(tree), "--", "true"]) == 0
