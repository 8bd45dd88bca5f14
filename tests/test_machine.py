"""The machine report promises the same facts on every kind of machine, a choice inside the allowed set, and never a traceback."""

import errno
import getpass
import json
import os
import re
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from itertools import cycle
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st
from trees import CPU, MACHINES, RAPL, Files, built, plant, pstate, running, with_masks, x86

from dispatchlab import _engine, strictjson
from dispatchlab.cli import main
from dispatchlab.errors import UsageError
from dispatchlab.figures.style import style
from dispatchlab.machine import examine
from dispatchlab.machine.boxes import DETAILED, Box, Placed, arrange, boxes, place
from dispatchlab.machine.cpulist import MOST, cpus_of, cpus_of_mask, list_of
from dispatchlab.machine.document import document
from dispatchlab.machine.draw import ROOM, draw, rendered
from dispatchlab.machine.recommend import best_of, recommend
from dispatchlab.machine.record import recorded
from dispatchlab.machine.report import Machine, machine
from dispatchlab.machine.topology import online
from dispatchlab.machine.tree import Tree
from dispatchlab.measure import choose_cpu

FREQUENCY = "governor, frequency driver, frequency limits, turbo"
HOT = "governor, frequency limits, turbo"
EVENTS = "event counters, energy counters"


@dataclass(frozen=True)
class Answer:
    """packages, nodes, cores, threads: counts, None where unknown; bad, unknown: settings beside those of nearly every machine."""

    counts: tuple[int | None, ...]
    cpu: int
    bad: str = ""
    unknown: str = ""
    allowed: str = ""
    kinds: str = ""
    usual: str = "aslr, nmi watchdog, isolated"
    untold: str = "msr, nohz_full"


