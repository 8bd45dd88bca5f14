"""A plugin loads, or is refused with one typed line; whatever it does, the interpreter lives."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import dispatchlab as dl
from dispatchlab import _engine, oracle
from dispatchlab.arms import prepare, results
from dispatchlab.errors import PluginError, UsageError
from dispatchlab.plugins import load, load_all, unload
from dispatchlab.traffic.packets import PACKET

SOURCES = Path(__file__).parent / "plugins"


def build(folder: Path, name: str, source: str = "good.c", flags: str = "") -> Path:
    """A shared library in `folder`, compiled against the headers that the package installs."""
    out = folder / f"{name}.so"
    command = ["cc", "-std=c11", "-O1", "-shared", "-fPIC", "-fvisibility=hidden", "-w", f"-I{dl.get_include()}"]
    done = subprocess.run(
        [*command, str(SOURCES / source), "-o", str(out), *shlex.split(flags)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return out


@dataclass(frozen=True)
class Fault:
    """What is wrong, how it is built, the stage that must refuse it, and words of the line."""

    name: str
    flags: str
    stage: str
    says: str


IN_FILE = [
    Fault("no entry point", "-DENTRY=other_entry", "inspect", "entry point is not exported.*other_entry|no such symbol"),
    Fault("entry point renamed by a macro", "-Ddispatchlab_plugin_entry=renamed_entry", "inspect", "entry point is not exported"),
    Fault("missing helper symbol", "-DUNDEFINED", "inspect", "nothing supplies a symbol.*nobody_supplies_this"),
    Fault("needs libasan", "-fsanitize=address", "inspect", "sanitizer's runtime"),
    Fault("note asks for a newer host", "-DNOTE_OLDEST=9", "inspect", "needs a newer host"),
]
IN_PROCESS = [
    Fault("entry returns NULL", "-DTABLE=0", "entry", "returns no table"),
    Fault("entry returns garbage", "-DTABLE='(void*)0x10'", "prefix", "crashes in reading its table.*SIG|signal 11"),
    Fault("entry crashes", "-DIN_ENTRY='raise(SIGSEGV)'", "entry", "crashes in the entry point"),
    Fault("entry ends the process", "-DIN_ENTRY='_exit(0)'", "entry", "ends its process in the entry point.*exit code 0"),
    Fault("entry loops", "-DIN_ENTRY='for(;;)pause()'", "entry", "does not come back from the entry point"),
    Fault("magic wrong", "-DMAGIC=0x12345678", "prefix", "magic.*0x31504c44.*0x12345678"),
    Fault("struct_size 0", "-DSIZE=0", "prefix", "cannot have this size.*got 0"),
    Fault("struct_size below the minimum", "-DSIZE=64", "prefix", "cannot have this size.*got 64"),
    Fault("struct_size not a multiple of 8", "-DSIZE=81", "prefix", "multiple of 8"),
    Fault("struct_size above the cap", "-DSIZE=8192", "prefix", "at most|to 4096.*got 8192"),
    Fault("struct_size uninitialised", "-DSIZE=0xCDCDCDCDCDCDCDCD", "prefix", "cannot have this size"),
    Fault("level 2, size of level 1", "-DSIZE=sizeof(dispatchlab_plugin)-8", "prefix", "at level 2"),
    Fault("abi_version 0", "-DVERSION=0", "prefix", "no level of the ABI.*got 0"),
    Fault("abi_version absurd", "-DVERSION=123456", "prefix", "no level of the ABI.*got 123456"),
    Fault("newer and wants a newer host", "-DVERSION=9 -DOLDEST=9", "table", "needs a newer host.*9"),
    Fault("oldest_host 0", "-DOLDEST=0", "table", "oldest_host names no host"),
    Fault("oldest_host above its own level", "-DOLDEST=3", "table", "oldest_host names no host"),
    Fault("reserved field set", "-DRESERVED=5", "table", "reserved"),
    Fault("no process", "-DPROCESS=0", "table", "required entry is missing.*process"),
    Fault("no create", "-DCREATE=0", "table", "required entry is missing.*create"),
    Fault("no name", "-DNAME=0", "table", "required entry is missing.*name"),
    Fault("a name without end", f"-DNAME='\"{'x' * 80}\"'", "table", "name does not end"),
    Fault("0 keys", "-DANNOUNCED=0", "keys", "out of range.*got 0"),
    Fault("70000 keys", "-DANNOUNCED=70000", "keys", "out of range.*got 70000"),
    Fault("duplicate keys", "-DKEY(i)=60000", "keys", "claimed twice.*60000"),
    Fault("keys change between calls", "-DKEY(i)=(60000+calls*10+i)", "keys", "change between calls"),
    Fault("a count that grows", "-DANNOUNCED=(2+calls)", "keys", "changes|change between calls"),
    Fault("a count that lies", "-DWRITTEN=2", "keys", "3 announced, then 2"),
    Fault("keys written beyond their room", "-DIN_KEYS='if(keys)keys[capacity]=1'", "keys", "beyond its room"),
    Fault("claimed_keys crashes", "-DIN_KEYS='raise(SIGBUS)'", "keys", "crashes in claimed_keys"),
    Fault("create returns failure", "-DCREATED=DISPATCHLAB_FAILED", "create", "makes no instance.*-1"),
    Fault("create crashes", "-DIN_CREATE='abort()'", "create", "crashes in create.*signal 6"),
    Fault("process returns an unknown status", "-DPROCESSED=7", "process", "status that does not exist.*7 for key 60000"),
    Fault("process crashes", "-DIN_PROCESS='*(volatile int*)8=1'", "process", "crashes in process"),
    Fault("process exits", "-DIN_PROCESS='exit(3)'", "process", "ends its process in process.*exit code 3"),
    Fault("process loops", "-DIN_PROCESS='for(;;)pause()'", "process", "does not come back from process"),
    Fault("destroy crashes", "-DIN_DESTROY='raise(SIGILL)'", "destroy", "crashes in destroy"),
    Fault("constructor exits", "-DIN_CONSTRUCTOR='_exit(5)'", "load", "ends its process.*exit code 5"),
    Fault("constructor crashes", "-DIN_CONSTRUCTOR='abort()'", "load", "crashes in being loaded"),
    Fault("constructor loops", "-DIN_CONSTRUCTOR='for(;;)pause()'", "load", "does not come back from being loaded"),
]


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with every plugin of these tests in it."""
    folder = tmp_path_factory.mktemp("plugins")
    jobs = [(fault.name.replace(" ", "-"), "faulty.c", f"{fault.flags} -DMARK='\"{folder}/{fault.name.replace(' ', '-')}.ran\"'")
            for fault in [*IN_FILE, *IN_PROCESS]]  # fmt: skip
    jobs += [("fine", "faulty.c", f"-DMARK='\"{folder}/fine.ran\"'"), ("newer", "faulty.c", "-DVERSION=9 -DSIZE=160")]
    jobs += [(f"v{n}", "good.c", f"-DLEVEL={n} -DFIRST={40000 + 10 * n}") for n in (1, 2)]
    jobs += [("even", "good.c", "-DRESIDUAL=1 -DFIRST=41000"), ("odd", "good.c", "-DRESIDUAL=2 -DFIRST=41000")]
    jobs += [("builtin-key", "good.c", "-DFIRST=257 -DCOUNT=1"), ("also-40010", "good.c", "-DFIRST=40012 -DCOUNT=1")]
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda job: build(folder, *job), jobs))
    return folder


