"""What a plugin file is, read out of its bytes: a file that is refused here has run none of its code."""

from __future__ import annotations

import hashlib
import os
import stat
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from .. import _engine
from ..errors import PluginError

ENTRY = "dispatchlab_plugin_entry"
LARGEST = 1 << 30
SANITIZERS = ("libasan", "libtsan", "libubsan", "libmsan", "liblsan", "libhwasan", "libclang_rt.")
CLASSES = {1: "a 32-bit library", 2: "a 64-bit library"}
ENDIANS = {1: "little-endian", 2: "big-endian"}
TYPES = {1: "a relocatable object", 2: "an executable", 4: "a core dump"}
MACHINES = {
    2: "SPARC", 3: "x86", 8: "MIPS", 20: "PowerPC", 21: "PowerPC64", 22: "s390x", 40: "ARM", 62: "x86-64", 183: "AArch64",
    243: "RISC-V", 258: "LoongArch",
}  # fmt: skip
"""System V ABI and the registries of its processor supplements: values of e_machine."""


@dataclass(frozen=True)
class Inspection:
    """What was seen without loading. sha256 of the bytes; needed, undefined, exported: names; level and oldest_host of the
    plugin's note, 0 without one; skipped: why nothing else was looked at, on systems whose libraries are not ELF."""

    path: Path
    sha256: str
    needed: tuple[str, ...] = ()
    undefined: tuple[str, ...] = ()
    exported: tuple[str, ...] = ()
    level: int = 0
    oldest_host: int = 0
    skipped: str = ""


def inspect(path: str | os.PathLike[str], *, host_level: int, allow_writable: bool = False) -> Inspection:
    """Inspect a file that is to be loaded. Raises PluginError, of stage "file" or "inspect"; nothing of the file is run."""
    real = canonical(path)
    check_file(real, allow_writable)
    data = real.read_bytes()
    digest = hashlib.sha256(data).hexdigest()
    if not sys.platform.startswith(("linux", "freebsd", "openbsd", "netbsd")):
        return Inspection(real, digest, skipped=f"inspection reads ELF and was skipped on {sys.platform}")
    found = _engine.plugin_inspect(data)
    if found["status"] != "ok":
        raise _refused(real, found, data)
    seen = Inspection(
        real, digest, tuple(found["needed"]), tuple(found["undefined"]), tuple(found["exported"]),
        found["note_level"], found["note_oldest_host"],
    )  # fmt: skip
    _check_entry(seen)
    _check_note(seen, host_level)
    _check_sanitizers(seen)
    _check_symbols(seen, [*found["runpath"], *found["rpath"]])
    return seen


