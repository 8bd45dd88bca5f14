"""The validator finds what is wrong with a plugin and nothing that is not; the author's page does what it says."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import dispatchlab as dl
from dispatchlab.errors import ToolError, UsageError
from dispatchlab.plugins import load
from dispatchlab.plugins.building import build, template
from dispatchlab.plugins.validation import validate

SOURCES = Path(__file__).parent / "plugins"
GOOD = {"level 1": ("good.c", "-DLEVEL=1"), "batch": ("good.c", ""), "residual": ("good.c", "-DRESIDUAL=1"), "C++": ("good.cpp", "")}

FAULTS = {
    "counts its calls": ("IN_PROCESS", "*result+=calls", "process-deterministic"),
    "depends on what came before": ("IN_PROCESS", "static uint32_t last; *result^=last; last=h", "process-order"),
    "answers by instance": ("IN_PROCESS", "*result^=(uint32_t)((uintptr_t)instance>>4)", "process-instances"),
    "writes beside the result": ("IN_PROCESS", "result[1]=0", "process-canaries"),
    "writes before the result": ("IN_PROCESS", "result[-1]=0", "process-canaries"),
    "reads beyond the packet": ("IN_PROCESS", "*result+=0*BYTES[packet->size]", "process-no-overread"),
    "reads before the packet": ("IN_PROCESS", "*result+=0*BYTES[-1]", "process-no-underread"),
    "uses its neighbours": ("IN_PROCESS", "*result+=packet->bytes?packet->bytes[packet->size]:0", "process-neighbours"),
    "dereferences an empty packet": ("IN_PROCESS", "*result+=0*BYTES[0]", "process-empty"),
    "writes to the packet": ("IN_PROCESS", "if(packet->size)((volatile uint8_t*)BYTES)[0]^=0", "process-read-only"),
    "writes to the view": ("IN_PROCESS", "((dispatchlab_view*)packet)->flow=9", "process-canaries"),
    "keeps the packet": ("IN_PROCESS", "if(kept)*result+=0*kept[0]; kept=BYTES", "process-retention"),
    "keeps the view": (
        "IN_PROCESS", "static volatile const dispatchlab_view*old;if(old)*result+=0*old->flow;old=packet", "process-retention",
    ),
    "keeps the result": ("IN_PROCESS", "static volatile uint32_t*old;if(old)*result+=0**old;old=result", "process-retention"),
    "keeps what it matched": (
        "IN_MATCHES", "static volatile const uint8_t*old;int was=old?*old:0;(void)was;old=BYTES", "matches-retention",
    ),
    "keeps the batch": (
        "IN_BATCH", "static volatile const dispatchlab_batch*old;if(old)*result+=0*old->count;old=batch", "batch-retention",
    ),
    "sets the rounding mode when loaded": ("IN_CONSTRUCTOR", "fesetround(FE_UPWARD)", "no-rounding"),
    "sets a signal handler when loaded": ("IN_CONSTRUCTOR", "signal(SIGUSR2,on_signal)", "no-signals"),
    "sets the locale when loaded": ("IN_CONSTRUCTOR", 'setlocale(LC_ALL,"C.UTF-8")', "no-locale"),
    "starts a thread when loaded": ("IN_CONSTRUCTOR", "pthread_create(&thread,0,sleeper,0)", "no-threads"),
    "prints when loaded": ("IN_CONSTRUCTOR", 'puts("here");fflush(stdout)', "silent"),
    "does not write the result": ("IN_PROCESS", "if(packet->bytes&&packet->bytes[0]<128)return 0", None),
    "writes the result and fails": ("IN_PROCESS", "if(h%2)return -1", "process-leaves"),
    "returns another status": ("IN_PROCESS", "if(h%7==0)return 2", "process-status"),
    "depends on the address": ("IN_PROCESS", "*result+=(uint32_t)((uintptr_t)packet->bytes&7)", "process-unaligned"),
    "crashes on long packets": ("IN_PROCESS", "if(packet->size>100)abort()", "process-long"),
    "exits on other keys": ("IN_PROCESS", "if(packet->key<61000)exit(1)", "process-other-key"),
    "loops on some packets": ("IN_PROCESS", "if(packet->size==9000)for(;;)pause()", "process-long"),
    "leaks instances": ("IN_DESTROY", "own=1", "create-no-leak"),
    "does not write *instance": ("IN_CREATE", "*instance=(void*)0xA5A5A5A5A5A5A5A5;own=1", "create-slot"),
    "writes beside *instance": ("IN_CREATE", "instance[1]=0", "create-slot"),
    "frees twice": ("IN_DESTROY", "free(instance)", "create"),
    "writes keys beyond its room": ("IN_KEYS", "if(keys)keys[capacity]=0", "keys-within-room"),
    "leaks in claimed_keys": ("IN_KEYS", "void*volatile p=malloc(256);if(p)memset(p,1,256)", "keys-no-leak"),
    "counts instances among its keys": ("IN_KEYS", "if(keys&&calls>40)keys[0]=1", None),
    "starts a thread": ("IN_CREATE", "pthread_create(&thread,0,sleeper,0)", "no-threads"),
    "sets a signal handler": ("IN_CREATE", "signal(SIGUSR2,on_signal)", "no-signals"),
    "blocks a signal": ("IN_PROCESS", "sigset_t s;sigemptyset(&s);sigaddset(&s,SIGTERM);sigprocmask(SIG_BLOCK,&s,0)", "no-signals"),
    "starts a timer": ("IN_CREATE", "struct itimerval t={{100,0},{100,0}};setitimer(ITIMER_REAL,&t,0)", "no-timers"),
    "sets the locale": ("IN_CREATE", 'setlocale(LC_ALL,"C.UTF-8")', "no-locale"),
    "sets the rounding mode": ("IN_PROCESS", "fesetround(FE_UPWARD)", "no-rounding"),
    "changes the folder": ("IN_CREATE", 'if(chdir("/"))abort()', "no-process-state"),
    "changes the umask": ("IN_CREATE", "extern unsigned umask(unsigned);umask(0)", "no-process-state"),
    "leaves files open": ("IN_CREATE", 'open("/dev/null",O_RDONLY);open("/dev/zero",O_RDONLY)', "no-files"),
    "prints": ("IN_PROCESS", 'puts("packet");fflush(stdout)', "silent"),
    "forks": ("IN_CREATE", "if(fork()==0)_exit(0)", "no-children"),
    "loops at exit": ("IN_CREATE", "atexit(at_exit_loops)", "ends"),
    "matches by the second byte": ("IN_MATCHES", "return packet->size>1&&packet->bytes[1]>9", "matches-first-byte"),
    "matches by history": ("IN_MATCHES", "if(calls>50)return 1", "matches-history"),
    "matches with another status": ("IN_MATCHES", "return packet->size?packet->bytes[0]%3:0", "matches-status"),
    "matches what no mask describes": ("IN_MATCHES", "return packet->size&&packet->bytes[0]>100", "matches-mask"),
    "matches an empty packet by its bytes": ("IN_MATCHES", "if(BYTES[0]==1)return 0", "matches-empty"),
    "answers otherwise in a batch": ("IN_BATCH", "*result+=i>3", "batch-equals-single"),
    "ignores the results' stride": ("IN_BATCH", "batch->results[i]=*result", "batch-result-stride"),
    "ignores the views' stride": ("IN_BATCH", "process(instance,&batch->views[i],result)", "batch-view-stride"),
    "writes beyond the batch": ("IN_BATCH", "batch->results[batch->count]=1", "batch-equals-single"),
    "cannot do an empty batch": ("IN_DESTROY", "", None),
}
PLANTED = {name: fault for name, fault in FAULTS.items() if fault[2] is not None}


def compiled(folder: Path, name: str, source: str, flags: str) -> Path:
    out = folder / (re.sub(r"[^a-z0-9]+", "-", name.lower()) + ".so")
    compiler = ["c++", "-std=c++17"] if source.endswith(".cpp") else ["cc", "-std=gnu11"]
    command = [*compiler, "-O1", "-shared", "-fPIC", "-fvisibility=hidden", "-w", f"-I{dl.get_include()}", str(SOURCES / source)]
    done = subprocess.run([*command, "-o", str(out), *shlex.split(flags)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return out


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Every plugin of these tests, by name."""
    folder = tmp_path_factory.mktemp("validator")
    jobs = [(name, source, flags) for name, (source, flags) in GOOD.items()]
    jobs += [(name, "naughty.c", f"-D{where}={shlex.quote(what)}") for name, (where, what, _) in PLANTED.items()]
    jobs += [("visible", "naughty.c", "-fvisibility=default"), ("throws", "good.cpp", "-DTHROWS")]
    jobs += [("never loaded", "naughty.c", "-DIN_CONSTRUCTOR='for(;;)pause()'")]
    with ThreadPoolExecutor(2) as pool:
        return dict(zip([j[0] for j in jobs], pool.map(lambda j: compiled(folder, *j), jobs), strict=True))