@pytest.mark.parametrize("fault", IN_FILE, ids=lambda f: f.name)
def test_what_the_file_shows_is_refused_before_any_of_its_code_runs(lab: Path, fault: Fault) -> None:
    if fault.name == "needs libasan" and _engine.symbol_known("__asan_init"):
        pytest.skip("this process has AddressSanitizer: such a plugin is no fault in it")
    name = fault.name.replace(" ", "-")
    with pytest.raises(PluginError, match=fault.says) as caught:
        load(lab / f"{name}.so")
    assert caught.value.stage == fault.stage and caught.value.path == str(lab / f"{name}.so")
    assert "\n" not in str(caught.value) and caught.value.expected
    assert not (lab / f"{name}.ran").exists(), "a constructor ran"


@pytest.mark.parametrize("fault", IN_PROCESS, ids=lambda f: f.name)
def test_what_a_plugin_does_wrong_is_told_in_one_line(lab: Path, fault: Fault) -> None:
    name = fault.name.replace(" ", "-")
    with pytest.raises(PluginError, match=fault.says) as caught:
        load(lab / f"{name}.so", time_limit=0.5)
    assert caught.value.stage == fault.stage and "\n" not in str(caught.value)
    assert name + ".so" not in Path("/proc/self/maps").read_text(), "it never came into this process"