SERVER = Answer((1, 1, 16, 32), 13, "smt", f"{FREQUENCY}, energy counters")
ANSWERS = {
    "alder-lake": Answer((1, 1, 12, 16), 4, f"{HOT}, smt", kinds="performance 0-7; efficiency 8-15"),
    "meteor-lake": Answer(
        (1, 1, 12, 14), 2, f"{HOT}, smt", kinds="performance 0-3; efficiency 4-11; efficiency, outside the L3 12-13"
    ),
    "smt-server": SERVER,
    "two-sockets": Answer((2, 2, 16, 32), 15, SERVER.bad, SERVER.unknown),
    "four-nodes-a-socket": Answer((2, 8, 32, 64), 31, SERVER.bad, SERVER.unknown),
    "1280-cpus": Answer((8, 8, 640, 1280), 639, "smt, nohz_full", SERVER.unknown, untold="msr"),
    "phone-three-kinds": Answer(
        (1, None, 8, 8), 7, HOT, "hypervisor, energy counters", kinds="performance 7; middle 4-6; efficiency 0-3"
    ),
    "graviton": Answer((1, 1, 16, 16), 14, "hypervisor", f"{FREQUENCY}, energy counters"),
    "raspberry-pi": Answer((1, None, 4, 4), 3, "governor, frequency limits", "turbo, hypervisor, energy counters"),
    "apple-m1": Answer(
        (1, None, 8, 8), 6, "governor, frequency limits", "turbo, hypervisor, energy counters",
        kinds="performance 4-7; efficiency 0-3",
    ),
    "wsl2": Answer((1, 1, 4, 8), 6, "smt, hypervisor", f"{FREQUENCY}, {EVENTS}, nmi watchdog", usual="aslr, isolated"),
    "docker-v2": Answer((1, 1, 16, 32), 7, SERVER.bad, SERVER.unknown, allowed="4-7"),
    "lxc-v1": Answer((1, 1, 16, 32), 7, SERVER.bad, SERVER.unknown, allowed="2-3,6-7"),
    "lxcfs": Answer((1, 1, 4, 4), 7, SERVER.bad, SERVER.unknown, allowed="4-7"),
    "gvisor": Answer(
        (None, None, None, 2), 1, "", f"{FREQUENCY}, {EVENTS}, smt, aslr, thp, nmi watchdog, perf_event_paranoid, clock source, "
        "steal, allowed, isolated, offline, interrupts", usual="",
    ),
    "kvm": Answer((1, 1, 4, 4), 3, "hypervisor, steal", f"{FREQUENCY}, {EVENTS}"),
    "xen": Answer((1, 1, 4, 4), 3, "hypervisor", f"{FREQUENCY}, {EVENTS}, clock source"),
    "hyper-v": Answer((1, 1, 4, 4), 3, "hypervisor", f"{FREQUENCY}, {EVENTS}"),
    "offline": Answer((1, 1, 6, 6), 2, HOT, allowed="0,2,4-7"),
    "isolated-server": Answer((1, 1, 16, 16), 6, usual="", untold=""),
    "isolated-outside": Answer((1, 1, 16, 16), 15, "nohz_full", allowed="0-1,8-15", untold=""),
    "smt-off": Answer((1, 1, 16, 16), 13, "", SERVER.unknown),
    "amd-pstate": Answer((1, 1, 16, 32), 13, f"{HOT}, smt", "energy counters"),
    "turbo-off": Answer((1, 1, 16, 32), 13, "frequency limits, smt", "energy counters"),
    "governor-empty": Answer((1, 1, 16, 32), 13, "frequency limits, turbo, smt", "governor, energy counters"),
    "step-isolated": Answer((1, 1, 16, 32), 6, "smt, nohz_full", SERVER.unknown, usual="aslr, nmi watchdog", untold="msr"),
    "risc-v": Answer((1, None, 4, 4), 3, "frequency limits, turbo", f"hypervisor, {EVENTS}"),
    "s390x": Answer((1, 1, 4, 8), 6, "smt, hypervisor, steal", f"{FREQUENCY}, energy counters"),
    "power9": Answer((2, 2, 8, 32), 28, "frequency limits, turbo, smt", "energy counters"),
    "single-cpu": Answer((1, 1, 1, 1), 0, "allowed", f"{FREQUENCY}, energy counters", allowed="0"),
    "memory-node": Answer((1, 2, 16, 32), 13, SERVER.bad, SERVER.unknown),
    "kvm-guest-recorded": Answer(
        (1, 1, 2, 2), 1, "hypervisor, steal, interrupts", f"{FREQUENCY}, {EVENTS}", usual="aslr, isolated"
    ),
}  # fmt: skip
FOUR: Files = {
    **built("0-3", "0-1 2-3", "0-3", "0-3", ["L1d 48K core", "L1i 32K core", "L2 2M core", "L3 12M 0-3"]),
    **running("0-3", "1-3", group="4:cpuset:/a\n0::/a"), **x86("Some CPU", "0-3"), **pstate("0-3"), **RAPL,
    "sys/fs/cgroup/cpuset/a/cpuset.cpus": "1-3", f"{CPU}/nohz_full": "3", "sys/class/msr/msr0/dev": "202:0",
    "sys/devices/cpu_core/cpus": "0-1", "sys/devices/cpu_atom/cpus": "2-3", f"{CPU}/cpu0/cpu_capacity": "1024",
}  # fmt: skip
"""A machine with nearly every file there is, and few CPUs."""
ERRORS = (errno.EIO, errno.EPERM, errno.ENODEV, errno.EACCES)


MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
"""Trees are thousands of small files; where there is a folder in memory they are written there."""


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    with TemporaryDirectory(dir=MEMORY) as folder:
        yield Path(folder)


@pytest.fixture(scope="session")
def planted() -> Iterator[Callable[[str], Path]]:
    """planted(name): the root of a machine, to look at and not to change."""
    with TemporaryDirectory(dir=MEMORY) as folder:
        yield cache(lambda name: plant(Path(folder) / name, MACHINES[name]))


