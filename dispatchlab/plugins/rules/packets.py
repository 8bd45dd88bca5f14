"""Rules about process."""

from __future__ import annotations

import ctypes as c
import random

from .host import FAILED, OK, PAYLOAD, NotAsked, Plugin, guarded, lend, need, packets, rule, run


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