def test_the_mark_of_a_constructor_is_seen_when_it_does_run(lab: Path) -> None:
    assert load(lab / "fine.so").name == "faulty"
    assert (lab / "fine.ran").exists()


def patched(source: Path, target: Path, *edits: tuple[int, bytes], length: int | None = None) -> Path:
    data = bytearray(source.read_bytes())
    for at, new in edits:
        data[at : at + len(new)] = new
    target.write_bytes(bytes(data[:length]))
    return target


def test_files_that_are_no_plugins_are_named(lab: Path, tmp_path: Path) -> None:
    good = lab / "v2.so"
    (tmp_path / "text.so").write_text("int main() { return 0; }\n")
    (tmp_path / "empty.so").write_bytes(b"")
    (tmp_path / "noise.so").write_bytes(bytes(range(128, 256)) * 9)
    subprocess.run(["cc", "-c", str(SOURCES / "good.c"), f"-I{dl.get_include()}", "-o", str(tmp_path / "object.so")], check=True)
    os.mkfifo(tmp_path / "fifo.so")
    cases = [
        (tmp_path / "absent.so", "file", "cannot be found"),
        (tmp_path, "file", "a folder"),
        (tmp_path / "fifo.so", "file", "a special file"),
        (tmp_path / "text.so", "inspect", "not a shared library.*text"),
        (tmp_path / "empty.so", "inspect", "an empty file"),
        (tmp_path / "noise.so", "inspect", "bytes 80818283"),
        (tmp_path / "object.so", "inspect", "a relocatable object.*-shared"),
        (patched(good, tmp_path / "cut.so", length=2000), "inspect", "cut short|malformed"),
        (patched(good, tmp_path / "head.so", length=40), "inspect", "cut short"),
        (patched(good, tmp_path / "narrow.so", (4, b"\1")), "inspect", "a 32-bit library"),
        (patched(good, tmp_path / "big.so", (5, b"\2")), "inspect", "big-endian"),
        (patched(good, tmp_path / "arm.so", (18, b"\xb7\0")), "inspect", "another processor.*AArch64"),
        (patched(good, tmp_path / "exe.so", (16, b"\2\0")), "inspect", "an executable"),
        (patched(good, tmp_path / "phnum.so", (56, b"\xff\xff")), "inspect", "malformed"),
    ]
    for path, stage, says in cases:
        with pytest.raises(PluginError, match=says) as caught:
            load(path)
        assert caught.value.stage == stage and "\n" not in str(caught.value)


def test_a_library_that_is_needed_and_absent_is_named(lab: Path, tmp_path: Path) -> None:
    (tmp_path / "helper.c").write_text("int nobody_supplies_this(void) { return 1; }")
    helper = tmp_path / "libhelper.so"
    subprocess.run(["cc", "-shared", "-fPIC", str(tmp_path / "helper.c"), "-o", str(helper)], check=True)
    needy = build(tmp_path, "needy", "faulty.c", f"-DUNDEFINED -L{tmp_path} -lhelper -Wl,-rpath,$ORIGIN")
    assert load(needy).name == "faulty"
    helper.unlink()
    elsewhere = shutil.copy(needy, tmp_path / "needy2.so")
    with pytest.raises(PluginError, match=r"needs is not found.*libhelper.so"):
        load(elsewhere)


