"""Captures: every format, byte order and link layer, counted as an independent reader counts them."""

import gzip
import json
import struct
import time
import tracemalloc
from collections import Counter
from pathlib import Path

import dpkt
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dispatchlab import handlers, traffic
from dispatchlab.errors import Error, TrafficError, UsageError
from dispatchlab.traffic import capture as containers
from dispatchlab.traffic.capture import Capture
from dispatchlab.traffic.headers import LINKS, parse

DATA = Path(__file__).parent / "data"
CAPTURES = sorted(DATA.glob("*.pcap"))


@pytest.fixture(scope="module")
def hs():
    return handlers(100)


# --- files, byte by byte --------------------------------------------------------------------------


def pcap(records, link=1, order="<", nano=False, extra=1400):
    """A pcap file; each record is cut: `extra` more bytes were on the wire."""
    out = struct.pack(order + "IHHiIII", 0xA1B23C4D if nano else 0xA1B2C3D4, 2, 4, 0, 0, 65535, link)
    for i, data in enumerate(records):
        out += struct.pack(order + "IIII", i, 5, len(data), len(data) + extra) + data
    return out


def block(kind, body, order="<"):
    body += bytes(-len(body) % 4)
    size = len(body) + 12
    return struct.pack(order + "II", kind, size) + body + struct.pack(order + "I", size)


def section(order="<", links=(1,), snap=0):
    out = block(0x0A0D0D0A, struct.pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1), order)
    # An interface with an option: if_tsresol = 10**-9.
    option = struct.pack(order + "HHB3xHH", 9, 1, 9, 0, 0)
    return out + b"".join(block(1, struct.pack(order + "HHI", n, 0, snap) + option, order) for n in links)


def enhanced(data, interface=0, order="<", extra=1400):
    head = struct.pack(order + "IIIII", interface, 0, 7, len(data), len(data) + extra)
    return block(6, head + data, order)


def simple(data, order="<"):
    return block(3, struct.pack(order + "I", len(data)) + data, order)


def obsolete(data, interface=0, order="<"):
    return block(2, struct.pack(order + "HHIIII", interface, 0, 0, 7, len(data), len(data)) + data, order)


def pcapng(records, link=1, order="<"):
    return section(order, (link,)) + b"".join(enhanced(r, 0, order) for r in records)


# --- packets, byte by byte ------------------------------------------------------------------------

TCP, UDP, ICMP, DCCP, SCTP, UDPLITE = 6, 17, 1, 33, 132, 136


def ports(source=40000, target=80):
    return struct.pack(">HH", source, target)


def ipv4(protocol=TCP, body=None, fragment=0, options=b""):
    first = 0x45 + len(options) // 4
    head = struct.pack(">BBHHHBBH", first, 0, 1500, 0, fragment, 64, protocol, 0)
    return head + b"\x0a\0\0\x01\x0a\0\0\x02" + options + (ports() if body is None else body)


def ipv6(protocol=TCP, body=None):
    return (
        struct.pack(">IHBB", 6 << 28, 1400, protocol, 64)
        + bytes(range(32))
        + (ports() if body is None else body)
    )


def ether(kind, body):
    return bytes(12) + struct.pack(">H", kind) + body


def tag(inner, body):
    return struct.pack(">HH", 100, inner) + body


def mpls(*labels, body):
    last = len(labels) - 1
    return b"".join(struct.pack(">I", n << 12 | (i == last) << 8 | 64) for i, n in enumerate(labels)) + body


def hop(following, body, words=0):
    return struct.pack(">BB", following, words) + bytes(6 + 8 * words) + body


def read(path, content):
    path.write_bytes(content)
    capture = Capture(path)
    parsed = [parse(batch) for batch in capture]
    return capture, parsed


@pytest.fixture
def keys_of(tmp_path):
    """The (ethertype, protocol, service) of single packets of a link type, None where there is none."""

    def keys(link, *packets):
        _, parsed = read(tmp_path / "one.pcap", pcap(packets, link))
        columns = [
            np.concatenate([getattr(p, f) for p in parsed]) for f in ("ethertype", "protocol", "service")
        ]
        return [
            tuple(None if v < 0 else v for v in row)
            for row in zip(*(c.tolist() for c in columns), strict=True)
        ]

    return keys