def canonical(path: str | os.PathLike[str]) -> Path:
    """The file behind the path, links resolved: never a name that the dynamic linker would search for."""
    try:
        return Path(path).expanduser().resolve(strict=True)
    except (OSError, RuntimeError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise PluginError(str(path), "file", "the file cannot be found", "a path to a shared library", why) from None


def check_file(real: Path, allow_writable: bool) -> None:
    """A regular, readable file that nobody else can exchange, on a file system that lets its code run."""
    try:
        facts = real.stat()
        room = real.parent.stat()
        flags = os.statvfs(real).f_flag
    except OSError as error:
        raise PluginError(real, "file", "the file cannot be read", "a readable file", error.strerror or "") from None
    if not stat.S_ISREG(facts.st_mode):
        kind = "a folder" if stat.S_ISDIR(facts.st_mode) else "a special file"
        raise PluginError(real, "file", "not a file", "a shared library", kind)
    if not os.access(real, os.R_OK):
        raise PluginError(real, "file", "the file cannot be read", "a readable file", "permission denied")
    if facts.st_size > LARGEST:
        raise PluginError(real, "file", "the file is too large", f"at most {LARGEST} bytes", f"{facts.st_size}")
    if flags & os.ST_NOEXEC:
        raise PluginError(real, "file", "code may not run from here", "a file system without noexec", "noexec", "copy it elsewhere")
    if allow_writable:
        return
    for what, mode in (("file", facts.st_mode), ("folder", room.st_mode & ~(stat.S_IWOTH if room.st_mode & stat.S_ISVTX else 0))):
        if mode & stat.S_IWOTH:
            got = f"mode {stat.S_IMODE(mode):o}"
            raise PluginError(
                real, "file", f"others may write the {what}", "write permission for its owner", got,
                f"chmod o-w the {what}, or allow_writable=True",
            )  # fmt: skip


def _refused(real: Path, found: dict[str, Any], data: bytes) -> PluginError:
    status, value = found["status"], found["found"]
    host = os.uname().machine
    text = {
        "not ELF": (
            "not a shared library",
            "an ELF file",
            "an empty file" if not data else "text" if data[:512].isascii() else f"bytes {data[:4].hex()}",
        ),
        "class": ("of another word size", CLASSES[2 if sys.maxsize > 2**32 else 1], CLASSES.get(value, f"class {value}")),
        "endian": ("of another byte order", sys.byteorder + "-endian", ENDIANS.get(value, f"byte order {value}")),
        "machine": ("for another processor", host, MACHINES.get(value, f"machine {value}")),
        "type": ("not a shared library", "a shared library", TYPES.get(value, f"ELF type {value}")),
        "truncated": ("the file is cut short", "all that its headers announce", f"{len(data)} bytes"),
        "malformed": ("the ELF file is malformed", "headers and tables that fit together", "some that do not"),
    }[status]
    remedy = "compile with -shared -fPIC" if status == "type" else ""
    return PluginError(real, "inspect", *text, remedy)


def _check_entry(seen: Inspection) -> None:
    if ENTRY in seen.exported:
        return
    near = [name for name in seen.exported if "entry" in name or "plugin" in name][:3]
    raise PluginError(
        seen.path, "inspect", "the entry point is not exported", ENTRY, ", ".join(near) or "no such symbol",
        "define it with DISPATCHLAB_PLUGIN_DEFINE(table)",
    )  # fmt: skip


def _check_note(seen: Inspection, host_level: int) -> None:
    if seen.level and seen.oldest_host > host_level:
        raise PluginError(
            seen.path, "inspect", "the plugin needs a newer host", f"a plugin for hosts of level {host_level}",
            f"its note asks for level {seen.oldest_host}",
        )  # fmt: skip


def _check_sanitizers(seen: Inspection) -> None:
    for name in seen.needed:
        if name.startswith(SANITIZERS) and not _engine.symbol_known("__asan_init"):
            raise PluginError(
                seen.path, "inspect", "needs a sanitizer's runtime, which must be loaded before everything else",
                "a plugin without one", name, "compile without -fsanitize, or start Python with LD_PRELOAD",
            )  # fmt: skip


def _check_symbols(seen: Inspection, run_paths: list[str]) -> None:
    """Whether everything that the file leaves open will be found: in the process, or in the libraries that it needs."""
    missing = [name for name in seen.undefined if not _engine.symbol_known(name)]
    supplied: set[str] = set()
    todo, done = list(seen.needed), set[str]()
    origin = seen.path.parent
    while missing and todo:
        name = todo.pop()
        if name in done:
            continue
        done.add(name)
        file = next(iter(_candidates(name, run_paths, origin)), None)
        if file is None:
            raise PluginError(seen.path, "inspect", "a library that it needs is not found", name, "no such file")
        exported, needed = _library(str(file))
        supplied |= exported
        todo += needed
    if missing := [name for name in missing if name not in supplied]:
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        raise PluginError(
            seen.path, "inspect", "nothing supplies a symbol that it uses", "every symbol in the file or in a library it needs",
            f"{missing[0]}{more}", "link with -Wl,-z,defs to see this when it is built",
        )  # fmt: skip


@cache
def _library(file: str) -> tuple[frozenset[str], tuple[str, ...]]:
    found = _engine.plugin_inspect(Path(file).read_bytes())
    if found["status"] != "ok":
        return frozenset(), ()
    return frozenset(found["exported"]), tuple(found["needed"])


def _candidates(name: str, run_paths: list[str], origin: Path) -> Iterator[Path]:
    """Where the dynamic linker would look: ld.so(8), without hardware-specific folders."""
    folders = [p.replace("$ORIGIN", str(origin)).replace("${ORIGIN}", str(origin)) for r in run_paths for p in r.split(":")]
    folders += os.environ.get("LD_LIBRARY_PATH", "").split(":")
    folders += _system_folders()
    for folder in folders:
        if folder and (file := Path(folder, name)).is_file():
            yield file


@cache
def _system_folders() -> list[str]:
    folders = []
    for conf in [Path("/etc/ld.so.conf"), *sorted(Path("/etc/ld.so.conf.d").glob("*.conf"))]:
        if conf.is_file():
            folders += [line.strip() for line in conf.read_text(errors="replace").splitlines() if line.startswith("/")]
    machine = os.uname().machine
    return [*folders, f"/lib/{machine}-linux-gnu", f"/usr/lib/{machine}-linux-gnu", "/lib64", "/usr/lib64", "/lib", "/usr/lib"]
