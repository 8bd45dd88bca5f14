"""The machine code of the built engine: its symbols, and how many bytes of text each part has. Reads the library's file only.

Text means functions as the symbol table tells them: no rodata, no unwind tables, no padding between functions.
"""

from __future__ import annotations

import re
import struct
from collections import defaultdict
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import median

from . import _engine
from .errors import ToolError, explain

FUNCTION, FILE, LOCAL = 2, 4, 0
SYMTAB = 2
HANDLER = re.compile(r"dl_((?!packed)[a-z]+)_([a-z]+)_(\d+)")


@dataclass(frozen=True)
class Symbol:
    """A function: its name, its address in the library, its size in bytes, and the source file where it is told."""

    name: str
    address: int
    size: int
    file: str


@dataclass(frozen=True)
class Section:
    """A part of the file: its name, address, offset in the file and size in bytes."""

    name: str
    kind: int
    address: int
    offset: int
    size: int
    link: int


def library() -> Path:
    """The file of the engine that is loaded."""
    return Path(str(_engine.__file__))


@cache
def sections(path: Path) -> tuple[Section, ...]:
    """The sections of a 64-bit little-endian ELF file; ToolError for anything else."""
    data = path.read_bytes()
    if data[:6] != b"\x7fELF\x02\x01":
        raise ToolError(explain("not a 64-bit ELF file", path.name, remedy="machine code is read on Linux only"))
    (start,) = struct.unpack_from("<Q", data, 0x28)
    width, count, names = struct.unpack_from("<HHH", data, 0x3A)
    raw = [struct.unpack_from("<IIQQQQIIQQ", data, start + width * i) for i in range(count)]
    text = raw[names][4]
    return tuple(Section(_text(data, text + r[0]), r[1], r[3], r[4], r[5], r[6]) for r in raw)


@cache
def symbols(path: Path) -> tuple[Symbol, ...]:
    """Its functions, by address. ToolError where the symbol table was stripped."""
    data, parts = path.read_bytes(), sections(path)
    table = next((s for s in parts if s.kind == SYMTAB), None)
    if table is None:
        raise ToolError(explain("the symbol table was stripped", path.name, remedy="build without strip"))
    names = parts[table.link].offset
    found, file = [], ""
    for at in range(table.offset, table.offset + table.size, 24):
        name, info, _, _, value, size = struct.unpack_from("<IBBHQQ", data, at)
        if info & 15 == FILE:  # the local symbols of that file follow
            file = _text(data, names + name)
        elif info & 15 == FUNCTION and size:
            found.append(Symbol(_text(data, names + name), value, size, file if info >> 4 == LOCAL else ""))
    return tuple(sorted(found, key=lambda s: s.address))


def _text(data: bytes, at: int) -> str:
    return data[at : data.index(b"\0", at)].decode("ascii", "replace")


def code_sizes(path: Path | None = None) -> dict[str, dict[str, float]]:
    """Per "body size": bytes of one handler's code (median, least, most) and how many there are; empty where it cannot be told."""
    try:
        known = symbols(path or library())
    except (ToolError, OSError):
        return {}
    found = defaultdict(list)
    for symbol in known:
        if match := HANDLER.fullmatch(symbol.name):
            found[f"{match[1]} {match[2]}"].append(symbol.size)
    return {
        name: {"bytes": median(sizes), "least": min(sizes), "most": max(sizes), "handlers": len(sizes)}
        for name, sizes in sorted(found.items())
    }


def text_bytes(path: Path | None = None) -> dict[str, int]:
    """Bytes of text by what it is for: "bodies" and "predicates" of handlers, "loops" of arms, "rest", and "section", the whole
    .text with the padding between functions."""
    path = path or library()
    total = {"bodies": 0, "predicates": 0, "loops": 0, "rest": 0}
    for symbol in symbols(path):
        total[_kind(symbol.name)] += symbol.size
    total["section"] = next(s.size for s in sections(path) if s.name == ".text")
    return total


def _kind(name: str) -> str:
    if HANDLER.fullmatch(name):
        return "bodies"
    if re.fullmatch(r"dl_\w+_match_\d+", name):
        return "predicates"
    return "loops" if re.search(r"_(timed_\d|count|sample|results)(\.|$)", name) else "rest"


def arm_bytes(arm: str, body: str = "chain", size: str = "fat", path: Path | None = None) -> int | None:
    """Bytes of one of an arm's timed loops, the dispatch with the loop around it; None where it has none for that body."""
    file = arm.replace("-", "_") + ".c"
    for symbol in symbols(path or library()):
        if symbol.file == file and symbol.name in ("loops_timed_0", f"loops_{body}_{size}_timed_0"):
            return symbol.size
    return None
