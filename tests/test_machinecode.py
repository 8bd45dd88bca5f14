"""What the compiler made of the dispatch: read from the built library, and from objects that gcc and clang make here."""

import ast
import hashlib
import json
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import dispatchlab as dl
from dispatchlab import cli, disassembly, machinecode
from dispatchlab.disassembly import Instruction, disassemble, examine, functions, loop_of, objdump
from dispatchlab.errors import ToolError
from dispatchlab.handlers import bodies

ROOT = Path(__file__).parent.parent
X86 = machinecode.library().read_bytes()[18:20] == b"\x3e\x00"

pytestmark = [
    pytest.mark.skipif(not X86, reason="the engine is not built for x86-64: its code is printed, not understood"),
    pytest.mark.skipif(shutil.which("objdump") is None, reason="objdump (binutils) is not installed"),
]

NAMED = ("direct-call", "variant", "static", "guarded-1", "guarded-2", "guarded-4", "computed-goto")
CALLS = {
    "direct-call": 0, "virtual": 1, "erasure": 1, "erasure-inline": 1, "variant": 0, "static": 0, "computed-goto": 0,
    "guarded-1": 1, "guarded-2": 1, "guarded-4": 1,
}  # fmt: skip
BY_NAME = {"direct-call": 1, "variant": 128, "static": 128, "computed-goto": 128, "guarded-1": 1, "guarded-2": 2, "guarded-4": 4}


def wrong(found):
    """What is not as it must be of arms -> Dispatch: a line each."""
    lines = [f"{arm}: {d.indirect_calls} indirect calls" for arm, d in found.items() if d.indirect_calls != CALLS[arm]]
    lines += [f"{arm}: {d.named} handlers by name" for arm, d in found.items() if d.named != BY_NAME.get(arm, 0)]
    lines += [f"{arm}: calls {', '.join(d.strangers)}" for arm, d in found.items() if d.strangers]
    for more, less in (("virtual", "erasure"), ("variant", "static")):
        if (found[more].chain or 0) != (found[less].chain or 0) + 1:
            lines.append(f"{more}: {found[more].chain} loads in a row, {less} {found[less].chain}")
    return lines


# --- the built library ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("placement", range(4))
def test_the_built_arms_are_what_they_are_called(placement):
    found = {arm: examine(disassemble(loop_of(arm, "chain", "fat", placement))) for arm in CALLS}
    assert not wrong(found)


@pytest.mark.parametrize("arm", dl.arms(), ids=lambda arm: arm.name)
def test_no_dispatch_is_behind_a_pointer_from_the_loop(arm):
    """A predicate, a process, and the short list's: nothing else is called through a pointer. Batch arms hold two ways to dispatch,
    top-n four calls more, and what remembers calls from the memory as well."""
    found = examine(disassemble(loop_of(arm.name)))
    assert not found.strangers
    most = {"top-n": 7, "cache-last": 5, "cache-last-scan": 5}.get(arm.name, 6 if arm.family == "batch" else 3)
    assert found.indirect_calls <= most


def test_512_distinct_bodies_survive_linking():
    path = machinecode.library()
    text = next(s for s in machinecode.sections(path) if s.name == ".text")
    data = path.read_bytes()
    for body, size, _ in bodies():
        mine = [s for s in machinecode.symbols(path) if re.fullmatch(rf"dl_{body}_{size}_\d+", s.name)]
        code = {hashlib.sha256(data[at : at + s.size]).digest() for s in mine for at in [s.address - text.address + text.offset]}
        assert len(mine) == len({s.address for s in mine}) == len(code) == 512, (body, size)


def test_bodies_are_of_the_size_of_chain():
    """Read from the symbols: fat bodies within 10 % of each other, the smaller sizes in order."""
    sizes = {name: found["bytes"] for name, found in machinecode.code_sizes().items()}
    for body in ("wide", "branchy"):
        assert sizes[f"{body} fat"] == pytest.approx(sizes["chain fat"], rel=0.1)
    for body in ("chain", "wide", "branchy"):
        row = [sizes[f"{body} {size}"] for size in ("tiny", "quarter", "half", "fat")]
        assert row == sorted(row) and row[0] < row[-1] / 8