@pytest.mark.parametrize("name", GOOD)
def test_a_good_plugin_breaks_no_rule(lab: dict[str, Path], name: str) -> None:
    begin = time.monotonic()
    cases = validate(lab[name])
    assert len(cases) >= 44
    assert [c for c in cases if c.outcome == "broken"] == []
    assert sum(c.outcome == "holds" for c in cases) >= 44
    assert time.monotonic() - begin < 60


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_fault_is_found_by_its_rule(lab: dict[str, Path], name: str) -> None:
    broken = {c.case: c.detail for c in validate(lab[name], seconds=1.0, only=[PLANTED[name][2]]) if c.outcome == "broken"}
    assert PLANTED[name][2] in broken, broken
    assert all(broken.values()), "each says what was seen"


def test_nothing_that_a_plugin_starts_outlives_its_case(lab: dict[str, Path]) -> None:
    validate(lab["loops at exit"], seconds=0.3)
    mine = [p for p in Path("/proc").glob("[0-9]*/cmdline") if str(lab["loops at exit"]).encode() in read(p)]
    assert mine == []


def read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:  # it has ended meanwhile
        return b""


def test_enough_faults_are_planted() -> None:
    assert len(PLANTED) >= 20 and len({f[2] for f in PLANTED.values()}) >= 20