@pytest.fixture(scope="session")
def seen(planted: Callable[[str], Path]) -> Callable[[str], Machine]:
    """seen(name): a machine, examined once."""
    return cache(lambda name: examine(planted(name)))


Planted = Callable[[str], Path]
Seen = Callable[[str], Machine]


def words(text: str) -> set[str]:
    return {word for word in text.split(", ") if word}


def tree_of(files: Files, folder: Path, load: object = Path.read_bytes) -> Tree:
    return Tree(plant(folder / "tree", files), load)  # type: ignore[arg-type]


def told(m: Machine) -> str:
    """The document, as strict JSON."""
    return strictjson.dumps(strictjson.plain(document(m)))


def test_every_machine_has_an_answer() -> None:
    assert set(ANSWERS) == set(MACHINES) and len(MACHINES) >= 25


@pytest.mark.parametrize("name", ANSWERS)
def test_a_machine_is_told_as_it_is(name: str, seen: Seen) -> None:
    wanted, m = ANSWERS[name], seen(name)
    sets = (m.packages, m.nodes, m.cores, m.online)
    assert tuple(None if found is None else len(found) for found in sets) == wanted.counts
    kinds = "; ".join(f"{k.name} {list_of(k.cpus)}" for k in m.kinds or ())
    assert kinds == (wanted.kinds or f"all alike {list_of(m.online or ())}")
    assert list_of(m.allowed.cpus) == (wanted.allowed or f"0-{wanted.counts[3] - 1}")
    assert m.online and m.choice.cpu == wanted.cpu in m.allowed.cpus <= m.online and m.choice.why
    assert not (m.offline or frozenset()) & m.online
    states = {state: {n for n, s in m.settings.items() if s.state == state} for state in ("ok", "bad", "unknown")}
    assert states["bad"] == words(wanted.bad) | words(wanted.usual)
    assert states["unknown"] == words(wanted.unknown) | words(wanted.untold)
    assert all(s.why and (s.value or s.state == "unknown") for s in m.settings.values())
    for field, told_as in (("packages", "packages"), ("nodes", "nodes"), ("cores", "cores"), ("caches", "caches")):
        assert getattr(m, field) or m.unread[told_as]


def test_what_does_not_run_is_told(seen: Seen) -> None:
    assert seen("offline").offline == {1, 3} and seen("offline").settings["offline"].value == "1,3"
    assert seen("smt-off").offline == set(range(16, 32)) and seen("smt-server").offline == set()


def test_isolated_cpus_outside_of_the_mask_come_with_the_way_to_get_one(seen: Seen) -> None:
    assert "taskset -c 2" in seen("isolated-outside").settings["isolated"].why
    assert "taskset" not in seen("isolated-server").settings["isolated"].why


def test_caches_are_told_with_size_and_who_shares_them(tmp_path: Path) -> None:
    found = document(examine(plant(tmp_path, MACHINES["meteor-lake"])))["caches"]
    rows = {(c["level"], c["type"]): c for c in found}
    assert rows[1, "instruction"] == {
        "level": 1, "type": "instruction", "bytes": 65536, "count": 12,
        "shared_by": ["0-1", "2-3", *map(str, range(4, 14))],
    }  # fmt: skip
    assert rows[2, "unified"]["shared_by"] == ["0-1", "2-3", "4-7", "8-11", "12-13"]
    assert rows[3, "unified"]["shared_by"] == ["0-11"] and rows[3, "unified"]["bytes"] == 12 << 20


@pytest.mark.parametrize("name", ["four-nodes-a-socket", "offline", "docker-v2", "memory-node"])
def test_masks_of_any_length_tell_what_lists_tell(name: str, tmp_path: Path) -> None:
    files = MACHINES[name]
    lists = examine(plant(tmp_path / "lists", files))
    masks = examine(plant(tmp_path / "masks", with_masks(files, 40)))
    assert told(lists) == told(masks)