def test_branchy_jumps_from_line_to_line():
    symbol = next(s for s in machinecode.symbols(machinecode.library()) if s.name == "dl_branchy_fat_9")
    code = disassemble(symbol)
    places = {i.address: n for n, i in enumerate(code)}
    at, leaps, steps = 0, [], 0
    while code[at].verb != "ret" and steps < 2000:
        steps += 1
        if code[at].verb == "jmp":
            there = places[int(code[at].operands.split()[0], 16)]
            leaps.append(code[there].address - code[at].address)
            at = there
        else:
            at += 1
    assert len(leaps) == 29, "one jump into the first piece and one out of each of 28"
    assert sum(abs(leap) > 64 for leap in leaps) >= 24


def test_the_text_fits():
    assert machinecode.text_bytes()["section"] <= 8_000_000


# --- built here, whole and broken ----------------------------------------------------------------------------------


def setup_flags():
    """The flags of setup.py that every compiler takes, without running it."""
    tree = ast.parse((ROOT / "setup.py").read_text())
    return next(ast.literal_eval(n.value) for n in tree.body if isinstance(n, ast.Assign) and n.targets[0].id == "FLAGS")


def trimmed(path, *changes):
    """A copy of the core in which the arms are built for chain tiny alone. changes: (file, old, new)."""
    core = shutil.copytree(ROOT / "csrc" / "core", path / "core", ignore=shutil.ignore_patterns("stamps"))
    for name in ("stamps.def", "arms/named.def"):
        (core / name).write_text("DL_STAMP(chain, tiny)\n")
    for name in ("arms/per_stamp.inc", "arms/named.inc"):
        (core / name).write_text("#define DL_ID chain_tiny\n#include DL_PER_STAMP\n#undef DL_ID\n#undef DL_PER_STAMP\n")
    for file, old, new in changes:
        text = (core / file).read_text()
        assert old in text
        (core / file).write_text(text.replace(old, new))
    return core


def build(compiler, core, arms=tuple(CALLS)):
    """Arm -> Dispatch of its first timed loop, out of objects made now."""
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")

    def one(arm):
        name = arm.replace("-", "_")
        out = core / f"{name}.o"
        command = [compiler, *setup_flags(), f"-I{core}", f"-I{core}/arms", "-c", str(core / "arms" / f"{name}.c"), "-o", str(out)]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0 and not done.stderr, done.stderr
        found = functions(objdump(out))
        return examine(found["loops_chain_tiny_timed_0" if arm in NAMED else "loops_timed_0"])

    with ThreadPoolExecutor(2) as pool:
        return dict(zip(arms, pool.map(one, arms), strict=True))


COMPILERS = ("gcc", "clang")


@pytest.mark.parametrize("compiler", COMPILERS)
def test_both_compilers_make_of_each_arm_what_it_is_called(compiler, tmp_path):
    assert not wrong(build(compiler, trimmed(tmp_path)))


BEHIND = (
    "__attribute__((noinline)) static dl_result DL_LOOP(_behind)(const DL_ARM_STATE *s, const dl_packet *p, uint32_t *n) "
    "{ (void)n; return DL_DISPATCH(s, p, n); }\n"
    "static dl_result (*volatile DL_LOOP(_hidden))(const DL_ARM_STATE *, const dl_packet *, uint32_t *) = DL_LOOP(_behind);\n"
)
IN_LOOP, PLACED = "DL_DISPATCH(&state, &packets[i], NULL)", "#define DL_PLACED("
BY_NAME_CALL = "DL_NAMED(i)(object, packet);"