def test_a_file_or_folder_that_others_may_write_is_refused_unless_allowed(lab: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copy(lab / "v1.so", tmp_path / "copy.so"))
    copy.chmod(0o666)
    with pytest.raises(PluginError, match=r"others may write the file.*666"):
        load(copy)
    copy.chmod(0o644)
    tmp_path.chmod(0o777)
    with pytest.raises(PluginError, match="others may write the folder"):
        load(copy)
    assert load(copy, allow_writable=True).level == 1
    tmp_path.chmod(0o1777)
    assert load(copy).level == 1, "nobody else can exchange a file in a sticky folder"
    tmp_path.chmod(0o700)


def test_a_file_system_without_execution_is_named(lab: Path, tmp_path: Path) -> None:
    if os.geteuid() != 0 or subprocess.run(["mount", "-t", "tmpfs", "-o", "noexec", "none", str(tmp_path)]).returncode:
        pytest.skip("mounting a file system needs root")
    try:
        with pytest.raises(PluginError, match=r"code may not run from here.*noexec"):
            load(shutil.copy(lab / "v2.so", tmp_path / "v2.so"))
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)


def test_links_and_relative_paths_are_the_file_behind_them(lab: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    link = tmp_path / "link.so"
    link.symlink_to(lab / "v2.so")
    monkeypatch.chdir(lab)
    plugin, same = load(link), load("v2.so")
    assert plugin.path == same.path == (lab / "v2.so").resolve() and plugin.sha256 == same.sha256
    with pytest.raises(UsageError, match="the same plugin twice"):
        dl.handlers(10, plugins=[link, lab / "v2.so"])


def test_a_file_that_was_written_over_while_it_is_mapped_is_noticed(lab: Path, tmp_path: Path) -> None:
    path = Path(shutil.copy(lab / "v2.so", tmp_path / "replaced.so"))
    assert load(path).level == 2
    with path.open("ab") as file:  # what a copy over the file would do, without what it would do to this process
        file.write(b"\0")
    with pytest.raises(PluginError, match="changed while it was loaded") as caught:
        load(path)
    assert caught.value.stage == "file"
    fresh = Path(shutil.copy(lab / "v1.so", tmp_path / "fresh.so"))
    fresh.replace(path)
    with pytest.raises(PluginError, match="changed while it was loaded"):
        load(path)  # the dynamic linker would give the old code for the old name
    fresh = path.rename(tmp_path / "fresh.so")
    assert load(fresh).level == 1, "under a name of its own it is a plugin like any other"


LEVELS = [("v1", 1, 1, False), ("v1", 2, 1, False), ("v2", 1, 2, False), ("v2", 2, 2, True), ("newer", 2, 9, False),
          ("newer", 1, 9, False)]  # fmt: skip


@pytest.mark.parametrize(("name", "host", "level", "batch"), LEVELS)
def test_older_equal_and_newer_plugins_and_hosts_agree_as_the_header_says(lab, name, host, level, batch) -> None:
    """Older: loads, lacks what it lacks. Newer: loads when it says that this host will do; what the host knows not, it ignores."""
    plugin = load(lab / f"{name}.so", host_level=host)
    assert (plugin.level, plugin.batch) == (level, batch)
    packet = np.zeros(1, PACKET)
    packet["key"] = plugin.keys[0]
    assert np.frombuffer(plugin.instance().run(packet, 0), np.uint32)[0] != 0


def test_a_level_1_table_really_is_shorter(lab: Path) -> None:
    assert load(lab / "v1.so").table_size + 8 == load(lab / "v2.so").table_size


def test_conflicts_name_both_owners_and_are_settled_on_request(lab: Path) -> None:
    v1, v2 = load_all([lab / "v1.so", lab / "builtin-key.so"])
    with pytest.raises(UsageError, match=r"claim key 257: .*built-in handler 0 and .*builtin-key\.so"):
        dl.handlers(10, plugins=[v1, v2])
    other = load(lab / "also-40010.so")
    with pytest.raises(UsageError, match=r"claim key 40012: .*v1\.so and .*also-40010\.so"):
        dl.handlers(10, plugins=[v1, other])
    packet = np.zeros(1, PACKET)
    packet["key"] = 257
    first = dl.handlers(10, plugins=[v2], conflicts="first")
    last = dl.handlers(10, plugins=[v2], conflicts="last")
    assert (first.select(packet)[0], last.select(packet)[0]) == (0, 10)
    with pytest.raises(UsageError, match="disjoint predicates"):
        dl.handlers(10, plugins=[v2], conflicts="residual")
    even, odd = load_all([lab / "even.so", lab / "odd.so"])
    both = dl.handlers(10, plugins=[even, odd], conflicts="residual")
    packet["key"] = 41000
    owners = []
    for byte in (4, 5):
        packet["payload"][0, 0] = byte
        owners.append(int(both.select(packet)[0]))
    assert owners == [10, 13]
    with pytest.raises(UsageError, match="unknown policy"):
        dl.handlers(10, plugins=[even], conflicts="second")


def test_loading_is_all_or_none(lab: Path) -> None:
    with pytest.raises(PluginError):
        load_all([lab / "also-40010.so", lab / "magic-wrong.so"])
    handlers_before = _engine.arms()
    with pytest.raises(PluginError):
        dl.handlers(5, plugins=[lab / "also-40010.so", lab / "no-create.so"])
    assert _engine.arms() == handlers_before


CLOSED = ("variant", "static", "computed-goto", "switch", "guarded-1", "guarded-2", "guarded-4")
OPEN = [a.name for a in dl.arms() if a.answers == "list" and a.name not in CLOSED]


@pytest.fixture(scope="module")
def mixed(lab: Path) -> dl.HandlerSet:
    return dl.handlers(60, size="tiny", plugins=[lab / "v1.so", lab / "v2.so"], residual=0.0)


@pytest.mark.parametrize("arm", OPEN)
def test_built_in_and_plugged_in_handlers_answer_alike_in_every_open_arm(mixed: dl.HandlerSet, arm: str) -> None:
    tr = dl.traffic.uniform(mixed, pool=1 << 20)
    wanted = oracle.answers(mixed, tr.packets)
    assert (mixed.select(tr.packets) >= mixed.stamped).mean() > 0.05, "plugins take part"
    assert np.array_equal(results(arm, mixed, tr), wanted)
    checksum, _ = prepare(arm, mixed, tr).count()
    assert checksum == oracle.checksum(wanted)


def test_a_residual_predicate_of_a_plugin_is_asked(lab: Path) -> None:
    hs = dl.handlers(60, size="tiny", plugins=[lab / "even.so"])
    tr = dl.traffic.uniform(hs, pool=1 << 14)
    assert hs.masks[-1] == 1 and hs.values[-1] == 0
    for arm in ("scan", "scan-ordered", "scan-mtf", "table-direct16", "table-compact"):
        assert np.array_equal(results(arm, hs, tr), oracle.answers(hs, tr.packets)), arm


@pytest.mark.parametrize("arm", ["variant", "static"])
def test_a_closed_set_refuses_a_plugin_with_its_sentence(mixed: dl.HandlerSet, arm: str) -> None:
    with pytest.raises(UsageError, match="a closed set cannot admit a plugin"):
        prepare(arm, mixed, dl.traffic.uniform(mixed, pool=512))


def test_a_batch_answers_what_single_packets_do(lab: Path) -> None:
    plugin = load(lab / "v2.so")
    packets = np.zeros(1000, PACKET)
    packets["key"], packets["payload"] = plugin.keys[1], np.random.default_rng(1).integers(0, 256, (1000, 24))
    it = plugin.instance()
    single = it.run(packets, 0)
    for batch in (1, 7, 64, 256, 1000, 5000):
        assert it.run(packets, batch) == single


def test_a_measured_run_records_the_files_digest(lab: Path, tmp_path: Path) -> None:
    plugin = load(lab / "v2.so")
    hs = dl.handlers(20, size="tiny", plugins=[plugin])
    recording = dl.measure(["scan", "table-compact"], hs, dl.traffic.uniform(hs, pool=8192), rounds=16)
    assert recording.extra["plugins"][0]["sha256"] == plugin.sha256
    recording.save(tmp_path / "r.json")
    assert dl.load(tmp_path / "r.json").extra["plugins"][0]["keys"] == 3


def test_two_hundred_keys_of_twenty_libraries_load(tmp_path: Path) -> None:
    with ThreadPoolExecutor(2) as pool:
        files = list(pool.map(lambda i: build(tmp_path, f"p{i}", flags=f"-DFIRST={20000 + 10 * i} -DCOUNT=10"), range(20)))
    begin = time.perf_counter()
    hs = dl.handlers(60, size="tiny", plugins=files)
    print(f"200 keys of 20 libraries in {1000 * (time.perf_counter() - begin):.0f} ms")
    assert hs.count == 260 and len(hs.foreign) == 200
    tr = dl.traffic.uniform(hs, pool=1 << 14)
    assert np.array_equal(results("table-compact", hs, tr), oracle.answers(hs, tr.packets))


def test_instances_are_destroyed_as_often_as_created_and_hold_the_library(lab: Path, tmp_path: Path) -> None:
    path = build(tmp_path, "unloads")
    plugin = load(path)
    held = [plugin.instance() for _ in range(3)]
    hs = dl.handlers(5, size="tiny", plugins=[plugin])
    assert plugin.engine.facts()["instances"] == 4
    with pytest.raises(PluginError, match=r"in use.*4 of its instances are alive") as caught:
        unload(plugin)
    assert caught.value.stage == "unload"
    del held, hs
    assert plugin.engine.facts()["instances"] == 0
    assert unload(plugin) == "", "gone from /proc/self/maps"
    assert str(path) not in Path("/proc/self/maps").read_text()
    with pytest.raises(ValueError, match="unloaded"):
        plugin.instance()


def test_a_library_that_the_linker_keeps_is_said_to_stay(tmp_path: Path) -> None:
    plugin = load(build(tmp_path, "stays", flags="-Wl,-z,nodelete"))
    assert "still mapped" in unload(plugin)


def test_a_thread_key_destructor_is_safe_because_nothing_is_unmapped(tmp_path: Path) -> None:
    """The destructor of a thread-specific value runs when a thread ends: in code that must still be there."""
    source = tmp_path / "key.c"
    text = (SOURCES / "faulty.c").read_text()
    begin = "#include <pthread.h>\nstatic pthread_key_t key; static void gone(void *p) { (void)p; }\n"
    source.write_text(begin + text)
    flags = "-DIN_CONSTRUCTOR='pthread_key_create(&key,gone)' -DIN_PROCESS='pthread_setspecific(key,(void*)1)'"
    library = build(tmp_path, "key", str(source), flags)
    script = f"""
        import threading, numpy as np
        from dispatchlab.plugins import load
        from dispatchlab.traffic.packets import PACKET
        plugin = load({str(library)!r})
        def work():
            packet = np.zeros(1, PACKET); packet["key"] = plugin.keys[0]
            plugin.instance().run(packet, 0)
            global plugin_gone
        thread = threading.Thread(target=work); thread.start(); thread.join()
        del plugin
        print("alive")
    """
    import textwrap

    done = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True)
    assert done.stdout == "alive\n" and done.returncode == 0, done.stderr
