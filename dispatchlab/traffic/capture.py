"""Records out of pcap and pcapng files, in batches, in bounded memory.

Why not a library: the three that are kept up were tried on files of a million 58-byte records (2 vCPU, Python
3.11). dpkt 1.9.8 takes pcapng packets of every interface to have the first one's link type, hands out a cut
last record as if it were whole, allocates 4 GiB for a 40-byte file that claims so much, and needs 15 s for
pcapng. scapy 2.8 needs 16 s for pcapng and allocates the 4 GiB there too. python-pcapng 2.1 reads no pcap,
needs 78 s, and allocates as well. This reader takes one to two seconds, never holds more than a few
chunks, and counts what it cannot use.

Formats: draft-ietf-opsawg-pcap and draft-ietf-opsawg-pcapng. Time stamps are stepped over: traffic keeps the
order of a capture, not its timing.
"""

import hashlib
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import BinaryIO

import numpy as np
import numpy.typing as npt

from dispatchlab.errors import TrafficError, explain

CHUNK = 1 << 20
MAX_RECORD = 1 << 18
"""Largest record believed, as in tcpdump. A longer one means that the file is damaged from there on."""

I64 = npt.NDArray[np.int64]
Record = tuple[int, int, int, int]
"""Start and end in the chunk, length on the wire, link type."""

_PCAP = {
    b"\xd4\xc3\xb2\xa1": "<",
    b"\xa1\xb2\xc3\xd4": ">",
    b"\x4d\x3c\xb2\xa1": "<",  # these two: nanoseconds
    b"\xa1\xb2\x3c\x4d": ">",
}
_PCAPNG = b"\n\r\r\n"
_PCAPNG_ORDER = {b"\x4d\x3c\x2b\x1a": "<", b"\x1a\x2b\x3c\x4d": ">"}
_SECTION, _INTERFACE, _OLD_PACKET, _SIMPLE_PACKET, _PACKET = 0x0A0D0D0A, 1, 2, 3, 6
_HELD = frozenset((_SECTION, _INTERFACE, _OLD_PACKET, _SIMPLE_PACKET, _PACKET))
"""Blocks that have to be seen whole; others are stepped over, however long they say they are."""


@dataclass(frozen=True)
class Batch:
    """Records of one chunk: data[start[i]:end[i]] was captured of packet i, wire[i] bytes long."""

    data: npt.NDArray[np.uint8]
    start: I64
    end: I64
    wire: I64
    link: I64


class PcapWalker:
    """Finds the records in the chunks of a pcap file, whose 24-byte header it is given."""

    def __init__(self, header: bytes) -> None:
        order = _PCAP[header[:4]]
        # The upper bits of the field tell of frame check sequences.
        self.link = struct.unpack_from(order + "I", header, 20)[0] & 0xFFFF
        self.record = struct.Struct(order + "8xII")
        self.lost = 0
        self.damaged = False

    def walk(self, chunk: bytes) -> tuple[list[Record], int]:
        """The whole records of the chunk, and where in it the next chunk has to begin."""
        found: list[Record] = []
        add, unpack, link = found.append, self.record.unpack_from, self.link
        at, size = 0, len(chunk)
        while at + 16 <= size:
            captured, wire = unpack(chunk, at)
            end = at + 16 + captured
            if captured > MAX_RECORD or end > size:
                self.damaged = captured > MAX_RECORD
                break
            add((at + 16, end, wire, link))
            at = end
        return found, at


