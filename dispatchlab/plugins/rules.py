"""The rules of plugin.h as cases that run. This file is a program of its own, of the standard library alone: it loads one plugin, and
forks for every case, so that whatever the plugin does in one case is over with it.

    python rules.py PLUGIN SECONDS [CASE ...]

prints a line of JSON per case: {"case", "rule", "outcome": "holds" | "broken" | "not asked", "detail"}. The last one says
whether all of them together came to an end in time.
"""

from __future__ import annotations

import contextlib
import ctypes as c
import json
import locale
import os
import random
import resource
import select
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from functools import cached_property
from pathlib import Path

MAGIC, HIGHEST, LATEST, CAP, LEVEL_1 = 0x31504C44, 1000, 2, 4096, 72
OK, MATCH, FAILED = 0, 1, -1
PAYLOAD = 24
ALTOGETHER = 40.0  # seconds for all cases; a plugin that never comes back would else take the limit of one case in each
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


# --- the rules ------------------------------------------------------------------------------------------------------

CASES: dict[str, tuple[str, Callable[[Plugin], None]]] = {}


def rule(text: str) -> Callable[[Callable[[Plugin], None]], Callable[[Plugin], None]]:
    def add(case: Callable[[Plugin], None]) -> Callable[[Plugin], None]:
        CASES[case.__name__.replace("_", "-")] = (text, case)
        return case

    return add


@rule("the entry point returns a table, to hosts of every level")
def entry(p: Plugin) -> None:
    for level in (1, 2, 3, HIGHEST):
        p.address(level)


@rule("the entry point returns the same table every time")
def entry_stable(p: Plugin) -> None:
    need(p.address() == p.address(), "another address the second time")
    before = c.string_at(p.address(), 16)
    everything(p)
    need(c.string_at(p.address(), 16) == before, "the prefix changes")


@rule("magic is DISPATCHLAB_PLUGIN_MAGIC")
def magic(p: Plugin) -> None:
    need(p.table().magic == MAGIC, f"0x{p.table().magic:08x}")


@rule("abi_version is 1 to 1000")
def abi_version(p: Plugin) -> None:
    need(1 <= p.table().abi_version <= HIGHEST, str(p.table().abi_version))


@rule("struct_size is at most 4096")
def struct_size_cap(p: Plugin) -> None:
    need(p.table().struct_size <= CAP, str(p.table().struct_size))


@rule("struct_size is a multiple of 8")
def struct_size_multiple(p: Plugin) -> None:
    need(p.table().struct_size % 8 == 0, str(p.table().struct_size))


@rule("struct_size holds what the level promises")
def struct_size_level(p: Plugin) -> None:
    least = LEVEL_1 if p.table().abi_version == 1 else c.sizeof(Table)
    need(p.table().struct_size >= least, f"{p.table().struct_size}, less than {least}")


@rule("oldest_host is between 1 and abi_version")
def oldest_host(p: Plugin) -> None:
    need(1 <= p.table().oldest_host <= p.table().abi_version, str(p.table().oldest_host))


@rule("reserved is 0")
def reserved(p: Plugin) -> None:
    need(p.table().reserved == 0, str(p.table().reserved))


@rule("name ends within 63 bytes")
def name(p: Plugin) -> None:
    at = p.table().name
    need(bool(at), "NULL")
    need(b"\0" in c.string_at(at, 64), "no end within 64 bytes")
    need(c.string_at(at) != b"", "an empty name")


@rule("name is UTF-8")
def name_utf8(p: Plugin) -> None:
    try:
        c.string_at(p.table().name, 64).split(b"\0")[0].decode("utf-8")
    except UnicodeDecodeError as error:
        raise Broken(str(error)) from None


@rule("the required functions are there")
def required(p: Plugin) -> None:
    t = p.table()
    for function in ("claimed_keys", "create", "destroy", "process"):
        need(bool(getattr(t, function)), f"{function} is NULL")


@rule("1 to 65536 keys are claimed")
def keys_count(p: Plugin) -> None:
    count = p.table().claimed_keys(None, 0)
    need(1 <= count <= 65536, str(count))


@rule("the number of keys is the same every time")
def keys_number_stable(p: Plugin) -> None:
    seen = {p.table().claimed_keys(None, 0) for _ in range(5)}
    need(len(seen) == 1, f"{sorted(seen)}")
    (count,) = seen
    room = (c.c_uint16 * max(count, 1))()
    got = p.table().claimed_keys(c.addressof(room), count)
    need(got == count, f"{count} announced, {got} written")


