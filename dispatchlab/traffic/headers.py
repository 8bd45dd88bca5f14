"""What captured packets are: ethertype, IP protocol, service and flow, for a whole batch at a time.

Every field is read for all packets at once, straight from the chunk the records lie in. A field that reaches
beyond what was captured of its packet reads as -1, and everything that depends on it is unknown.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dispatchlab.errors import TrafficError, explain
from dispatchlab.traffic.capture import I64, Batch
from dispatchlab.traffic.streams import mix

TRANSPORTS = {6: "tcp", 17: "udp", 33: "dccp", 132: "sctp", 136: "udplite"}
"""IP protocols that begin with a source and a destination port of 16 bits each."""

LINKS = {
    0: "NULL",
    1: "ETHERNET",
    12: "RAW",
    14: "RAW",
    101: "RAW",
    108: "LOOP",
    113: "LINUX_SLL",
    228: "IPV4",
    229: "IPV6",
    276: "LINUX_SLL2",
}
"""Link types understood (LINKTYPE_ numbers; 12 and 14 are what BSDs wrote for raw IP)."""

NEST = 16
"""VLAN tags, MPLS labels or IPv6 extension headers followed before a packet is given up as unknown."""

_IPV4, _IPV6 = 0x0800, 0x86DD
_VLAN = (0x8100, 0x88A8, 0x9100, 0x9200)
_MPLS = (0x8847, 0x8848)
_FAMILIES = {
    2: _IPV4,
    10: _IPV6,
    24: _IPV6,
    28: _IPV6,
    30: _IPV6,
}  # AF_INET; AF_INET6 of Linux, NetBSD, FreeBSD, Darwin
_EXTENSIONS = (0, 43, 60, 135, 139, 140)  # their second byte is their length in 8 bytes, less one
_FRAGMENT, _AUTHENTICATION = 44, 51
_CHAINED = (*_EXTENSIONS, _FRAGMENT, _AUTHENTICATION)


@dataclass(frozen=True)
class Parsed:
    """Of each packet, int64[n], -1 where it has none or it was not captured; the flow is uint32[n].

    ethertype  of what the link layer carries, behind VLAN tags
    protocol   the upper-layer IP protocol, behind IPv6 extension headers
    service    protocol << 16 | lower port; none for fragments other than the first
    flow       a hash of protocol and both endpoints, the same in both directions
    """

    ethertype: I64
    protocol: I64
    service: I64
    flow: npt.NDArray[np.uint32]


@dataclass(frozen=True)
class Frames:
    """Packets to read fields from: absolute positions into `data`, none beyond `end`."""

    data: npt.NDArray[np.uint8]
    end: I64

    def take(self, rows: I64) -> "Frames":
        """These packets only."""
        return Frames(self.data, self.end[rows])

    def field(self, at: I64, width: int) -> I64:
        """The big-endian number of `width` bytes at each position, or -1 if it was not wholly captured."""
        inside = (at >= 0) & (at + width <= self.end)
        at = np.where(inside, at, 0)
        value = np.zeros(len(at), np.int64)
        for k in range(width):
            value = value << 8 | self.data[at + k]
        return np.where(inside, value, -1)


def parse(batch: Batch, where: str = "") -> Parsed:
    """Read the headers of a batch of the file `where`. Raises TrafficError for an unknown link type."""
    frames = Frames(batch.data, batch.end)
    ethertype, at = _links(frames, batch.start, batch.link, where)
    _skip_vlan(frames, ethertype, at)
    network = ethertype.copy()
    _skip_mpls(frames, network, at)
    protocol, transport, sources, targets = _network(frames, network, at)
    ports = np.isin(protocol, list(TRANSPORTS))
    transport = np.where(ports, transport, -1)
    source, target = frames.field(transport, 2), frames.field(transport + np.where(transport < 0, 0, 2), 2)
    known = (source >= 0) & (target >= 0)
    service = np.where(known, protocol << 16 | np.minimum(source, target), -1)
    ends = _hash(sources, np.where(known, source, 0)) + _hash(targets, np.where(known, target, 0))
    flow = mix(ends + _words(np.where(protocol < 0, ethertype, protocol))).astype(np.uint32)
    return Parsed(np.where(ethertype >= 0x0600, ethertype, -1), protocol, service, flow)


def _links(frames: Frames, start: I64, link: I64, where: str) -> tuple[I64, I64]:
    """Ethertype, and position of what follows the link layer."""
    ethertype, at = np.full(len(start), -1, np.int64), start.copy()
    for number in np.unique(link).tolist():
        if (name := LINKS.get(number)) is None:
            known = ", ".join(f"{n} {LINKS[n]}" for n in sorted(LINKS))
            raise TrafficError(
                explain("unknown link type", where, expected=f"one of {known}", got=str(number))
            )
        rows = np.flatnonzero(link == number)
        ethertype[rows], at[rows] = _link(name, frames.take(rows), start[rows])
    return ethertype, at


def _link(name: str, frames: Frames, start: I64) -> tuple[I64, I64]:
    """The same for packets of one link type."""
    match name:
        case "ETHERNET":
            return _ethernet(frames, start)
        case "LINUX_SLL":
            return frames.field(start + 14, 2), start + 16
        case "LINUX_SLL2":
            return frames.field(start, 2), start + 20
        case "NULL" | "LOOP":
            family = frames.field(start, 4)
            # NULL has it in the byte order of whoever captured; a family is small, so its zeros tell which.
            family = np.where(family >= 1 << 16, family >> 24 | family >> 8 & 0xFF00, family)
            return _translate(family, _FAMILIES), start + 4
        case _:
            return _by_version(frames, start), start


def _ethernet(frames: Frames, start: I64) -> tuple[I64, I64]:
    """Ethernet II, or IEEE 802.3 with a SNAP header; other 802.3 frames have no ethertype."""
    ethertype, at = frames.field(start + 12, 2), start + 14
    snap = np.flatnonzero((ethertype >= 0) & (ethertype < 0x0600))
    if len(snap):
        some = frames.take(snap)
        is_snap = some.field(at[snap], 6) == 0xAAAA03000000
        ethertype[snap] = np.where(is_snap, some.field(at[snap] + 6, 2), -1)
        at[snap] += 8
    return ethertype, at


def _by_version(frames: Frames, at: I64) -> I64:
    """The ethertype that the version in an IP header's first nibble stands for."""
    return _translate(frames.field(at, 1) >> 4, {4: _IPV4, 6: _IPV6})


