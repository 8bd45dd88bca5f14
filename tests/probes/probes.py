"""The four failures that a boundary of C++ has and says nothing about, and the one that it does say: each built and run here.

`everything(folder)` builds hosts and plugins into a folder and returns what was seen; compilers are CXX and CC, or c++ and cc.
"""

from __future__ import annotations

import os
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
DEFAULT, HIDDEN = '-DVISIBILITY=__attribute__((visibility("default")))', '-DVISIBILITY=__attribute__((visibility("hidden")))'


@dataclass(frozen=True)
class Seen:
    """folklore: what is said of it. seen: what the program printed, or how it ended."""

    probe: str
    how: str
    folklore: str
    seen: str


def compile_(folder: Path, name: str, source: str, *flags: str) -> Path:
    """One library or program out of one source."""
    c = source.endswith(".c")
    compiler = os.environ.get("CC", "cc") if c else os.environ.get("CXX", "c++")
    out = folder / name
    kind = ["-c"] if name.endswith(".o") else ["-shared"] if name.endswith(".so") else []
    language = ["-std=c11"] if c else ["-std=c++17"]
    command = [compiler, *language, "-O1", "-fPIC", *kind, str(HERE / source), "-o", str(out), *flags]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr)
    return out


def ran(program: Path, *arguments: object) -> str:
    """What it printed, line by line, and how it ended where that is not well."""
    done = subprocess.run([str(program), *map(str, arguments)], capture_output=True, text=True)
    end = "" if done.returncode == 0 else f"exit code {done.returncode}"
    if done.returncode < 0:
        end = f"the process ends: {signal.Signals(-done.returncode).name}"
    return "; ".join([*done.stdout.split("\n")[:-1], *([end] if end else [])])


def everything(folder: Path) -> list[Seen]:
    """All probes."""
    return [*heaps(folder), *odr(folder), *exceptions(folder), *identity(folder), string_abi(folder)]


def host(folder: Path, name: str = "host", *flags: str) -> Path:
    frames = compile_(folder, f"{name}-frames.o", "frames.c", "-fexceptions")
    return compile_(folder, name, "host.cpp", DEFAULT, *flags, str(frames), "-ldl")


def heaps(folder: Path) -> list[Seen]:
    """Two heaps: a plugin with the C++ runtime linked into it."""
    says = "memory that one side allocates and the other frees corrupts the heap"
    flags = {
        "runtime shared": (),
        "runtime linked in": ("-static-libstdc++", "-static-libgcc"),
        "runtime linked in and hidden": ("-static-libstdc++", "-static-libgcc", "-Wl,--exclude-libs,ALL"),
    }
    program = host(folder)
    return [
        Seen("two heaps", how, says, ran(program, "heaps", "local", compile_(folder, f"heap{i}.so", "plugin.cpp", DEFAULT, *more)))
        for i, (how, more) in enumerate(flags.items())
    ]


def odr(folder: Path) -> list[Seen]:
    """One inline function with two bodies, and a static inside of one."""
    says = "the loader silently keeps one of two definitions"
    builds = {
        "default visibility": ("-O0",),  # inlining would hide it
        "no unique symbols": ("-O0", "-fno-gnu-unique"),
        "hidden": ("-O0", "-fvisibility=hidden", "-fvisibility-inlines-hidden"),
    }
    program, found = host(folder), []
    for i, (how, more) in enumerate(builds.items()):
        if "-fno-gnu-unique" in more and "clang" in os.environ.get("CXX", ""):
            continue
        pair = [compile_(folder, f"odr{i}{who}.so", "plugin.cpp", DEFAULT, f"-DWHO={who}", *more) for who in (1, 2)]
        for flag in ("local", "global"):
            found.append(Seen("ODR merge", f"{how}, RTLD_{flag.upper()}", says, ran(program, "odr", flag, *pair)))
    return found


def exceptions(folder: Path) -> list[Seen]:
    """An exception that leaves the plugin."""
    says = "an exception across the boundary is undefined, and ends the process at best"
    plugin = compile_(folder, "throws.so", "plugin.cpp", DEFAULT)
    tables = host(folder)
    bare = compile_(folder, "bare-frames.o", "frames.c", "-fno-exceptions", "-fno-asynchronous-unwind-tables", "-fno-unwind-tables")
    without = compile_(folder, "bare", "host.cpp", DEFAULT, str(bare), "-ldl")
    return [
        Seen("exceptions", "straight into a C++ host", says, ran(tables, "plain", "local", plugin)),
        Seen("exceptions", "through a frame of C with unwind tables", says, ran(tables, "c", "local", plugin)),
        Seen("exceptions", "through a frame of C without them", says, ran(without, "c", "local", plugin)),
        Seen("exceptions", "stopped by the plugin's own shim", says, ran(tables, "shim", "local", plugin)),
    ]


def identity(folder: Path) -> list[Seen]:
    """The same class, compiled into both sides."""
    says = "a class in two libraries is two types: dynamic_cast across them fails"
    builds = {
        "default visibility": (DEFAULT, ()),
        "default visibility, -Bsymbolic": (DEFAULT, ("-Wl,-Bsymbolic",)),
        "hidden": (HIDDEN, ()),
    }
    program, found = host(folder, "typed", "-rdynamic"), []
    for i, (how, (visibility, more)) in enumerate(builds.items()):
        plugin = compile_(folder, f"typed{i}.so", "plugin.cpp", visibility, *more)
        for flag in ("local", "global"):
            found.append(Seen("type identity", f"{how}, RTLD_{flag.upper()}", says, ran(program, "identity", flag, plugin)))
    return found


def string_abi(folder: Path) -> Seen:
    """std::string of one ABI asked for, of the other supplied: the loud one."""
    (folder / "takes.cpp").write_text("#include <string>\nint takes(const std::string &s) { return (int)s.size(); }\n")
    (folder / "gives.cpp").write_text('#include <string>\nint takes(const std::string &);\nint main() { return takes("x"); }\n')
    compiler = os.environ.get("CXX", "c++")
    subprocess.run([compiler, "-c", "-D_GLIBCXX_USE_CXX11_ABI=0", "takes.cpp"], cwd=folder, check=True)
    done = subprocess.run([compiler, "gives.cpp", "takes.o", "-o", "abi"], cwd=folder, capture_output=True, text=True)
    line = next((x for x in done.stderr.splitlines() if "undefined" in x), "linked")
    seen = "refused by the linker: undefined reference" if "undefined reference" in line or "undefined symbol" in line else line
    return Seen("std::string ABI", "old ABI in the library, new in the program", "it fails when it is linked", seen)