@pytest.mark.parametrize(
    ("name", "version", "cpus"),
    [
        ("docker-v2", "cgroup v2", "4-7"),
        ("lxc-v1", "cgroup v1", "2-3,6-7"),
        ("kvm-guest-recorded", "cgroup v1", "0-1"),
        ("kvm", None, ""),
    ],
)
def test_the_cpuset_is_told_and_holds_where_the_mask_is_not_told(
    name: str, version: str | None, cpus: str, planted: Planted, tmp_path: Path
) -> None:
    found = examine(planted(name)).allowed
    assert found.version == version and list_of(found.group or ()) == cpus
    bare = examine(plant(tmp_path, {**MACHINES[name], "proc/self/status": "Name:\tpython\n"}))
    assert list_of(bare.allowed.cpus) == (cpus or list_of(bare.online or ()))
    assert bare.allowed.affinity is None and "Cpus_allowed_list" in bare.unread["affinity"]


def test_a_kernel_that_numbers_no_package_is_not_taken_for_one_package(tmp_path: Path) -> None:
    m = examine(plant(tmp_path, {**FOUR, f"{CPU}/cpu2/topology/physical_package_id": "-1"}))
    assert m.packages is None and "no package of CPU 2" in m.unread["packages"]


@pytest.mark.parametrize("spoiled", ["folder", "mad", "empty", "refused"])
def test_any_one_file_that_cannot_be_read_leaves_the_rest_and_a_choice(spoiled: str, tmp_path: Path) -> None:
    root = plant(tmp_path, FOUR)
    whole = examine(root)
    reached = 0
    for name, code in zip(sorted(FOUR), cycle(ERRORS)):
        file = root / name
        if spoiled == "refused":
            m = machine(Tree(root, partial(failing, file, code)))
        else:
            text = file.read_bytes()
            file.unlink()
            if spoiled == "folder":
                file.mkdir()
            else:
                file.write_bytes(b"\xff\0?-1" if spoiled == "mad" else b"")
            m = examine(root)
            file.rmdir() if spoiled == "folder" else file.unlink()
            file.write_bytes(text)
        answer = told(m)
        reached += answer != told(whole)
        assert str(tmp_path) not in answer
        assert m.choice.cpu in (m.allowed.cpus or {0})
        assert m.allowed.cpus <= {0, 1, 2, 3}
        for field in ("packages", "nodes", "cores", "caches", "isolated", "nohz_full", "interrupts", "online"):
            assert getattr(m, field) is not None or m.unread[field]
    assert reached > 20  # the files do decide
    assert told(examine(root)) == told(whole)


def failing(bad: Path, code: int, path: Path) -> bytes:
    """What reads files, where one refuses with a real error."""
    if path == bad:
        raise OSError(code, os.strerror(code))
    return path.read_bytes()


def test_nothing_readable_falls_back_to_the_last_allowed_cpu(tmp_path: Path) -> None:
    def nothing(path: Path) -> bytes:
        raise OSError(errno.EIO, os.strerror(errno.EIO), str(path))

    assert recommend(Tree(tmp_path, nothing), frozenset({0, 3, 5})).cpu == 5
    assert recommend(Tree(tmp_path, nothing), frozenset({0})).cpu == 0
    assert machine(Tree(tmp_path)).choice.cpu is None


CHOICES = {
    "isolated_before_fast": ({f"{CPU}/isolated": "9"}, 9, "isolated: 9"),
    "tickless_of_the_isolated": ({f"{CPU}/isolated": "2-7", f"{CPU}/nohz_full": "6"}, 6, "without a timer tick"),
    "alone_on_its_core": ({f"{CPU}/cpu{n}/topology/thread_siblings_list": str(n) for n in (6, 7)}, 7, "no other"),
    "beside_an_isolated_sibling": ({f"{CPU}/isolated": "2-4"}, 2, "isolated too"),
    "beside_an_idle_sibling": (
        {"proc/stat": "".join(f"cpu{n} {500 * (n != 3)} 0 0 500 0 0 0 0 0 0\n" for n in range(16))}, 2, "about 0 %",
    ),
    "another_than_cpu_0": ({"proc/self/status": "Cpus_allowed_list:\t0,9\n"}, 9, "not CPU 0"),
    "not_beside_another_group": ({"proc/self/status": "Cpus_allowed_list:\t2,4-5\n"}, 4, "in the allowed set"),
}  # fmt: skip


