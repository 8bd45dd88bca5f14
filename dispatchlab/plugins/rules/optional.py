"""Rules about matches and process_batch, for plugins that have them."""

from __future__ import annotations

import ctypes as c
import sys

from .host import FAILED, MATCH, OK, PAYLOAD, Batch, NotAsked, Plugin, View, guarded, lend, need, packets, rule, singles, unmap


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
