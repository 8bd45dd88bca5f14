"""The dispatch of an arm as machine code: disassembled out of the built library, its loads and calls marked and counted.

objdump does it where it is installed, else capstone (a Python package) does; x86-64 is understood, other machines are printed
without marks.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from .arms import find
from .errors import ToolError, UsageError, explain
from .handlers import bodies
from .machinecode import Symbol, library, sections, symbols

TOOL = "objdump"
_LINE = re.compile(r"^\s*([0-9a-f]+):\s+(\S+)\s*(.*)$")
_RELOCATION = re.compile(r"^\s*[0-9a-f]+:\s+R_\S+\s+([^\s+-]+)")
_MEMORY = re.compile(r"\[([^\]]*)\]")
_REGISTER = re.compile(r"\b(r(?:[abcd]x|[sd]i|[sb]p|\d+)[dwb]?|e(?:[abcd]x|[sd]i|[sb]p)|[abcd]x|[sd]i|[abcd]l)\b")


@dataclass(frozen=True)
class Instruction:
    """One instruction in Intel syntax. target: the function or place it calls or jumps to by name, where it does."""

    address: int
    verb: str
    operands: str
    target: str = ""

    @property
    def indirect(self) -> bool:
        """Whether it calls or jumps through a pointer."""
        return self.verb in ("call", "jmp") and (bool(_MEMORY.search(self.operands)) or bool(_REGISTER.match(self.operands)))

    @property
    def loads(self) -> bool:
        """Whether it reads memory: not lea, not stores, not the stack."""
        memory = _MEMORY.search(self.operands)
        if memory is None or self.verb.startswith(("lea", "nop", "push", "set")):
            return False
        if re.search(r"\b[re]sp\b|rip", memory[1]):
            return False
        stores = self.verb == "mov" and self.operands.split(",")[0].endswith("]")
        return not stores


@dataclass(frozen=True)
class Dispatch:
    """What the compiler made of one loop.

    indirect_calls, indirect_jumps  how many the loop holds; named: handlers it calls by name
    chain     loads that wait for one another from the packet's key to the target of the indirect call or jump; None without one
    strangers functions that the loop calls by name and that are no handlers: a dispatch that was not inlined. What compilers call
              to clear or copy memory is none.
    """

    indirect_calls: int
    indirect_jumps: int
    named: int
    chain: int | None
    strangers: tuple[str, ...]


def loop_of(arm: str, body: str = "chain", size: str = "fat", placement: int = 0, path: Path | None = None) -> Symbol:
    """The timed loop of an arm in the library; of arms that call handlers by name, the one for that body and size.

    UsageError for an arm that is unknown or was not built so, ToolError without symbols.
    """
    name = find(arm).name
    if not any((body, size) == (b, s) for b, s, _ in bodies()):
        raise UsageError(explain("no such body", "disassemble", "one of dispatchlab's bodies at a built size", f"{body} {size}"))
    file = name.replace("-", "_") + ".c"
    mine = {s.name: s for s in symbols(path or library()) if s.file == file}
    for loops in ("loops", f"loops_{body}_{size}"):
        if found := mine.get(f"{loops}_timed_{placement}"):
            return found
    raise UsageError(explain("its loop is not in the library", arm, f"a body and size it was built for, not {body} {size}"))


def disassemble(symbol: Symbol, path: Path | None = None) -> list[Instruction]:
    """The instructions of one function. ToolError where neither objdump nor capstone is there."""
    path = path or library()
    if shutil.which(TOOL):
        end = symbol.address + symbol.size
        return parse(objdump(path, [f"--start-address={symbol.address:#x}", f"--stop-address={end:#x}"]))
    return _capstone(symbol, path)


def objdump(path: Path, more: Iterable[str] = ()) -> str:
    """What objdump prints of a file, relocations among the instructions. ToolError where it is missing or fails."""
    tool = shutil.which(TOOL)
    if tool is None:
        raise ToolError(explain(f"{TOOL} is not installed", "disassemble", remedy="install binutils"))
    command = [tool, "-d", "-r", "--no-show-raw-insn", "-M", "intel", *more, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, env={"LC_ALL": "C"})
    if done.returncode:
        raise ToolError(explain(f"{TOOL} failed", "disassemble", got=(done.stderr.strip() or "nothing said").splitlines()[-1]))
    return done.stdout


def parse(text: str) -> list[Instruction]:
    """Instructions out of what objdump printed."""
    found: list[Instruction] = []
    for line in text.splitlines():
        if relocation := _RELOCATION.match(line):
            if found and found[-1].verb in ("call", "jmp") and not found[-1].indirect:
                last = found[-1]
                found[-1] = Instruction(last.address, last.verb, last.operands, relocation[1])
        elif match := _LINE.match(line):
            operands = match[3].split("#")[0].strip()
            target = re.search(r"<([^+>]+)(\+0x[0-9a-f]+)?>", operands)
            verb = match[2].removeprefix("bnd ").removeprefix("notrack ")
            found.append(Instruction(int(match[1], 16), verb, operands, target[1] if target else ""))
    return found


def functions(text: str) -> dict[str, list[Instruction]]:
    """Name -> instructions, out of what objdump printed of a whole file."""
    parts = re.split(r"^[0-9a-f]+ <([^>]+)>:$", text, flags=re.MULTILINE)
    return {name: parse(body) for name, body in zip(parts[1::2], parts[2::2], strict=True)}


def _capstone(symbol: Symbol, path: Path) -> list[Instruction]:
    try:
        import capstone
    except ImportError as error:
        raise ToolError(
            explain(f"neither {TOOL} nor capstone is installed", "disassemble", remedy="install binutils, or pip install capstone")
        ) from error
    part = next(s for s in sections(path) if s.address <= symbol.address < s.address + s.size)
    with path.open("rb") as file:
        file.seek(part.offset + symbol.address - part.address)
        code = file.read(symbol.size)
    names = {s.address: s.name for s in symbols(path)}
    engine = capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64)
    found = []
    for i in engine.disasm(code, symbol.address):
        near = i.op_str.startswith("0x") and int(i.op_str, 16)
        target = symbol.name if near and symbol.address <= near < symbol.address + symbol.size else names.get(near or -1, "")
        found.append(Instruction(i.address, i.mnemonic, i.op_str.upper().replace("PTR", "PTR").lower(), target))
    return found


def examine(code: list[Instruction]) -> Dispatch:
    """Count what matters of a loop. Depth follows the data: a load is one deeper than what its address was made from, counted from
    the packet's key, the first load in the loop; what was loaded before the loop waits for nothing."""
    calls = [i for i in code if i.verb == "call"]  # compilers put cases before the loop's head as well as behind its end
    jumps = [i for i in code if i.verb == "jmp" and i.indirect]
    handlers = [i.target for i in code if i.verb in ("call", "jmp") and re.fullmatch(r"dl_\w+_\d+", i.target)]
    strangers = {i.target for i in calls if not i.indirect and not re.fullmatch(r"dl_\w+_\d+|mem(set|cpy|move)@plt", i.target)}
    indirect = [i for i in calls if i.indirect] or jumps
    depths = _depths(loop_body(code))
    chain = max((depths.get(i.address, 0) for i in indirect), default=None)
    return Dispatch(sum(i.indirect for i in calls), len(jumps), len(set(handlers)), chain, tuple(sorted(strangers)))