class PcapngWalker:
    """Finds the packet blocks of a pcapng file, each section in its own byte order."""

    def __init__(self) -> None:
        self.lost = 0
        self.damaged = False
        self.begin_section("<")

    def begin_section(self, order: str) -> None:
        """Interfaces (link type, snapshot length) are numbered anew in each section."""
        self.interfaces: list[tuple[int, int]] = []
        self.block = struct.Struct(order + "II").unpack_from
        self.word = struct.Struct(order + "I").unpack_from
        self.packet = struct.Struct(order + "I8xII").unpack_from
        self.old_packet = struct.Struct(order + "H10xII").unpack_from
        self.interface = struct.Struct(order + "H2xI").unpack_from

    def walk(self, chunk: bytes) -> tuple[list[Record], int]:
        """The packets of the chunk, and where the next chunk has to begin: in this one, or beyond its end."""
        found: list[Record] = []
        add, at, size = found.append, 0, len(chunk)
        while at + 12 <= size:
            kind, length = self.block(chunk, at)
            if kind == _SECTION:  # reads the same in both byte orders; its length does not
                order = _PCAPNG_ORDER.get(chunk[at + 8 : at + 12])
                if order is None:
                    self.damaged = True
                    break
                self.begin_section(order)
                kind, length = self.block(chunk, at)
            end = at + length
            held = kind in _HELD
            if held and (length > MAX_RECORD or end > size):
                self.damaged = length > MAX_RECORD
                break
            if length < 12 or length % 4 or (end <= size and self.word(chunk, end - 4)[0] != length):
                self.damaged = True
                break
            if held:
                self.read(kind, chunk, at + 8, end - 4, add)
            at = end
        return found, at

    def read(self, kind: int, chunk: bytes, at: int, end: int, add: Callable[[Record], None]) -> None:
        """Take in the body of one block; a packet that contradicts its block or has no interface is lost."""
        head = 4 if kind == _SIMPLE_PACKET else 20
        start, interface = at + head, 0
        if kind == _INTERFACE and end - at >= 8:
            self.interfaces.append(self.interface(chunk, at))
        if kind in (_SECTION, _INTERFACE):
            return
        if start > end:
            self.lost += 1
            return
        if kind == _PACKET:
            interface, captured, wire = self.packet(chunk, at)
        elif kind == _OLD_PACKET:
            interface, captured, wire = self.old_packet(chunk, at)
        else:
            (wire,) = self.word(chunk, at)
            captured = min(wire, (self.interfaces[0][1] if self.interfaces else 0) or wire)
        if start + captured > end or interface >= len(self.interfaces):
            self.lost += 1
        else:
            add((start, start + captured, wire, self.interfaces[interface][0]))


class Capture:
    """The records of one capture file. Iterate it once, to the end; then `records`, `lost` and `sha256` are
    known.

    Raises TrafficError for a file that cannot be opened or is no capture. A last record that is cut, or
    everything behind a damaged one, counts as one in `lost`, since nobody can tell how many there were.
    """

    def __init__(self, path: str | PathLike[str]) -> None:
        self.path = Path(path)
        self.records = 0
        self.lost = 0
        self.sha256 = ""

    def __iter__(self) -> Iterator[Batch]:
        try:
            with self.path.open("rb") as file:
                yield from self._read(file)
        except (OSError, ValueError) as error:  # ValueError: a path with a zero byte
            got = getattr(error, "strerror", None) or str(error)
            raise TrafficError(explain("cannot read the capture", repr(str(self.path)), got=got)) from None

    def _read(self, file: BinaryIO) -> Iterator[Batch]:
        digest = hashlib.sha256()

        def take(size: int) -> bytes:
            piece = file.read(size)
            digest.update(piece)
            return piece

        walker, chunk = self._open(take(24))
        beyond = 0
        while not walker.damaged and (piece := take(min(beyond, CHUNK) or CHUNK)):
            if beyond:
                beyond -= len(piece)
                continue
            chunk += piece
            found, at = walker.walk(chunk)
            if found:
                self.records += len(found)
                start, end, wire, link = np.array(found, np.int64).T
                yield Batch(np.frombuffer(chunk, np.uint8), start, end, wire, link)
            beyond = max(0, at - len(chunk))
            chunk = chunk[at:]
        self.lost = walker.lost + bool(chunk or beyond or walker.damaged)
        while take(CHUNK):
            pass
        self.sha256 = digest.hexdigest()

    def _open(self, head: bytes) -> tuple[PcapWalker | PcapngWalker, bytes]:
        """A walker for the format the file's first bytes tell, and those of them that it has to walk."""
        if head[:4] in _PCAP and len(head) == 24:
            return PcapWalker(head), b""
        if head[:4] == _PCAPNG and head[8:12] in _PCAPNG_ORDER:
            return PcapngWalker(), head
        remedy = "decompress it first" if head[:2] == b"\x1f\x8b" or head[:4] == b"\x28\xb5\x2f\xfd" else ""
        got = f"first bytes {head[:8].hex(' ')}" if head else "an empty file"
        raise TrafficError(explain("not a capture", str(self.path), "pcap or pcapng", got, remedy))