def service(protocol, port):
    return protocol << 16 | port


HTTP4 = (0x0800, TCP, service(TCP, 80))
HTTP6 = (0x86DD, TCP, service(TCP, 80))


def test_every_link_type_leads_to_the_same_headers(keys_of):
    frames = {
        0: [(struct.pack("<I", 2) + ipv4(), HTTP4), (struct.pack(">I", 2) + ipv4(), HTTP4)]
        + [(struct.pack(e + "I", n) + ipv6(), HTTP6) for e in "<>" for n in (10, 24, 28, 30)],
        1: [(ether(0x0800, ipv4()), HTTP4), (ether(0x86DD, ipv6()), HTTP6)],
        108: [(struct.pack(">I", 2) + ipv4(), HTTP4), (struct.pack(">I", 24) + ipv6(), HTTP6)],
        113: [(bytes(14) + b"\x08\0" + ipv4(), HTTP4), (bytes(14) + b"\x86\xdd" + ipv6(), HTTP6)],
        276: [(b"\x08\0" + bytes(18) + ipv4(), HTTP4), (b"\x86\xdd" + bytes(18) + ipv6(), HTTP6)],
        228: [(ipv4(), HTTP4)],
        229: [(ipv6(), HTTP6)],
    } | {raw: [(ipv4(), HTTP4), (ipv6(), HTTP6)] for raw in (12, 14, 101)}
    assert set(frames) == set(LINKS)
    for link, cases in frames.items():
        assert keys_of(link, *(f for f, _ in cases)) == [expected for _, expected in cases], link


def test_vlan_tags_are_stepped_over(keys_of):
    one = ether(0x8100, tag(0x0800, ipv4()))
    two = ether(0x88A8, tag(0x8100, tag(0x86DD, ipv6())))
    old = ether(0x9100, tag(0x8100, tag(0x0800, ipv4())))
    body = ipv4()
    for _ in range(40):
        body = tag(0x8100, body)
    assert keys_of(1, one, two, old, ether(0x8100, body)) == [HTTP4, HTTP6, HTTP4, (None, None, None)]


def test_mpls_carries_what_its_first_nibble_tells(keys_of):
    label, http = 0x8847, service(TCP, 80)
    packets = [
        ether(label, mpls(16, body=ipv4())),
        ether(0x8848, mpls(16, 17, 18, body=ipv6())),
        ether(0x8100, tag(label, mpls(16, 17, body=ipv4()))),
        ether(label, mpls(16, body=bytes(30))),
        ether(label, mpls(*range(40), body=ipv4())),
        ether(label, mpls(16, 17, body=b"")[:4]),
    ]
    assert keys_of(1, *packets) == [
        (label, TCP, http),
        (0x8848, TCP, http),
        (label, TCP, http),
        (label, None, None),
        (label, None, None),
        (label, None, None),
    ]


def test_802_3_frames_have_an_ethertype_only_with_snap(keys_of):
    snap = ether(60, b"\xaa\xaa\x03\0\0\0\x08\0" + ipv4())
    bridge = ether(38, b"\x42\x42\x03" + bytes(35))
    assert keys_of(1, snap, bridge) == [HTTP4, (None, None, None)]


@pytest.mark.parametrize("protocol", [TCP, UDP, DCCP, SCTP, UDPLITE])
def test_a_service_is_the_transport_and_the_lower_port(keys_of, protocol):
    both = [ether(0x0800, ipv4(protocol, ports(a, b))) for a, b in ((53, 65535), (65535, 53), (0, 9))]
    assert [k[2] for k in keys_of(1, *both)] == [service(protocol, p) for p in (53, 53, 0)]


