"""What a compiler makes of a virtual call: the same call site built in several ways, read from the machine code.

Base has a virtual process(); Derived is the only class that overrides it, in another source file; serve() makes a Derived's Base
process a packet. What differs is what the compiler may know about the object behind the reference.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

from .disassembly import Instruction, functions, objdump
from .errors import ToolError, explain

COMPILERS = ("g++", "clang++")
SITE = "serve"

_BASE = """
struct Base {
  virtual unsigned process(unsigned packet);
  virtual ~Base();
};
"""
_DERIVED = """
struct Derived FINAL : Base {
  unsigned process(unsigned packet) override;
};
"""
_BODIES = """
__attribute__((noinline)) unsigned Base::process(unsigned packet) { return packet * 3; }
Base::~Base() {}
__attribute__((noinline)) unsigned Derived::process(unsigned packet) { return packet * 5 + 1; }
"""
_MAIN = """
Derived the_object;
Base &handler() { return the_object; }
int main(int argc, char **) { return static_cast<int>(serve(handler(), static_cast<unsigned>(argc))); }
"""
_STATIC = """
template <typename Self> struct Static {
  unsigned dispatch(unsigned packet) { return static_cast<Self *>(this)->process(packet); }
};
struct Only : Static<Only> {
  __attribute__((noinline)) unsigned process(unsigned packet) { return packet * 5 + 1; }
};
extern "C" __attribute__((noinline)) unsigned serve(Only &handler, unsigned packet) { return handler.dispatch(packet) + 77; }
int main(int argc, char **) { Only only; return static_cast<int>(serve(only, static_cast<unsigned>(argc))); }
"""


def _site(of: str) -> str:
    head = f'extern "C" __attribute__((noinline)) unsigned serve({of} &handler, unsigned packet)'
    return head + " { return handler.process(packet) + 77; }\n"


@dataclass(frozen=True)
class Way:
    """How the call site is built: the sources, each compiled by itself, and the flags for all."""

    name: str
    sources: tuple[str, ...]
    flags: tuple[str, ...] = ()


_OPEN = _BASE + _DERIVED.replace("FINAL ", "")
WAYS = (
    Way("plain: another file may derive", (_OPEN + _site("Base"), _OPEN + _BODIES,
        _OPEN + 'extern "C" unsigned serve(Base &, unsigned);' + _MAIN)),
    Way("the whole set in view: one file, whole program", ("namespace {" + _OPEN + "}" + _BODIES + _site("Base") + _MAIN,),
        ("-fwhole-program",)),
    Way("final: nothing may derive further", (_BASE + _DERIVED.replace("FINAL", "final") + _site("Derived"),
        _BASE + _DERIVED.replace("FINAL", "final") + _BODIES,
        _BASE + _DERIVED.replace("FINAL", "final") + 'extern "C" unsigned serve(Derived &, unsigned);'
        + _MAIN.replace("Base &handler", "Derived &handler"))),
    Way("link-time optimisation over three files", (_OPEN + _site("Base"), _OPEN + _BODIES,
        _OPEN + 'extern "C" unsigned serve(Base &, unsigned);' + _MAIN), ("-flto",)),
    Way("static polymorphism: the type is a parameter", (_STATIC,)),
)  # fmt: skip


@dataclass(frozen=True)
class Built:
    """What became of the call site: "indirect call", "guarded call" (compared, then by name, else indirect), "call by name",
    "inlined", or "folded into its caller" where no function was left; loads: of memory on the way."""

    way: str
    compiler: str
    became: str
    loads: int
    bytes: int

    def document(self) -> dict[str, object]:
        """JSON values."""
        return asdict(self)


def build(way: Way, compiler: str) -> Built:
    """Compile, link, read. ToolError, one line, for a compiler that is missing or fails."""
    tool = shutil.which(compiler)
    if tool is None:
        remedy = "install it to see what it makes of a call"
        raise ToolError(explain(f"{compiler} is not installed", "devirtualization", remedy=remedy))
    version = subprocess.run([tool, "--version"], capture_output=True, text=True).stdout.splitlines()
    with tempfile.TemporaryDirectory(prefix="dispatchlab-") as folder:
        out = Path(folder) / "probe"
        objects = []
        for n, source in enumerate(way.sources):
            (file := Path(folder) / f"{n}.cc").write_text(source)
            objects.append(str(file.with_suffix(".o")))
            _run([tool, "-std=c++17", "-O2", *_known(tool, way.flags), "-c", str(file), "-o", objects[-1]])
        _run([tool, "-O2", *_known(tool, way.flags), *objects, "-o", str(out)])
        found = functions(objdump(out))
    code = next((c for name, c in found.items() if re.match(r"_?serve(\.|$)|_?Z\w*serve", name)), None)
    if code is None:  # the compiler saw so much that it needed no function for it
        return Built(way.name, version[0] if version else compiler, "folded into its caller", 0, 0)
    return Built(way.name, version[0] if version else compiler, became(code), *_measures(code))


def became(code: list[Instruction]) -> str:
    """What the call at a call site was made into."""
    branches = [i for i in code if i.verb in ("call", "jmp")]
    indirect = any(i.indirect for i in branches)
    by_name = any(not i.indirect and re.search(r"process", i.target) for i in branches)
    if indirect:
        return "guarded call" if by_name else "indirect call"
    return "call by name" if by_name else "inlined"


def _measures(code: list[Instruction]) -> tuple[int, int]:
    return sum(i.loads for i in code), code[-1].address - code[0].address + 1


def _known(tool: str, flags: tuple[str, ...]) -> list[str]:
    """-fwhole-program is gcc's; clang has the same for vtables, with link-time optimisation."""
    if "clang" not in tool or "-fwhole-program" not in flags:
        return list(flags)
    return ["-flto", "-fwhole-program-vtables", "-fvisibility=hidden"]


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        said = (done.stderr.strip() or "nothing said").splitlines()[0]
        raise ToolError(explain("could not be built", Path(command[0]).name, got=said))
