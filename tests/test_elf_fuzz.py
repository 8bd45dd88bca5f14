"""Whatever a file holds, inspecting it reads nothing beyond it: 100,000 damaged libraries under AddressSanitizer and UBSan."""

import shutil
import subprocess
from pathlib import Path

import pytest

from dispatchlab import _engine

ROOT = Path(__file__).parent.parent
CORPUS = sorted((ROOT / "tests" / "fuzz" / "elf").glob("*.elf"))
STATUSES = ("ok", "not ELF", "class", "endian", "machine", "type", "truncated", "malformed")

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")


def build(folder, inspect):
    out = folder / "elf"
    flags = ["-std=c11", "-O1", "-g", "-Wall", "-Wextra", "-D_GNU_SOURCE"]
    flags += ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    done = subprocess.run(
        ["cc", *flags, f"-I{ROOT}/csrc/core", str(ROOT / "tests/fuzz/elf.c"), str(inspect), "-o", str(out)],
        capture_output=True,
        text=True,
    )
    if "sanitize" in done.stderr or "asan" in done.stderr:
        pytest.skip(f"the compiler has no sanitizers: {done.stderr.splitlines()[0]}")
    assert not done.returncode and not done.stderr, done.stderr
    return out


def fuzz(program, count, seed=1):
    return subprocess.run([str(program), str(count), str(seed), *map(str, CORPUS)], capture_output=True, text=True, errors="replace")


def test_the_corpus_holds_what_libraries_differ_in():
    seen = {path.stem: _engine.plugin_inspect(path.read_bytes()) for path in CORPUS}
    assert {name: found["status"] for name, found in seen.items()} == {
        "gnu-hash": "ok", "sysv-hash": "ok", "undefined": "ok", "32-bit": "class", "object": "type",
    }  # fmt: skip
    assert seen["gnu-hash"]["exported"] == seen["sysv-hash"]["exported"] == ["dispatchlab_plugin_entry"]
    assert seen["gnu-hash"]["note_level"] == 2 and seen["sysv-hash"]["runpath"] == ["/nowhere"]
    assert seen["undefined"]["undefined"] == ["left_open"] and seen["undefined"]["needed"] == ["libm.so.6"]


def test_a_hundred_thousand_damaged_files_are_inspected_without_a_slip(tmp_path):
    done = fuzz(build(tmp_path, ROOT / "csrc/core/inspect.c"), 100_000)
    assert done.returncode == 0, done.stderr
    *answered, names = map(int, done.stdout.split())
    counts = dict(zip(STATUSES, answered, strict=True))
    assert sum(answered) == 100_000 + len(CORPUS) and names > 100_000
    assert all(counts[status] > 0 for status in STATUSES), f"every answer was reached: {counts}"
    assert counts["ok"] < 0.9 * 100_000, "the damage is noticed"


CHECKS = [
    ("a string's end", "memchr(text, '\\0', elf->strings_size - index) != NULL", "true"),
    ("an offset", "if (at > elf->size || length > elf->size - at) return false;", ""),
]


@pytest.mark.parametrize(("what", "check", "instead"), CHECKS, ids=[what for what, _, _ in CHECKS])
def test_an_inspection_that_forgets_a_check_is_caught(tmp_path, what, check, instead):
    source = (ROOT / "csrc/core/inspect.c").read_text()
    assert check in source
    broken = tmp_path / "inspect.c"
    broken.write_text(source.replace(check, instead))
    done = fuzz(build(tmp_path, broken), 100_000)
    seen = "AddressSanitizer" in done.stderr or "runs out of its string table" in done.stderr
    assert done.returncode != 0 and seen, f"{what} was not checked, and nobody noticed"