def test_what_has_no_ports_has_no_service(keys_of):
    packets = [
        ether(0x0806, bytes(28)),
        ether(0x0800, ipv4(ICMP, bytes(8))),
        ether(0x0800, ipv4(UDP, fragment=0x00B9)),
        ether(0x0800, ipv4(UDP, fragment=0x2000)),  # the first fragment has its ports
        ether(0x0800, ipv4(UDP, fragment=0x4000)),  # "don't fragment"
        ether(0x0800, b"\x44" + ipv4()[1:]),  # a header of 16 bytes cannot be
        ether(0x0800, b"\x55" + ipv4()[1:]),  # version 5
        ether(0x86DD, ipv4() + bytes(40)),
    ]
    udp = service(UDP, 80)
    assert keys_of(1, *packets) == [
        (0x0806, None, None),
        (0x0800, ICMP, None),
        (0x0800, UDP, None),
        (0x0800, UDP, udp),
        (0x0800, UDP, udp),
        (0x0800, None, None),
        (0x0800, None, None),
        (0x86DD, None, None),
    ]


def test_ipv4_options_and_ipv6_extension_headers_are_stepped_over(keys_of):
    authentication = struct.pack(">BB", TCP, 4) + bytes(22) + ports()
    fragment = lambda offset, following=TCP: struct.pack(">BBHI", following, 0, offset << 3 | 1, 9) + ports()  # noqa: E731
    chain = ports()
    for _ in range(40):
        chain = hop(60, chain)
    packets = [
        ether(0x0800, ipv4(options=bytes(40))),
        ether(0x86DD, ipv6(0, hop(60, hop(43, hop(TCP, ports()), words=2)))),
        ether(0x86DD, ipv6(51, authentication)),
        ether(0x86DD, ipv6(44, fragment(0))),
        ether(0x86DD, ipv6(44, fragment(185))),
        ether(0x86DD, ipv6(44, fragment(185, 60))),
        ether(0x86DD, ipv6(60, hop(59, b""))),
        ether(0x86DD, ipv6(0, chain)),
    ]
    later, unknown = (0x86DD, TCP, None), (0x86DD, None, None)
    assert keys_of(1, *packets) == [HTTP4, HTTP6, HTTP6, HTTP6, later, unknown, (0x86DD, 59, None), unknown]


@pytest.mark.parametrize(
    ("link", "packet"),
    [
        (1, ether(0x88A8, tag(0x8847, mpls(1, 2, body=ipv6(0, hop(TCP, ports())))))),
        (1, ether(0x0800, ipv4(options=bytes(8)))),
        (113, bytes(14) + b"\x86\xdd" + ipv6(44, struct.pack(">BBHI", TCP, 0, 1, 9) + ports())),
        (0, struct.pack("<I", 2) + ipv4()),
    ],
)
def test_a_packet_cut_anywhere_never_takes_bytes_of_its_neighbour(keys_of, link, packet):
    whole = keys_of(link, packet)[0]
    cuts = [packet[:n] for n in range(len(packet) + 1)]
    # What follows each cut packet would complete it, were it read across the border.
    woven = keys_of(link, *(p for cut in cuts for p in (cut, packet)))
    assert woven[1::2] == [whole] * len(cuts)
    assert woven[-2] == whole
    alone = [keys_of(link, cut)[0] for cut in cuts]
    assert woven[::2] == alone
    assert all(k[2] is None for k in alone[:-1])


def test_a_flow_is_the_same_in_both_directions_and_no_other(tmp_path):
    a, b = b"\x0a\0\0\x01", b"\x0a\0\0\x02"
    head = struct.pack(">BBHHHBBH", 0x45, 0, 1500, 0, 0, 64, TCP, 0)
    there, back = head + a + b + ports(5000, 80), head + b + a + ports(80, 5000)
    others = [head + a + b + ports(5001, 80), head + a + a + ports(5000, 80), head + a + b + ports(80, 5000)]
    others += [ipv4(UDP), ipv6(), ipv6(UDP)]
    _, (parsed,) = read(tmp_path / "f.pcap", pcap([there, back, *others], 101))
    flows = parsed.flow.tolist()
    assert flows[0] == flows[1] and len(set(flows)) == len(flows) - 1


# --- containers -----------------------------------------------------------------------------------

MIXED = [ether(0x0800, ipv4(TCP, ports(1024 + i, 80 + i % 3))) for i in range(50)] + [
    ether(0x0806, bytes(i)) for i in range(30)
]