def _translate(values: I64, table: dict[int, int]) -> I64:
    """table[value], or -1."""
    out = np.full(len(values), -1, np.int64)
    for value, meaning in table.items():
        out[values == value] = meaning
    return out


def _skip_vlan(frames: Frames, ethertype: I64, at: I64) -> None:
    """Step over VLAN tags, in place."""
    for _ in range(NEST):
        rows = np.flatnonzero(np.isin(ethertype, _VLAN))
        if not len(rows):
            return
        ethertype[rows] = frames.take(rows).field(at[rows] + 2, 2)
        at[rows] += 4
    ethertype[np.isin(ethertype, _VLAN)] = -1


def _skip_mpls(frames: Frames, network: I64, at: I64) -> None:
    """Step over MPLS labels, in place; what they carry is told by its first nibble."""
    rows = np.flatnonzero(np.isin(network, _MPLS))
    network[rows] = -1
    for _ in range(NEST):
        if not len(rows):
            return
        label = frames.take(rows).field(at[rows], 4)
        at[rows] += 4
        last = rows[(label >= 0) & (label & 0x100 != 0)]
        network[last] = _by_version(frames.take(last), at[last])
        rows = rows[(label >= 0) & (label & 0x100 == 0)]


def _network(
    frames: Frames, network: I64, at: I64
) -> tuple[I64, I64, npt.NDArray[np.uint64], npt.NDArray[np.uint64]]:
    """IP protocol, position of the transport header (-1 if there is none), and hashes of both addresses."""
    n = len(at)
    protocol, transport = np.full(n, -1, np.int64), np.full(n, -1, np.int64)
    sources, targets = np.zeros(n, np.uint64), np.zeros(n, np.uint64)
    for kind, read, offset, width in ((_IPV4, _ipv4, 12, 4), (_IPV6, _ipv6, 8, 16)):
        rows = np.flatnonzero(network == kind)
        if len(rows):
            some = frames.take(rows)
            protocol[rows], transport[rows] = read(some, at[rows])
            sources[rows] = _address(some, at[rows] + offset, width)
            targets[rows] = _address(some, at[rows] + offset + width, width)
    return protocol, transport, sources, targets


def _ipv4(frames: Frames, at: I64) -> tuple[I64, I64]:
    first, fragment = frames.field(at, 1), frames.field(at + 6, 2)
    right = (first >> 4 == 4) & (first & 15 >= 5)
    protocol = np.where(right, frames.field(at + 9, 1), -1)
    whole = right & (fragment >= 0) & (fragment & 0x1FFF == 0)
    return protocol, np.where(whole, at + (first & 15) * 4, -1)


def _ipv6(frames: Frames, at: I64) -> tuple[I64, I64]:
    protocol = np.where(frames.field(at, 1) >> 4 == 6, frames.field(at + 6, 1), -1)
    at = at + 40
    for _ in range(NEST):
        rows = np.flatnonzero(np.isin(protocol, _CHAINED) & (at >= 0))
        if not len(rows):
            break
        kind, here, some = protocol[rows], at[rows], frames.take(rows)
        length = some.field(here + 1, 1)
        size = np.select([kind == _FRAGMENT, kind == _AUTHENTICATION], [8, length * 4 + 8], length * 8 + 8)
        later = (kind == _FRAGMENT) & (some.field(here + 2, 2) & 0xFFF8 != 0)
        protocol[rows] = some.field(here, 1)
        at[rows] = np.where(later | (length < 0), -1, here + size)
    return np.where(np.isin(protocol, _CHAINED), -1, protocol), at


def _address(frames: Frames, at: I64, width: int) -> npt.NDArray[np.uint64]:
    """A hash of the address of `width` bytes at each position."""
    total = np.zeros(len(at), np.uint64)
    for k in range(0, width, 4):
        total = mix(total + _words(frames.field(at + k, 4)))
    return total


def _hash(address: npt.NDArray[np.uint64], port: I64) -> npt.NDArray[np.uint64]:
    return mix(address ^ _words(port))


def _words(values: I64) -> npt.NDArray[np.uint64]:
    """The same bits, as unsigned words."""
    return values.view(np.uint64)
