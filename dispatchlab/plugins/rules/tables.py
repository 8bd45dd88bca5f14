"""Rules about the table, the keys and the instances."""

from __future__ import annotations

import ctypes as c
from collections.abc import Callable
from pathlib import Path

from .host import CAP, HIGHEST, LEVEL_1, MAGIC, OK, PAGE, Broken, Plugin, Table, everything, guarded, need, packets, rule


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
    grown = grows(lambda: t.destroy(p.instance()), 20000)
    need(grown < 1 << 18, f"{grown >> 10} KiB more after 20000 instances")


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
