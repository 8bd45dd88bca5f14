"""A plugin as a host sees it, and the packets it is given."""

from __future__ import annotations

import ctypes as c
import os
import random
from collections.abc import Callable
from functools import cached_property

MAGIC, HIGHEST, LATEST, CAP, LEVEL_1 = 0x31504C44, 1000, 2, 4096, 72
OK, MATCH, FAILED = 0, 1, -1
PAYLOAD = 24
PAGE = os.sysconf("SC_PAGESIZE")
libc = c.CDLL(None, use_errno=True)
libc.mmap.restype = c.c_void_p
libc.mmap.argtypes = [c.c_void_p, c.c_size_t, c.c_int, c.c_int, c.c_int, c.c_long]
libc.mprotect.argtypes = [c.c_void_p, c.c_size_t, c.c_int]
libc.munmap.argtypes = [c.c_void_p, c.c_size_t]


class View(c.Structure):
    _fields_ = (
        ("bytes", c.c_void_p), ("size", c.c_uint64), ("key", c.c_uint16), ("length", c.c_uint16), ("flow", c.c_uint32),
    )  # fmt: skip


class Batch(c.Structure):
    _fields_ = (
        ("views", c.c_void_p), ("view_stride", c.c_uint64), ("results", c.c_void_p), ("result_stride", c.c_uint64),
        ("count", c.c_uint64),
    )  # fmt: skip


Keys = c.CFUNCTYPE(c.c_uint32, c.c_void_p, c.c_uint32)
Create = c.CFUNCTYPE(c.c_int32, c.c_void_p)
Destroy = c.CFUNCTYPE(None, c.c_void_p)
Process = c.CFUNCTYPE(c.c_int32, c.c_void_p, c.POINTER(View), c.c_void_p)
Matches = c.CFUNCTYPE(c.c_int32, c.c_void_p, c.POINTER(View))
ProcessBatch = c.CFUNCTYPE(c.c_int32, c.c_void_p, c.POINTER(Batch))


class Table(c.Structure):
    _fields_ = (
        ("magic", c.c_uint32), ("abi_version", c.c_uint32), ("struct_size", c.c_uint64), ("oldest_host", c.c_uint32),
        ("reserved", c.c_uint32), ("name", c.c_void_p), ("claimed_keys", Keys), ("create", Create), ("destroy", Destroy),
        ("process", Process), ("matches", Matches), ("process_batch", ProcessBatch),
    )  # fmt: skip


class Broken(Exception):
    """A rule that the plugin breaks."""


class NotAsked(Exception):
    """A rule about something that the plugin has not."""


def need(holds: bool, detail: str) -> None:
    if not holds:
        raise Broken(detail)


class Plugin:
    """The plugin as a host sees it; read the table only as far as its own size says.

    Loaded when it is first used, so that a case which compares before and after sees what loading itself changes: constructors,
    and the start-up code that -ffast-math links in to have denormals flushed.
    """

    def __init__(self, path: str) -> None:
        self.path = path

    @cached_property
    def entry(self) -> Callable[[int], int | None]:
        entry = c.CDLL(self.path, mode=os.RTLD_NOW | os.RTLD_LOCAL).dispatchlab_plugin_entry
        entry.restype, entry.argtypes = c.c_void_p, [c.c_uint32]
        return entry

    def address(self, level: int = LATEST) -> int:
        at = self.entry(level) or 0
        need(at != 0, f"the entry point returns NULL for a host of level {level}")
        return at

    def table(self) -> Table:
        at = self.address()
        prefix = Table.from_buffer_copy(c.string_at(at, 16).ljust(c.sizeof(Table), b"\0"))
        size = min(int(prefix.struct_size), c.sizeof(Table))
        return Table.from_buffer_copy(c.string_at(at, max(size, 16)).ljust(c.sizeof(Table), b"\0"))

    def keys(self) -> list[int]:
        t = self.table()
        count = t.claimed_keys(None, 0)
        need(1 <= count <= 65536, f"{count} keys")
        room = (c.c_uint16 * count)()
        need(t.claimed_keys(c.addressof(room), count) == count, "the number of keys changes")
        return list(room)

    def instance(self) -> c.c_void_p:
        slot = c.c_void_p()
        status = self.table().create(c.addressof(slot))
        need(status == OK, f"create returns {status}")
        return slot

    def process(self, it: c.c_void_p, data: bytes, key: int, size: int | None = None) -> tuple[int, int]:
        buffer = c.create_string_buffer(data, max(len(data), 1))
        view = View(c.addressof(buffer), len(data) if size is None else size, key, 64, 1)
        result = c.c_uint32(0)
        status = self.table().process(it, c.byref(view), c.addressof(result))
        return status, result.value if status == OK else 0


