"""Which packets arrive: generated, drawn from counts, or replayed from a capture."""

from dispatchlab.traffic.describing import Description, describe
from dispatchlab.traffic.generate import bursts, hot, uniform, worst, zipf
from dispatchlab.traffic.hostile import flood, mixture, shift
from dispatchlab.traffic.names import NAMES, make
from dispatchlab.traffic.packets import PACKET, POOL, Traffic, from_packets
from dispatchlab.traffic.source import from_counts, from_pcap

__all__ = [
    "NAMES",
    "PACKET",
    "POOL",
    "Description",
    "Traffic",
    "bursts",
    "describe",
    "flood",
    "from_counts",
    "from_packets",
    "from_pcap",
    "hot",
    "make",
    "mixture",
    "shift",
    "uniform",
    "worst",
    "zipf",
]