def counts_of(path, content, key="service", **options):
    path.write_bytes(content)
    return traffic.from_pcap(options.pop("hs"), path, key, **options)


@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize("kind", ["us", "ns", "ng"])
@pytest.mark.parametrize("chunk", [1 << 20, 997])
def test_all_containers_hold_the_same_packets(hs, tmp_path, monkeypatch, order, kind, chunk):
    monkeypatch.setattr(containers, "CHUNK", chunk)
    content = pcapng(MIXED, 1, order) if kind == "ng" else pcap(MIXED, 1, order, kind == "ns")
    t = counts_of(tmp_path / "x", content, hs=hs)
    assert t.counts == {"tcp/80": 17, "tcp/81": 17, "tcp/82": 16} and t.unkeyed == 30 and t.lost == 0
    assert t.packets["length"][: len(MIXED)].tolist() == [len(p) + 1400 for p in MIXED]
    assert counts_of(tmp_path / "y", pcap(MIXED), hs=hs).digest == t.digest


def test_pcapng_sections_interfaces_and_block_kinds(hs, tmp_path, monkeypatch):
    content = section("<", (1, 101)) + enhanced(MIXED[0], 0) + enhanced(ipv4(UDP), 1) + simple(MIXED[1])
    content += block(4, bytes(8)) + block(5, bytes(40)) + block(0x0BAD, bytes(5_000)) + obsolete(ipv6(), 1)
    content += (
        section(">", (113,)) + enhanced(bytes(14) + b"\x08\0" + ipv4(SCTP), 0, ">") + block(0x0BAD, b"", ">")
    )
    for chunk in (1 << 20, 1500):
        monkeypatch.setattr(containers, "CHUNK", chunk)
        t = counts_of(tmp_path / "x", content, hs=hs)
        assert t.counts == {"tcp/80": 2, "udp/80": 1, "tcp/81": 1, "sctp/80": 1} and t.lost == 0


def test_a_simple_packet_is_cut_at_the_snapshot_length(tmp_path):
    content = section("<", (101,), snap=24) + block(3, struct.pack("<I", 1500) + ipv4())
    capture, (parsed,) = read(tmp_path / "x", content)
    assert capture.lost == 0 and parsed.service.tolist() == [service(TCP, 80)]


@pytest.mark.parametrize("content", [pcap(MIXED), pcapng(MIXED)], ids=["pcap", "pcapng"])
def test_a_cut_file_gives_what_is_whole_and_says_that_something_is_lost(tmp_path, content):
    size = len(MIXED[-1]) + 16 if content[:4] != b"\n\r\r\n" else len(enhanced(MIXED[-1]))
    for cut in range(1, size):
        capture, parsed = read(tmp_path / "x", content[:-cut])
        assert (capture.records, capture.lost) == (len(MIXED) - 1, 1), cut
        assert sum(len(p.service) for p in parsed) == len(MIXED) - 1
    capture, _ = read(tmp_path / "x", content[:-size])
    assert (capture.records, capture.lost) == (len(MIXED) - 1, 0)


def test_packets_that_contradict_their_block_are_lost_one_by_one(tmp_path):
    liar = block(6, struct.pack("<IIIII", 0, 0, 0, 4000, 4000) + bytes(8))
    content = (
        section()
        + enhanced(MIXED[0], interface=3)
        + liar
        + block(6, bytes(4))
        + simple(MIXED[1])
        + block(3, b"")
    )
    capture, _ = read(tmp_path / "x", content)
    assert (capture.records, capture.lost) == (1, 4)


@pytest.mark.parametrize(
    "damage",
    [
        struct.pack("<II", 6, 8),
        struct.pack("<II", 6, 33),
        struct.pack("<III", 6, 0xFFFFFFF0, 0),
        struct.pack("<III", 0x0BAD, 0xFFFFFFF0, 0),
        struct.pack("<IIII", 0x0BAD, 16, 0, 20),
        struct.pack("<III", 0x0A0D0D0A, 28, 0x12345678),
    ],
)
def test_behind_a_damaged_block_nothing_is_believed(tmp_path, damage):
    content = section() + enhanced(MIXED[0]) + damage + enhanced(MIXED[0]) * 3
    capture, _ = read(tmp_path / "x", content)
    assert (capture.records, capture.lost) == (1, 1)