def loop_body(code: list[Instruction]) -> list[Instruction]:
    """From the earliest place that a later jump goes back to, up to the end: what comes before it runs once."""
    places = {i.address: n for n, i in enumerate(code)}
    starts = [
        places[at]
        for n, i in enumerate(code)
        if i.verb.startswith("j") and not i.indirect and (at := _place(i)) in places and places[at] <= n
    ]
    return code[min(starts, default=0) :]


def _place(i: Instruction) -> int:
    match = re.match(r"(?:0x)?([0-9a-f]+)", i.operands)
    return int(match[1], 16) if match else -1


def _depths(body: list[Instruction]) -> dict[int, int]:
    """Address of each indirect call or jump -> how many loads in a row lead to its target."""
    depth: dict[str, int] = {}
    found = {}
    for i in body:
        memory = _MEMORY.search(i.operands)
        base = max((depth.get(_wide(r), 0) for r in _REGISTER.findall(memory[1])), default=0) if memory else 0
        loaded = base + i.loads
        if i.indirect:
            found[i.address] = loaded if memory else depth.get(_wide(i.operands), 0)
            continue
        first, _, rest = i.operands.partition(",")
        if not rest or not _REGISTER.fullmatch(first) or i.verb in ("cmp", "test"):
            continue
        sources = 0 if memory else max((depth.get(_wide(r), 0) for r in _REGISTER.findall(rest)), default=0)
        keeps = 0 if i.verb.startswith(("mov", "lea")) else depth.get(_wide(first), 0)
        depth[_wide(first)] = max(loaded if memory else 0, sources, keeps)
    return found


_WIDE: Mapping[str, str] = {
    **{n + e: f"r{n}x" for n in "abcd" for e in ("x", "l")},
    **{f"e{n}": f"r{n}" for n in ("ax", "bx", "cx", "dx", "si", "di", "sp", "bp")},
    **{n: f"r{n}" for n in ("si", "di")},
}


def _wide(register: str) -> str:
    """eax, ax, al -> rax; r9d -> r9."""
    return _WIDE.get(register, re.sub(r"(r\d+)[dwb]$", r"\1", register))


SHOWN_CASES = 3


def listing(code: list[Instruction]) -> list[str]:
    """Lines to read: the loop, loads and calls marked; of many equal cases that call by name only the first few."""
    lines: list[str] = []
    cases = left_out = 0
    for i in loop_body(code):
        mark = _mark(i)
        cases += mark.startswith("calls")
        if cases > SHOWN_CASES:
            left_out += 1
            continue
        lines.append(f"{i.address:8x}  {i.verb:<8}{i.operands:<44}{mark}".rstrip())
    if left_out:
        lines.append(f"          ... and {left_out} instructions more: the other cases, and the end of the loop")
    return lines


def _mark(i: Instruction) -> str:
    if i.verb in ("call", "jmp") and i.indirect:
        return "<- indirect " + ("call" if i.verb == "call" else "jump") + (", loads its target" if i.loads else "")
    if i.verb == "call":
        return f"calls {i.target} by name"
    return "<- load" if i.loads else ""
