"""dispatchlab: which way of finding and calling a handler pays on this machine, with this traffic, and how sure that is."""

from . import traffic
from .arms import Arm, arms
from .errors import ChecksumError, Error, RecordingError, TrafficError, UsageError
from .handlers import HandlerSet, bodies, handlers
from .measure import measure
from .probes import count_probes, expected_probes
from .recording import Recording, load

__all__ = [
    "Arm",
    "ChecksumError",
    "Error",
    "HandlerSet",
    "Recording",
    "RecordingError",
    "TrafficError",
    "UsageError",
    "arms",
    "bodies",
    "count_probes",
    "expected_probes",
    "handlers",
    "load",
    "measure",
    "traffic",
]