@pytest.mark.parametrize("chunk", [1 << 20, 1 << 19])
def test_a_record_longer_than_any_packet_is_damage_wherever_it_lies(tmp_path, monkeypatch, chunk):
    monkeypatch.setattr(containers, "CHUNK", chunk)
    for content in (pcap([MIXED[0], bytes(400_000), MIXED[1]]), pcapng([MIXED[0], bytes(400_000), MIXED[1]])):
        capture, _ = read(tmp_path / "x", content)
        assert (capture.records, capture.lost) == (1, 1)


@pytest.mark.parametrize("kind", ["pcap", "pcapng"])
def test_four_gigabytes_by_the_header_but_forty_bytes_long_allocate_nothing(hs, tmp_path, kind):
    if kind == "pcap":
        content = pcap([]) + struct.pack("<IIII", 1, 2, 0xFFFFFFF0, 0xFFFFFFF0)
        assert len(content) == 40
    else:
        content = section() + struct.pack("<III", 6, 0xFFFFFFF0, 0)
    tracemalloc.start()
    try:
        with pytest.raises(TrafficError, match="one cut or damaged"):
            counts_of(tmp_path / "x", content, hs=hs)
        assert tracemalloc.get_traced_memory()[1] < 4 << 20
    finally:
        tracemalloc.stop()


@settings(max_examples=300)
@given(st.data())
def test_no_damage_gets_past_the_reader(tmp_path_factory, data):
    content = bytearray(
        data.draw(st.sampled_from([pcap(MIXED[:6]), pcapng(MIXED[:6]), pcapng(MIXED[:6], 113, ">")]))
    )
    for _ in range(data.draw(st.integers(1, 8))):
        content[data.draw(st.integers(4, len(content) - 1))] = data.draw(st.integers(0, 255))
    path = tmp_path_factory.getbasetemp() / "damaged"
    path.write_bytes(content[: data.draw(st.integers(0, len(content)))])
    try:
        capture = Capture(path)
        found = sum(len(parse(batch, "damaged").service) for batch in capture)
    except TrafficError as error:
        assert "\n" not in str(error)
    else:
        assert found == capture.records <= len(content) // 12 and capture.lost >= 0


# --- bad input ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "an empty file"),
        (b"\xd4\xc3\xb2\xa1", "not a capture"),
        (b"hello, this is not a capture", "68 65 6c 6c 6f"),
        (gzip.compress(pcap(MIXED)), "decompress it first"),
        (pcap([]), "no packets in the capture"),
        (section(), "no packets in the capture"),
        (b"\n\r\r\n" + bytes(30), "not a capture"),
        (pcap(MIXED, 147), "unknown link type.*got 147"),
        (section("<", (1, 105)) + enhanced(MIXED[0], 1), "unknown link type.*got 105"),
        (pcap([ether(0x0806, bytes(28))] * 3), "without a key"),
    ],
)
def test_what_cannot_be_used_is_one_line_that_names_the_file(hs, tmp_path, content, says):
    with pytest.raises(TrafficError, match=says) as error:
        counts_of(tmp_path / "x.pcap", content, hs=hs)
    assert "\n" not in str(error.value) and "x.pcap" in str(error.value)


def test_a_file_that_cannot_be_opened_and_a_key_that_does_not_exist(hs, tmp_path):
    for path in (tmp_path, tmp_path / "missing.pcap"):
        with pytest.raises(TrafficError, match="cannot read the capture"):
            traffic.from_pcap(hs, path)
    with pytest.raises(UsageError, match="'port'"):
        traffic.from_pcap(hs, CAPTURES[0], "port")
    for bad in ({"seed": -1}, {"pool": 0}):
        with pytest.raises(Error):
            traffic.from_pcap(hs, CAPTURES[0], **bad)


# --- real captures, counted independently ---------------------------------------------------------