def test_more_than_one_visible_symbol_is_a_fault(lab: dict[str, Path]) -> None:
    broken = {c.case: c.detail for c in validate(lab["visible"]) if c.outcome == "broken"}
    assert set(broken) == {"one-symbol"} and "-fvisibility=hidden" in broken["one-symbol"]


def test_an_exception_through_the_boundary_is_found(lab: dict[str, Path]) -> None:
    broken = {c.case: c.detail for c in validate(lab["throws"]) if c.outcome == "broken"}
    assert "SIGABRT" in broken["process-empty"]


def test_a_plugin_that_never_comes_back_does_not_hold_the_validator(lab: dict[str, Path]) -> None:
    """Each case may take so long, and all of them together so long: what was not asked is told, and is no pass."""
    cases = validate(lab["never loaded"], seconds=0.1, altogether=0.5)
    last, asked = cases[-1], [c for c in cases if "does not come back" in c.detail]
    assert (last.case, last.outcome) == ("all-in-time", "broken") and 1 <= len(asked) < len(cases) - 10
    assert sum(c.detail == "no time is left" for c in cases) == int(last.detail.split()[0])


def test_a_file_that_inspection_refuses_is_judged_by_that_alone(tmp_path: Path) -> None:
    (tmp_path / "text.so").write_text("not a library")
    cases = validate(tmp_path / "text.so")
    assert [(c.case, c.outcome) for c in cases] == [("file", "broken")]


def command(*arguments: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    root = str(Path(dl.__file__).parent.parent)
    env = os.environ | {"PYTHONPATH": root, "PYTHONSAFEPATH": "1"} | environment
    return subprocess.run([sys.executable, "-m", "dispatchlab", *arguments], cwd=cwd, capture_output=True, text=True, env=env)


def test_the_three_lines_of_the_authors_page_do_what_it_says(tmp_path: Path) -> None:
    page = command("plugin", "guide", cwd=tmp_path).stdout
    lines = re.search(r"<!-- command: author -->\n```sh\n(.*?)```", page, re.DOTALL)[1].splitlines()
    assert len(lines) == 3
    assert command("plugin", "template", "mine.c", cwd=tmp_path).returncode == 0
    for line in lines:
        program, *arguments = shlex.split(line)
        assert program == "dispatchlab"
        if "measure" in arguments:
            arguments += ["--budget", "300ms"]
        done = command(*arguments, cwd=tmp_path)
        assert done.returncode == 0, done.stderr + done.stdout
    assert dl.load(tmp_path / "out" / "plugin.json").extra["plugins"][0]["file"] == "mine.so"


def test_validate_says_it_with_its_exit_code_and_as_json(lab: dict[str, Path], tmp_path: Path) -> None:
    good, bad = (command("plugin", "validate", str(lab[n]), "--json", cwd=tmp_path) for n in ("batch", "prints"))
    assert (good.returncode, bad.returncode) == (0, 1)
    assert {c["outcome"] for c in json.loads(bad.stdout)["cases"]} == {"holds", "broken", "not asked"}


def test_what_cannot_be_built_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bad.c").write_text("int f(void) { return }")
    (tmp_path / "open.c").write_text("extern int nowhere(void); int f(void) { return nowhere(); }")
    for path, error, says in [
        ("bad.c", ToolError, "error: expected expression"), ("open.c", ToolError, "nowhere"),
        ("none.c", UsageError, "no such file"), ("bad.txt", UsageError, "cannot be built"),
    ]:  # fmt: skip
        with pytest.raises(error, match=says) as caught:
            build(tmp_path / path)
        assert "\n" not in str(caught.value) and not list(tmp_path.glob("*.so")) and not list(tmp_path.glob(".*.so*"))
    source = tmp_path / "mine.c"
    source.write_text(template("mine"))
    for out, got in [(source, "the source itself"), (tmp_path, "a folder")]:
        with pytest.raises(UsageError, match=f"cannot go there.*{got}"):
            build(source, out)
    assert source.read_text() == template("mine")
    monkeypatch.setenv("CC", "")
    assert build(source).name == "mine.so", "an empty CC names none"
    monkeypatch.setenv("CC", "cc '")
    with pytest.raises(ToolError, match="names no compiler"):
        build(source)
    with pytest.raises(UsageError, match="not a name for a plugin"):
        template('a"b')
    monkeypatch.setenv("CC", "no-such-compiler-here")
    with pytest.raises(ToolError, match=r"no compiler.*set CC"):
        build(tmp_path / "bad.c")
    done = command("plugin", "build", "absent.c", cwd=tmp_path)
    assert done.returncode == 2 and done.stderr.count("\n") == 1


def test_a_source_in_cpp_builds_and_loads(tmp_path: Path) -> None:
    assert load(build(SOURCES / "good.cpp", tmp_path / "cpp.so")).name == "a C++ plugin"