BREAKS = {
    "the loop reaches its dispatch through a pointer": (
        [("arm_loop.inc", IN_LOOP, IN_LOOP.replace("DL_DISPATCH", "DL_LOOP(_hidden)")), ("arm_loop.inc", PLACED, BEHIND + PLACED)],
        r"static: \d+ indirect calls",
    ),
    "the loop reaches its dispatch by a call": (
        [("arm_loop.inc", IN_LOOP, IN_LOOP.replace("DL_DISPATCH", "DL_LOOP(_behind)")), ("arm_loop.inc", PLACED, BEHIND + PLACED)],
        "virtual: calls loops_behind",
    ),
    "static calls through the object's pointer": (
        [("arms/static.inc", f"case i: return {BY_NAME_CALL}", "case i: return object->process(object, packet);")],
        r"static: \d+ indirect calls",
    ),
    "virtual keeps the function in the object": (
        [("arms/virtual.c", "object->vtable->process(object, packet)", "object->process(object, packet)")],
        "virtual: 3 loads in a row, erasure 3",
    ),
    "erasure reaches its function through the object": (
        [("arms/erasure.c", "return e->process(e->object, packet);", "return e->object->process(e->object, packet);")],
        "virtual: 4 loads in a row, erasure 4",
    ),
    "a guard that no longer calls by name": (
        [("arms/guarded.inc", f"return {BY_NAME_CALL}", "return object->process(object, packet);")],
        "guarded-1: 0 handlers by name",
    ),
}


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("plant", BREAKS)
def test_an_arm_broken_on_purpose_is_found(plant, compiler, tmp_path):
    changes, says = BREAKS[plant]
    lines = wrong(build(compiler, trimmed(tmp_path, *changes), ("virtual", "erasure", "variant", "static", "guarded-1")))
    assert any(re.match(says, line) for line in lines), lines


# --- reading -------------------------------------------------------------------------------------------------------


def test_loads_in_a_row_are_counted_along_the_data():
    code = [
        Instruction(0, "movzx", "eax,WORD PTR [r14]"),
        Instruction(4, "mov", "rcx,QWORD PTR [r13+0x0]"),
        Instruction(8, "lea", "rdx,[r12+rax*8]"),
        Instruction(12, "mov", "rdi,QWORD PTR [rdx]"),
        Instruction(16, "mov", "QWORD PTR [rsp+0x8],rdi"),
        Instruction(20, "mov", "rsi,rdi"),
        Instruction(24, "call", "QWORD PTR [rsi+0x10]"),
        Instruction(28, "jne", "0"),
    ]
    found = examine(code)
    assert (found.indirect_calls, found.chain) == (1, 3)
    assert [i.loads for i in code] == [True, True, False, True, False, False, True, False]


def test_the_command_marks_loads_and_calls(capsys):
    assert cli.main(["disassemble", "virtual"]) == 0
    text = capsys.readouterr().out
    assert "<- indirect call, loads its target" in text and text.count("<- load") >= 3
    assert "to the target: 4 loads in a row" in text
    assert cli.main(["disassemble", "static", "--body", "wide", "--size", "tiny", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["named"] == 128


def test_capstone_reads_the_same(monkeypatch):
    pytest.importorskip("capstone", reason="capstone is not installed")
    for arm in ("virtual", "static", "guarded-2"):
        symbol = loop_of(arm)
        first = examine(disassemble(symbol))
        with monkeypatch.context() as patch:
            patch.setattr(shutil, "which", lambda name: None)
            assert examine(disassemble(symbol)) == first


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["virtul"], "unknown arm 'virtul'"),
        (["static", "--size", "half"], "its loop is not in the library"),
        (["virtual", "--body", "chian"], "no such body"),
    ],
)
def test_what_cannot_be_shown_is_one_line(capsys, arguments, says):
    assert cli.main(["disassemble", *arguments]) == 2
    err = capsys.readouterr().err
    assert says in err and err.count("\n") == 1


def test_without_objdump_and_capstone_there_is_one_line(monkeypatch, capsys):
    monkeypatch.setattr(disassembly.shutil, "which", lambda name: None)
    monkeypatch.setitem(sys.modules, "capstone", None)
    assert cli.main(["disassemble", "virtual"]) == 2
    assert "neither objdump nor capstone is installed" in capsys.readouterr().err


def test_a_stripped_library_says_so(tmp_path):
    copy = tmp_path / "engine.so"
    if shutil.which("strip") is None:
        pytest.skip("strip (binutils) is not installed")
    subprocess.run(["strip", "-o", str(copy), str(machinecode.library())], check=True)
    with pytest.raises(ToolError, match="the symbol table was stripped"):
        machinecode.symbols(copy)
    assert machinecode.code_sizes(copy) == {}
    (tmp_path / "text").write_text("no library")
    with pytest.raises(ToolError, match="not a 64-bit ELF file"):
        machinecode.symbols(tmp_path / "text")