@pytest.mark.parametrize("name", CHOICES)
def test_the_choice_follows_what_disturbs_least_and_says_so(name: str, tmp_path: Path) -> None:
    changes, cpu, why = CHOICES[name]
    m = examine(plant(tmp_path, MACHINES["alder-lake"] | changes))
    assert m.choice.cpu == cpu
    assert why in "; ".join(m.choice.why)


def test_the_choice_reads_little_even_of_1280_cpus(planted: Planted) -> None:
    reads: list[Path] = []

    def counted(path: Path) -> bytes:
        reads.append(path)
        return path.read_bytes()

    tree = Tree(planted("1280-cpus"), counted)
    assert recommend(tree, frozenset(range(1280))).cpu == 639
    assert len(reads) < 2 * 1280 and len(reads) == len(set(reads))


def test_the_engine_is_pinned_where_the_report_recommends() -> None:
    before = os.sched_getaffinity(0)
    assert choose_cpu(None) in _engine.allowed_cpus()
    assert choose_cpu(None) == examine().choice.cpu == best_of(tuple(sorted(before)))
    last = max(before)
    try:
        os.sched_setaffinity(0, {last})
        assert choose_cpu(None) == last
        with pytest.raises(UsageError, match=f"one of the allowed CPUs {last};") as caught:
            choose_cpu(last + 1)
        assert "\n" not in str(caught.value)
    finally:
        os.sched_setaffinity(0, before)


@pytest.mark.parametrize("name", sorted(set(MACHINES) - {"1280-cpus"}))  # which is two-sockets, larger
def test_a_record_gives_the_same_answer_and_is_the_same_when_recorded_again(name: str, tmp_path: Path) -> None:
    tree = tree_of(MACHINES[name], tmp_path)
    answer = told(machine(tree))
    kept = recorded(tree)
    again = Tree(plant(tmp_path / "again", {n: t + "\n" for n, t in kept.items()}))
    assert told(machine(again)) == answer
    assert recorded(again) == kept
    secrets = "beef|alices|ABCDE|8561|uuid|serial|m7g|nvme|Local timer|generic|python"
    assert not re.search(secrets if name != "graviton" else secrets.replace("m7g|", ""), json.dumps(kept))


def test_a_record_remembers_what_refused_to_be_read(tmp_path: Path) -> None:
    root = plant(tmp_path / "tree", FOUR)
    for name, code in zip(sorted(FOUR)[::3], cycle(ERRORS)):  # a third of them: each is written anew
        tree = Tree(root, partial(failing, root / name, code))
        answer = told(machine(tree))
        again = tmp_path / f"again {name.replace('/', ' ')}"
        assert told(machine(Tree(plant(again, recorded(tree))))) == answer, name


def test_a_file_that_may_not_be_recorded_is_not(tmp_path: Path) -> None:
    tree = tree_of({**FOUR, "proc/cmdline": "root=UUID=1234"}, tmp_path)
    tree.read("proc/cmdline")
    with pytest.raises(LookupError, match="proc/cmdline is read"):
        recorded(tree)