@rule("the keys are the same every time")
def keys_stable(p: Plugin) -> None:
    first = p.keys()
    need(all(p.keys() == first for _ in range(3)), "others")


@rule("the keys are distinct")
def keys_distinct(p: Plugin) -> None:
    keys = p.keys()
    need(len(set(keys)) == len(keys), f"{len(keys) - len(set(keys))} twice")


@rule("claimed_keys stays within its room")
def keys_within_room(p: Plugin) -> None:
    count = len(p.keys())
    at = guarded(b"\xa5\xa5" * count)
    need(p.table().claimed_keys(at, count) == count, "the number changes")
    at = guarded(b"\xa5\xa5" * count, after=False)
    p.table().claimed_keys(at, count)


@rule("the keys do not depend on instances")
def keys_without_instance(p: Plugin) -> None:
    before = p.keys()
    it = p.instance()
    need(p.keys() == before, "others while an instance lives")
    p.table().destroy(it)
    need(p.keys() == before, "others after an instance was destroyed")


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE


def grows(work: Callable[[], object], times: int) -> int:
    for _ in range(times // 10):
        work()
    before = resident()
    for _ in range(times):
        work()
    return resident() - before


@rule("claimed_keys allocates nothing for good")
def keys_no_leak(p: Plugin) -> None:
    room = (c.c_uint16 * len(p.keys()))()
    t = p.table()
    grown = grows(lambda: t.claimed_keys(c.addressof(room), len(room)), 20000)
    need(grown < 1 << 19, f"{grown >> 10} KiB more after 20000 calls")


@rule("create makes an instance")
def create(p: Plugin) -> None:
    p.table().destroy(p.instance())


@rule("create writes *instance and nothing beside it")
def create_slot(p: Plugin) -> None:
    filler = 0xA5A5A5A5A5A5A5A5
    room = (c.c_uint64 * 3)(filler, filler, filler)
    need(p.table().create(c.addressof(room) + 8) == OK, "create fails")
    need(room[0] == filler and room[2] == filler, "memory beside *instance was written to")
    need(room[1] != filler, "*instance was not written")
    p.table().destroy(room[1])


@rule("what is created and destroyed leaves nothing behind")
def create_no_leak(p: Plugin) -> None:
    t = p.table()
    grown = grows(lambda: t.destroy(p.instance()), 5000)
    need(grown < 1 << 18, f"{grown >> 10} KiB more after 5000 instances")


@rule("instances do not disturb one another")
def create_two(p: Plugin) -> None:
    key, data = p.keys()[0], packets(50)
    alone = p.instance()
    wanted = [p.process(alone, d, key) for d in data]
    p.table().destroy(alone)
    a, b = p.instance(), p.instance()
    mixed = [(p.process(a, d, key), p.process(b, e, key)) for d, e in zip(data, reversed(data), strict=True)]
    need([m[0] for m in mixed] == wanted, "the first instance answers otherwise beside a second")
    p.table().destroy(b)
    need([p.process(a, d, key) for d in data] == wanted, "the first answers otherwise after the second is destroyed")
    p.table().destroy(a)


@rule("process returns DISPATCHLAB_OK or DISPATCHLAB_FAILED")
def process_status(p: Plugin) -> None:
    it = p.instance()
    for key in p.keys()[:64]:
        for data in packets(50, key):
            status, _ = p.process(it, data, key)
            need(status in (OK, FAILED), f"{status} for key {key}")


@rule("one instance gives one packet one result")
def process_deterministic(p: Plugin) -> None:
    it, key = p.instance(), p.keys()[0]
    first = [p.process(it, d, key) for d in packets(200)]
    need([p.process(it, d, key) for d in packets(200)] == first, "another result for the same packet")


@rule("the result does not depend on what came before")
def process_order(p: Plugin) -> None:
    it, key, data = p.instance(), p.keys()[0], packets(200)
    first = {d: p.process(it, d, key) for d in data}
    random.Random(2).shuffle(data)
    need(all(p.process(it, d, key) == first[d] for d in data), "another result in another order")


@rule("two instances give one packet one result")
def process_instances(p: Plugin) -> None:
    a, b, key = p.instance(), p.instance(), p.keys()[0]
    need(all(p.process(a, d, key) == p.process(b, d, key) for d in packets(200)), "the instances differ")


@rule("the result is written where the status is OK")
def process_writes(p: Plugin) -> None:
    it, key = p.instance(), p.keys()[0]
    for data in packets(20):
        at = guarded(data)
        (s, a), (_, b) = run(p, it, at, PAYLOAD, key, 1), run(p, it, at, PAYLOAD, key, 2)
        need(s != OK or a == b, "OK, and the result is what stood there before")


@rule("the result is left alone where the status is FAILED")
def process_leaves(p: Plugin) -> None:
    it, key, failed = p.instance(), p.keys()[0], 0
    for size, data in [(0, b""), *((PAYLOAD, d) for d in packets(100))]:
        status, value = run(p, it, guarded(data) if data else None, size, key, 0x5EED)
        failed += status == FAILED
        need(status != FAILED or value == 0x5EED, "FAILED, and the result was written")
    if not failed:
        raise NotAsked("nothing that it was given fails")


@rule("nothing is written but the result")
def process_canaries(p: Plugin) -> None:
    it, key = p.instance(), p.keys()[0]
    for data in packets(20):
        run(p, it, guarded(data), PAYLOAD, key)


@rule("the packet is not written to")
def process_read_only(p: Plugin) -> None:
    it, key = p.instance(), p.keys()[0]
    for data in packets(8):
        run(p, it, guarded(data, protection=1), PAYLOAD, key)


@rule("nothing beyond the packet's end is read, at any size")
def process_no_overread(p: Plugin) -> None:
    it, key = p.instance(), p.keys()[0]
    for size in range(PAYLOAD + 1):
        run(p, it, guarded(packets(1)[0][:size]), size, key)


@rule("nothing before the packet's beginning is read")
def process_no_underread(p: Plugin) -> None:
    it, key = p.instance(), p.keys()[0]
    for size in (1, 7, PAYLOAD):
        run(p, it, guarded(packets(1)[0][:size], after=False), size, key)


@rule("an empty packet without bytes has a status")
def process_empty(p: Plugin) -> None:
    it = p.instance()
    for key in p.keys()[:16]:
        status, _ = run(p, it, None, 0, key)
        need(status in (OK, FAILED), str(status))


@rule("a long packet has a status")
def process_long(p: Plugin) -> None:
    status, _ = run(p, p.instance(), guarded(bytes(9000)), 9000, p.keys()[0])
    need(status in (OK, FAILED), str(status))


@rule("a packet may stand at any address")
def process_unaligned(p: Plugin) -> None:
    it, key, data = p.instance(), p.keys()[0], packets(1)[0]
    room = c.create_string_buffer(64)
    seen = set()
    for shift in range(8):
        c.memmove(c.addressof(room) + shift, data, PAYLOAD)
        seen.add(run(p, it, c.addressof(room) + shift, PAYLOAD, key))
    need(len(seen) == 1, "the result depends on the address")


@rule("the result does not depend on what lies beside the packet")
def process_neighbours(p: Plugin) -> None:
    it, key, data = p.instance(), p.keys()[0], packets(1)[0]
    seen = set()
    for filler in (b"\0", b"\xff"):
        room = c.create_string_buffer(filler * 32 + data + filler * 32)
        seen.add(run(p, it, c.addressof(room) + 32, PAYLOAD, key))
    need(len(seen) == 1, "it does")


def lend(function: Callable[..., int], it: c.c_void_p, data: bytes, key: int, *more: int) -> None:
    """Call it with a packet and a view that are gone afterwards."""
    at = guarded(data)
    view = guarded(bytes(View(at, len(data), key, 64, 1)))
    function(it, c.cast(view, c.POINTER(View)), *more)
    unmap(at, view, *more)


@rule("packet, view and result are not kept beyond the call")
def process_retention(p: Plugin) -> None:
    it, key = p.instance(), p.keys()[0]
    for one in packets(6):
        lend(p.table().process, it, one, key, guarded(bytes(4)))
    p.table().destroy(it)


@rule("a key that was not claimed is no reason to crash")
def process_other_key(p: Plugin) -> None:
    keys = set(p.keys())
    other = next((k for k in range(65536) if k not in keys), None)
    if other is None:
        raise NotAsked("every key is claimed")
    status, _ = p.process(p.instance(), packets(1)[0], other)
    need(status in (OK, FAILED), str(status))


def matching(p: Plugin) -> tuple[c.c_void_p, int]:
    if not p.table().matches:
        raise NotAsked("it has no matches")
    return p.instance(), p.keys()[0]


def match(p: Plugin, it: c.c_void_p, data: bytes, key: int) -> int:
    view = View(guarded(data, protection=1) if data else None, len(data), key, 64, 1)
    return int(p.table().matches(it, c.byref(view)))


@rule("matches returns DISPATCHLAB_MATCH or DISPATCHLAB_OK")
def matches_status(p: Plugin) -> None:
    it, key = matching(p)
    for first in range(256):
        got = match(p, it, bytes([first]) + bytes(23), key)
        need(got in (OK, MATCH), f"{got} for first byte {first}")


@rule("matches looks at the first byte of the payload only")
def matches_first_byte(p: Plugin) -> None:
    it, key = matching(p)
    for first in range(256):
        seen = {match(p, it, bytes([first]) + rest[:23], key) for rest in (bytes(23), b"\xff" * 23, packets(1)[0])}
        need(len(seen) == 1, f"other bytes decide for first byte {first}")


@rule("matches does not depend on the instance's history")
def matches_history(p: Plugin) -> None:
    it, key = matching(p)
    before = [match(p, it, bytes([b]) + bytes(23), key) for b in range(256)]
    for data in packets(100):
        p.process(it, data, key)
    need([match(p, it, bytes([b]) + bytes(23), key) for b in range(256)] == before, "it does")


@rule("matches accepts what a mask and a value of the first byte describe")
def matches_mask(p: Plugin) -> None:
    it, key = matching(p)
    for key in p.keys()[:16]:
        yes = [b for b in range(256) if match(p, it, bytes([b]) + bytes(23), key) == MATCH]
        need(bool(yes), f"nothing is accepted for key {key}")
        mask = 0xFF
        for b in yes:
            mask &= ~(b ^ yes[0]) & 0xFF
        need(len(yes) == 1 << (8 - mask.bit_count()), f"{len(yes)} first bytes that no mask describes, for key {key}")


@rule("matches keeps neither packet nor view beyond the call")
def matches_retention(p: Plugin) -> None:
    it, key = matching(p)
    for one in packets(6):
        lend(p.table().matches, it, one, key)
    p.table().destroy(it)


@rule("matches has an answer for an empty packet")
def matches_empty(p: Plugin) -> None:
    it, key = matching(p)
    need(match(p, it, b"", key) in (OK, MATCH), "another")


def batching(p: Plugin) -> tuple[c.c_void_p, int]:
    if p.table().abi_version < 2 or not p.table().process_batch:
        raise NotAsked("it has no process_batch")
    return p.instance(), p.keys()[0]


def batched(p: Plugin, data: list[bytes], stride: int = 4, more: int = 0, spare: int = 0) -> list[int]:
    """Results of one batch with these strides; the canaries between its elements are checked."""
    it, key = batching(p)
    size = c.sizeof(View) + more
    raw = b"".join(bytes(View(guarded(d, protection=1), len(d), key, 64, 1)) + b"\xa5" * more for d in data)
    results = guarded(b"\xa5" * (stride * len(data)))
    batch = Batch(guarded(raw, protection=1), size, results, stride, len(data))
    before = bytes(batch)
    status = p.table().process_batch(it, c.byref(batch))
    need(bytes(batch) == before, "the batch itself was written to")
    need(status in (OK, FAILED), f"status {status}")
    need(status == OK, "the batch fails")
    out = c.string_at(results, stride * len(data))
    for i in range(len(data)):
        need(out[i * stride + 4 : (i + 1) * stride] == b"\xa5" * (stride - 4), "memory between the results was written to")
    return [int.from_bytes(out[i * stride : i * stride + 4], sys.byteorder) for i in range(len(data))]


def singles(p: Plugin, data: list[bytes]) -> list[int]:
    it, key = p.instance(), p.keys()[0]
    return [p.process(it, d, key)[1] for d in data]


@rule("a batch gives what single packets do")
def batch_equals_single(p: Plugin) -> None:
    for n in (1, 2, 7, 64, 256):
        need(batched(p, packets(n)) == singles(p, packets(n)), f"other results in a batch of {n}")


@rule("a batch's results go where its stride says")
def batch_result_stride(p: Plugin) -> None:
    need(batched(p, packets(16), stride=24) == singles(p, packets(16)), "other results with a stride of 24")


@rule("a batch's views are where their stride says")
def batch_view_stride(p: Plugin) -> None:
    need(batched(p, packets(16), more=16) == singles(p, packets(16)), "other results with longer views")


@rule("an empty batch is done at once")
def batch_empty(p: Plugin) -> None:
    batched(p, [])


@rule("a batch honours the size of each packet")
def batch_sizes(p: Plugin) -> None:
    data = [packets(1)[0][:n] for n in range(1, PAYLOAD + 1)]
    need(batched(p, data) == singles(p, data), "other results for short packets")


@rule("nothing of a batch is kept beyond the call")
def batch_retention(p: Plugin) -> None:
    it, key = batching(p)
    for seed in range(4):
        data = [guarded(d) for d in packets(4, seed)]
        views = guarded(b"".join(bytes(View(at, PAYLOAD, key, 64, 1)) for at in data))
        results = guarded(bytes(4 * len(data)))
        batch = guarded(bytes(Batch(views, c.sizeof(View), results, 4, len(data))))
        p.table().process_batch(it, c.cast(batch, c.POINTER(Batch)))
        unmap(*data, views, results, batch)
    p.table().destroy(it)


@rule("no threads are left running")
def no_threads(p: Plugin) -> None:
    before = len(os.listdir("/proc/self/task"))
    everything(p)
    need(len(os.listdir("/proc/self/task")) <= before, "a thread was started")


def status_lines(*names: str) -> dict[str, str]:
    rows = (line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return {k: v.strip() for k, v in rows if k in names}


@rule("signal handlers and masks stay as they are")
def no_signals(p: Plugin) -> None:
    names = ("SigCgt", "SigIgn", "SigBlk")
    before = status_lines(*names)
    everything(p)
    after = status_lines(*names)
    need(after == before, ", ".join(k for k in names if after[k] != before[k]))


@rule("no timer is left running")
def no_timers(p: Plugin) -> None:
    everything(p)
    kinds = (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF)
    need(all(signal.getitimer(k) == (0.0, 0.0) for k in kinds), "a timer runs")


@rule("the locale stays as it is")
def no_locale(p: Plugin) -> None:
    locale.setlocale(locale.LC_ALL, "C")
    libc.setlocale.restype = c.c_char_p
    everything(p)
    got = libc.setlocale(6, None)
    need(got == b"C", str(got))


@rule("the rounding mode and the floating-point control stay as they are")
def no_rounding(p: Plugin) -> None:
    libm = c.CDLL("libm.so.6")

    def control() -> tuple[int, int]:
        env = (c.c_uint32 * 8)()
        libm.fegetenv(env)
        words = {"x86_64": env[7] & ~0x3F, "aarch64": env[0]}  # MXCSR without its sticky flags; FPCR
        return libm.fegetround(), words.get(os.uname().machine, 0)

    before = control()
    everything(p)
    after = control()
    need(after == before, f"control word 0x{before[1]:x} before, 0x{after[1]:x} after; rounding {before[0]}, {after[0]}")


@rule("the working directory, the umask and the environment stay as they are")
def no_process_state(p: Plugin) -> None:
    libc.getenv.restype = c.c_char_p
    before = os.getcwd(), status_lines("Umask"), libc.getenv(b"PATH"), libc.getenv(b"TZ")
    everything(p)
    need((os.getcwd(), status_lines("Umask"), libc.getenv(b"PATH"), libc.getenv(b"TZ")) == before, "changed")


@rule("no file is left open")
def no_files(p: Plugin) -> None:
    before = set(os.listdir("/proc/self/fd"))
    everything(p)
    left = set(os.listdir("/proc/self/fd")) - before
    need(len(left) <= 1, f"{len(left)} more")  # the listing itself opens one


@rule("nothing is printed")
def silent(p: Plugin) -> None:
    with tempfile.TemporaryFile() as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
        everything(p)
        libc.fflush(None)
        need(os.fstat(file.fileno()).st_size == 0, "something is")


@rule("no child process is started")
def no_children(p: Plugin) -> None:
    everything(p)
    try:
        need(os.waitpid(-1, os.WNOHANG) is None, "a child was started")
    except ChildProcessError:
        return


@rule("an instance may move to another thread")
def other_thread(p: Plugin) -> None:
    it, key, data = p.instance(), p.keys()[0], packets(20)
    here = [p.process(it, d, key) for d in data]
    there: list[tuple[int, int]] = []
    worker = threading.Thread(target=lambda: there.extend(p.process(it, d, key) for d in data))
    worker.start()
    worker.join()
    need(here == there, "other results there")


@rule("different instances may run at the same time")
def parallel_instances(p: Plugin) -> None:
    key, data = p.keys()[0], packets(300)
    wanted = [p.process(p.instance(), d, key) for d in data[:1]] and singles(p, data)
    found: list[list[int]] = []
    workers = [threading.Thread(target=lambda: found.append(singles(p, data))) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    need(found == [wanted] * 4, "other results in parallel")


@rule("many instances may live at the same time")
def many_instances(p: Plugin) -> None:
    alive = [p.instance() for _ in range(200)]
    for it in alive[::2] + alive[1::2]:
        p.table().destroy(it)


@rule("threads may end after the plugin ran in them")
def thread_end(p: Plugin) -> None:
    p.address()
    for _ in range(3):
        worker = threading.Thread(target=lambda: everything(p))
        worker.start()
        worker.join()


@rule("the process can end after everything was destroyed")
def ends(p: Plugin) -> None:
    everything(p)
    libc.exit.argtypes = [c.c_int]
    child = os.fork()
    if child == 0:
        libc.exit(0)  # with the destructors of the library
    deadline = time.monotonic() + 2
    while time.monotonic() < deadline:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            need(status == 0, f"a destructor at exit ends it with {status}")
            return
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    raise Broken("a destructor at exit does not come back")


# --- running them ---------------------------------------------------------------------------------------------------


def perform(path: str, case: Callable[[Plugin], None], to: int) -> None:
    """In the child: one case. What it says is its last word; a child that says nothing has been ended by the plugin."""
    word: tuple[str, str] = ("holds", "")
    try:
        case(Plugin(path))
    except Broken as error:
        word = ("broken", str(error))
    except NotAsked as error:
        word = ("not asked", str(error))
    except (OSError, AttributeError) as error:
        word = ("broken", str(error))
    os.write(to, json.dumps(word).encode()[:4000])
    os._exit(0)


def end(child: int) -> None:
    """The child and whatever it started."""
    for kill in (os.killpg, os.kill):
        with contextlib.suppress(ProcessLookupError):
            kill(child, signal.SIGKILL)


def judge(path: str, case: Callable[[Plugin], None], seconds: float) -> tuple[str, str]:
    """Run a case in a child process, for so long at most."""
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        os.setsid()  # so that what the plugin starts ends with it
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a crash leaves no file behind
        os.close(ours)
        null = os.open(os.devnull, os.O_RDWR)
        for fd in (0, 1, 2):
            os.dup2(null, fd)
        perform(path, case, theirs)
    os.close(theirs)
    ready, _, _ = select.select([ours], [], [], seconds)
    said = os.read(ours, 4096) if ready else b""
    os.close(ours)
    end(child)
    _, status = os.waitpid(child, 0)
    if said:
        outcome, detail = json.loads(said)
        return outcome, detail
    if not ready:
        return "broken", f"does not come back within {seconds:g} s"
    if os.WIFSIGNALED(status):
        return "broken", f"ends the process: {signal.Signals(os.WTERMSIG(status)).name}"
    return "broken", f"ends the process: exit code {os.WEXITSTATUS(status)}"


def main(arguments: list[str]) -> int:
    path, seconds, *wanted = arguments
    end, unasked = time.monotonic() + ALTOGETHER, 0
    for label, (text, case) in CASES.items():
        if wanted and label not in wanted:
            continue
        if time.monotonic() < end:
            say(label, text, *judge(path, case, float(seconds)))
        else:
            unasked += 1
            say(label, text, "not asked", "no time is left")
    text = f"all cases come to an end within {ALTOGETHER:g} s"
    say("all-in-time", text, *(("broken", f"{unasked} were not asked") if unasked else ("holds", "")))
    return 0


def say(label: str, text: str, outcome: str, detail: str) -> None:
    print(json.dumps({"case": label, "rule": text, "outcome": outcome, "detail": detail}), flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