# Of each file: records, distinct keys if what has no port counts as a key too, share of the two busiest.
PUBLISHED = {
    "1kxun.headers.pcap": (1723, 18, 0.78),
    "gnutella.headers.pcap": (3905, 391, 0.25),
    "many-protocols.headers.pcap": (4709, 11, 0.92),
    "sll.headers.pcap": (518, 7, 0.97),
    "tcpreplay.headers.pcap": (179, 10, 0.75),
}
NAMES = {6: "tcp", 17: "udp", 33: "dccp", 132: "sctp", 136: "udplite"}


def independent(path):
    """A capture read with dpkt, packet by packet: the labels of service, IP protocol and ethertype."""
    with path.open("rb") as file:
        reader = dpkt.pcap.Reader(file)
        for _, data in reader:
            kind, rest = (data[14:16], data[16:]) if reader.datalink() == 113 else (data[12:14], data[14:])
            kind = int.from_bytes(kind, "big")
            while kind == 0x8100:
                kind, rest = int.from_bytes(rest[2:4], "big"), rest[4:]
            ethertype = f"0x{kind:04x}" if kind >= 0x600 else None
            if kind == 0x8847:
                while len(rest) >= 4 and not rest[2] & 1:
                    rest = rest[4:]
                rest = rest[4:]
                kind = {4: 0x0800, 6: 0x86DD}.get(rest[0] >> 4) if rest else None
            protocol, body, later = None, b"", False
            if kind == 0x0800:
                ip = dpkt.ip.IP(rest)
                protocol, body, later = ip.p, bytes(rest[ip.hl * 4 :]), bool(ip.offset)
            elif kind == 0x86DD:
                # By hand: dpkt raises NeedData for a hop-by-hop header of which two bytes were captured.
                protocol, body = rest[6], rest[40:]
                while protocol in (0, 43, 60) and len(body) > 1:
                    protocol, body = body[0], body[8 * (body[1] + 1) :]
            name = NAMES.get(protocol)
            port = min(struct.unpack(">HH", body[:4])) if name and not later and len(body) >= 4 else None
            yield (
                None if port is None else f"{name}/{port}",
                None if protocol is None else f"ip/{protocol}",
                ethertype,
            )


def test_the_five_captures_are_here():
    assert [p.name for p in CAPTURES] == sorted(PUBLISHED)


@pytest.mark.parametrize("path", CAPTURES, ids=lambda p: p.name)
@pytest.mark.parametrize(("column", "key"), [(0, "service"), (1, "ip-proto"), (2, "ethertype")])
def test_counts_equal_an_independent_count(hs, path, column, key):
    labels = [row[column] for row in independent(path)]
    counts = Counter(labels)
    unkeyed = counts.pop(None, 0)
    t = traffic.from_pcap(hs, path, key)
    assert t.counts == counts and t.unkeyed == unkeyed and t.lost == 0
    assert sum(t.counts.values()) + t.unkeyed == PUBLISHED[path.name][0] == t.spec["records"]


@pytest.mark.parametrize("path", CAPTURES, ids=lambda p: p.name)
def test_the_published_table_is_met(hs, path):
    records, keys, share = PUBLISHED[path.name]
    t = traffic.from_pcap(hs, path)
    busiest = sorted(t.counts.values())[-2:]
    assert sum(busiest) / records == pytest.approx(share, abs=0.006)
    # The table counts each kind of packet without ports (ARP, ICMP, LLC, ...) as one more key.
    assert len(t.counts) <= keys and (len(t.counts) == keys) == (t.unkeyed == 0)


@pytest.mark.parametrize("path", CAPTURES, ids=lambda p: p.name)
def test_a_replay_keeps_the_order_of_the_capture_and_starts_over(hs, path):
    labels = [row[0] for row in independent(path)]
    t = traffic.from_pcap(hs, path, pool=10_000)
    expected = [t.assigned.get(labels[i % len(labels)], -1) for i in range(10_000)]
    assert hs.select(t.packets).tolist() == expected