def test_the_record_of_this_machine_names_neither_it_nor_anybody(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "record"
    assert main(["machine", "--json", "--record", str(out)]) == 0
    answer = capsys.readouterr().out
    assert main(["machine", "--json", "--root", str(out)]) == 0
    assert capsys.readouterr().out == answer
    text = "\n".join(str(p.relative_to(out)) + "\n" + p.read_text() for p in out.rglob("*") if p.is_file())
    found = set(re.split(r"[^\w.-]+", text))
    assert not found & {socket.gethostname(), getpass.getuser(), str(Path.home())} - {"root", ""}
    assert not re.search(r"([0-9a-f]{2}:){5}[0-9a-f]{2}|\b\d+\.\d+\.\d+\.\d+\b|[0-9a-f]{32}", text)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["record"]


def test_looking_changes_nothing(tmp_path: Path) -> None:
    root = plant(tmp_path, FOUR)
    before = {str(p): (p.stat().st_mtime_ns, p.is_file() and p.read_bytes()) for p in root.rglob("*")}
    examine(root)
    assert {str(p): (p.stat().st_mtime_ns, p.is_file() and p.read_bytes()) for p in root.rglob("*")} == before


@pytest.mark.parametrize(
    ("argv", "names"),
    [
        (["--root", "{}/none"], "none: is not a folder"),
        (["--root", "{}/file"], "file: is not a folder"),
        (["--root", "a\0b"], "is not a folder"),
        (["--root", "{}", "--draw", "{}/x.pdf"], ".svg or .png"),
        (["--root", "{}", "--draw", "{}/no/x.svg"], "cannot be written"),
        (["--root", "{}", "--record", "{}"], "holds files already"),
        (["--root", "{}", "--record", "{}/file/x"], "cannot write there"),
    ],
)
def test_what_cannot_be_done_is_one_line(argv: list[str], names: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    assert main(["machine", *(word.format(tmp_path) for word in argv)]) == 2
    told_as = capsys.readouterr()
    assert names in told_as.err and told_as.err.count("\n") == 1 and not told_as.out


@pytest.mark.parametrize("name", ["meteor-lake", "gvisor", "four-nodes-a-socket", "memory-node"])
def test_the_tables_say_every_setting_and_the_choice(name: str, planted: Planted, capsys: pytest.CaptureFixture[str]) -> None:
    root = planted(name)
    assert main(["machine", "--root", str(root)]) == 0
    out = capsys.readouterr().out
    m = examine(root)
    assert all(re.search(rf"^{setting} +{s.state}", out, re.MULTILINE) for setting, s in m.settings.items())
    assert f"Pin to CPU {m.choice.cpu}: " in out and str(root) not in out
    assert ("unknown: " in out) == bool({"packages", "nodes", "cores", "caches", "affinity", "cpuset"} & set(m.unread))


def test_an_empty_root_is_unknown_throughout(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["machine", "--root", str(tmp_path), "--json"]) == 0
    found = strictjson.parse(capsys.readouterr().out)
    assert isinstance(found, dict) and {s["state"] for s in found["settings"].values()} == {"unknown"}
    assert found["recommended"]["cpu"] is found["packages"] is found["cores"] is found["online"] is None
    assert main(["machine", "--root", str(tmp_path), "--draw", str(tmp_path / "x.svg")]) == 0
    assert "No CPU to recommend" in capsys.readouterr().out


# CPU lists


@pytest.mark.parametrize(
    ("text", "cpus"),
    [
        ("0-31:1/2", set(range(0, 32, 2))), ("0-7:2/4", {0, 1, 4, 5}), ("managed_irq,domain,2-7", set(range(2, 8))),
        (" (null)\n", set()),
        ("", set()), ("\n", set()), ("0,2,4-7", {0, 2, 4, 5, 6, 7}), ("0-1279", set(range(1280))), ("5", {5}),
    ],
)  # fmt: skip
def test_a_list_is_read_as_the_kernel_writes_it(text: str, cpus: set[int]) -> None:
    assert cpus_of(text) == cpus


NO_LISTS = ["x", "1-", "-1", "3-1", "1,,2", "0-3:0/2", "0-3:3/2", f"0-{MOST}", "0-99999999999999", "1 2", "0x1", "²"]


@pytest.mark.parametrize("text", NO_LISTS)
def test_what_is_no_list_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is no"):
        cpus_of(text)


@pytest.mark.parametrize("text", ["g", "1,g", "123456789,1", "1,,1", "-1", "0x1", "1,2 3"])
def test_what_is_no_mask_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is no mask"):
        cpus_of_mask(text)


@given(st.frozensets(st.integers(0, 2000)))
def test_a_set_written_is_the_set_read(cpus: frozenset[int]) -> None:
    assert cpus_of(list_of(cpus)) == cpus
    bits = sum(1 << cpu for cpu in cpus)
    assert cpus_of_mask(",".join(f"{bits >> 32 * word & 0xFFFFFFFF:x}" for word in reversed(range(63)))) == cpus


# The drawing


def placed(m: Machine) -> list[Placed]:
    return list(place(arrange(boxes(m), ROOM)))


def leaves(box: Box) -> list[Box]:
    return [box] if not box.children else [leaf for child in box.children for leaf in leaves(child)]


@pytest.mark.parametrize("name", MACHINES)
def test_every_cpu_is_in_one_box_and_no_box_crosses_another(name: str, seen: Seen) -> None:
    m = seen(name)
    cpus = sorted(cpu for leaf in leaves(boxes(m)) for cpu in leaf.cpus)
    assert cpus == sorted((m.online or frozenset()) | (m.offline or frozenset()))
    assert [p.box.label for p in placed(m) if p.box.mark == "chosen"] == [f"CPU {m.choice.cpu}"]
    found = placed(m)
    assert len(found) < 400 and any("more alike" in p.box.label for p in found) == (len(m.online or ()) > DETAILED)
    assert all(p.x >= -SLACK and p.x + p.width <= ROOM + SLACK for p in found)
    for i, outer in enumerate(found):
        for inner in found[i + 1 :]:
            assert apart(outer, inner) or within(outer, inner), (outer.box.label, inner.box.label)


SLACK = 1e-9  # inches


def apart(a: Placed, b: Placed) -> bool:
    beside = a.x + a.width <= b.x + SLACK or b.x + b.width <= a.x + SLACK
    return beside or a.y + a.height <= b.y + SLACK or b.y + b.height <= a.y + SLACK


def within(a: Placed, b: Placed) -> bool:
    """b in a and below its label."""
    across = a.x <= b.x + SLACK and b.x + b.width <= a.x + a.width + SLACK
    return across and a.y + a.head <= b.y + SLACK and b.y + b.height <= a.y + a.height + SLACK


@pytest.mark.parametrize("name", ["meteor-lake", "1280-cpus", "offline"])
def test_every_label_fits_its_box_and_the_title_names_the_choice(name: str, seen: Seen) -> None:
    m = seen(name)
    figure = draw(m)
    with style():
        figure.draw_without_rendering()
    axes = figure.axes[0]
    scale = axes.bbox.width / (axes.get_xlim()[1] - axes.get_xlim()[0])
    labels = {t.get_text(): t.get_window_extent() for t in axes.texts}
    for p in placed(m):
        assert not p.box.label or labels[p.box.label].width <= p.width * scale, p.box.label
    assert f"measure on CPU {m.choice.cpu}" in figure.texts[0].get_text()


@pytest.mark.parametrize("kind", ["svg", "png"])
def test_the_same_machine_is_drawn_in_the_same_bytes(kind: str, planted: Planted, seen: Seen, tmp_path: Path) -> None:
    file = tmp_path / f"drawn.{kind}"
    assert main(["machine", "--root", str(planted("offline")), "--draw", str(file)]) == 0
    assert file.read_bytes() == rendered(draw(seen("offline")), kind)


def test_a_cpu_that_no_file_lists_is_found_by_its_folder(tmp_path: Path) -> None:
    files = {name: text for name, text in FOUR.items() if name not in (f"{CPU}/online", f"{CPU}/present")}
    assert online(Tree(plant(tmp_path, files))) == {0, 1, 2, 3}