def packets(n: int, seed: int = 1) -> list[bytes]:
    draw = random.Random(seed)
    return [draw.randbytes(PAYLOAD) for _ in range(n)]


def guarded(data: bytes, after: bool = True, protection: int = 3) -> int:
    """The address of a copy of data that ends right before (after=False: begins right after) memory that cannot be touched."""
    pages = 1 + max(1, -(-len(data) // PAGE))
    base = libc.mmap(None, (pages + 1) * PAGE, 3, 0x22, -1, 0)
    need(base not in (None, c.c_void_p(-1).value), "no memory")
    first, last = base, base + pages * PAGE
    at = last - len(data) if after else first + PAGE
    c.memmove(at, data, len(data))
    libc.mprotect(first, PAGE, 0)
    libc.mprotect(last, PAGE, 0)
    if protection != 3:
        libc.mprotect(first + PAGE, (pages - 1) * PAGE, protection)
    return int(at)


def unmap(*addresses: int) -> None:
    """Take the page away in which each of these guarded() copies lies."""
    for at in addresses:
        libc.munmap(at // PAGE * PAGE, PAGE)


def run(p: Plugin, it: c.c_void_p, at: int | None, size: int, key: int, prefill: int = 0) -> tuple[int, int]:
    view = View(at, size, key, 64, 1)
    before = bytes(view)
    room = (c.c_uint32 * 5)(*[0xC0FFEE00 + i for i in range(5)])
    room[2] = prefill
    status = p.table().process(it, c.byref(view), c.addressof(room) + 8)
    need(bytes(view) == before, "the view itself was written to")
    canaries = [room[i] for i in (0, 1, 3, 4)]
    need(canaries == [0xC0FFEE00 + i for i in (0, 1, 3, 4)], "memory beside the result was written to")
    return status, room[2]


def everything(p: Plugin) -> None:
    """A short life: two instances, every function, both destroyed."""
    keys, both = p.keys(), [p.instance(), p.instance()]
    for n, data in enumerate(packets(64)):
        p.process(both[n % 2], data, keys[n % len(keys)])
    for it in both:
        p.table().destroy(it)


CASES: dict[str, tuple[str, Callable[[Plugin], None]]] = {}


def rule(text: str) -> Callable[[Callable[[Plugin], None]], Callable[[Plugin], None]]:
    def add(case: Callable[[Plugin], None]) -> Callable[[Plugin], None]:
        CASES[case.__name__.replace("_", "-")] = (text, case)
        return case

    return add


def singles(p: Plugin, data: list[bytes]) -> list[int]:
    it, key = p.instance(), p.keys()[0]
    return [p.process(it, d, key)[1] for d in data]


def lend(function: Callable[..., int], it: c.c_void_p, data: bytes, key: int, *more: int) -> None:
    """Call it with a packet and a view that are gone afterwards."""
    at = guarded(data)
    view = guarded(bytes(View(at, len(data), key, 64, 1)))
    function(it, c.cast(view, c.POINTER(View)), *more)
    unmap(at, view, *more)