def test_a_pool_smaller_than_the_capture_takes_its_beginning_but_counts_all(hs):
    short, long = (traffic.from_pcap(hs, CAPTURES[1], pool=n) for n in (100, 4000))
    assert short.counts == long.counts and short.assigned == long.assigned
    assert (short.packets["key"] == long.packets["key"][:100]).all()


def test_drawn_independently_the_shares_stay_and_the_order_goes(hs):
    replay = traffic.from_pcap(hs, DATA / "1kxun.headers.pcap", pool=1 << 16)
    drawn = traffic.from_pcap(hs, DATA / "1kxun.headers.pcap", replay=False, pool=1 << 16)
    assert drawn.counts == replay.counts and drawn.assigned == replay.assigned
    ids = hs.select(drawn.packets)
    for key, n in drawn.counts.items():
        assert (ids == drawn.assigned[key]).mean() == pytest.approx(n / 1723, abs=0.01)
    repeats = [(np.diff(hs.select(t.packets)) == 0).mean() for t in (replay, drawn)]
    assert repeats[0] > repeats[1] + 0.1


def test_rarest_keys_find_no_handler():
    few = handlers(10)
    t = traffic.from_pcap(few, DATA / "gnutella.headers.pcap", pool=3905)
    kept = sorted(t.counts.values())[-10:]
    assert len(t.assigned) == 10 and sorted(t.counts[k] for k in t.assigned) == kept
    assert (few.select(t.packets) >= 0).sum() == sum(kept)
    assert not np.isin(t.packets["key"][few.select(t.packets) < 0], few.keys).any()


def test_shuffle_false_gives_the_busiest_key_to_the_first_handler(hs):
    t = traffic.from_pcap(hs, DATA / "sll.headers.pcap", shuffle=False)
    assert list(t.assigned.items())[:2] == [("tcp/80", 0), ("udp/53", 1)]


def test_the_first_payload_byte_is_the_flows_and_the_rest_is_not():
    hs = handlers(7)  # none of them residual
    t = traffic.from_pcap(hs, DATA / "1kxun.headers.pcap", pool=4000)
    first = {}
    for flow, byte in zip(t.packets["flow"].tolist(), t.packets["payload"][:, 0].tolist(), strict=True):
        assert first.setdefault(flow, byte) == byte
    assert len(set(first.values())) > 20
    assert len(np.unique(t.packets["payload"][:, 1:], axis=0)) == 4000


GOLDEN = {
    "replay": "9139d09ddc91bd496a59cd5354166d4e515584a67e02126d08a40d770bad3d63",
    "drawn": "4a16b8e641970ade02f13f2b17ee6f15764752d1af8b617b84f07a55759732f6",
}


@pytest.mark.parametrize("how", GOLDEN)
def test_the_same_seed_gives_the_same_bytes_for_ever(hs, how):
    t = traffic.from_pcap(hs, DATA / "tcpreplay.headers.pcap", replay=how == "replay", seed=3, pool=4096)
    assert t.digest == GOLDEN[how]
    assert json.loads(json.dumps(t.spec, allow_nan=False)) == t.spec and str(DATA) not in json.dumps(t.spec)


# --- a million packets ----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["pcap", "pcapng"])
def test_a_million_packets_load_in_bounded_memory(hs, tmp_path, kind):
    path = tmp_path / "million"
    thousand = [ether(0x0800, ipv4(TCP, ports(20000 + i, i))) for i in range(1000)]
    head, body = (
        (pcap([]), pcap(thousand)[24:]) if kind == "pcap" else (section(), pcapng(thousand)[len(section()) :])
    )
    path.write_bytes(head + body * 1000)
    began = time.perf_counter()
    t = traffic.from_pcap(hs, path)
    print(
        f"{kind}: a million packets, {path.stat().st_size >> 20} MiB, in {time.perf_counter() - began:.2f} s"
    )
    assert t.spec["records"] == 1_000_000 and set(t.counts.values()) == {1000}
    peaks = []
    for repeat in (60, 120):
        path.write_bytes(head + body * repeat)
        tracemalloc.start()
        traffic.from_pcap(hs, path, pool=1000)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < peaks[0] * 1.2 and peaks[1] < 64 << 20, peaks
