from collections.abc import Callable
from typing import Any, TypedDict, TypeVar

import numpy as np
from numpy.typing import NDArray

Buffer = bytes | NDArray[Any]

# instruments
_T = TypeVar("_T")

class ClockInfo(TypedDict):
    source: str
    steady: bool
    step: int
    cost: int
    ticks_per_ns: float

class CounterReading(TypedDict):
    value: int | None
    enabled_ns: int
    running_ns: int
    source: str | None
    reason: str | None

def clock_info() -> ClockInfo: ...
def clock_steps(readings: NDArray[np.uint64], /) -> tuple[int, int]: ...
def clock_reading() -> int: ...
def itlb_entries() -> int: ...
def allowed_cpus() -> list[int]: ...
def pinned(cpu: int, call: Callable[[], _T], /) -> _T: ...
def ledger_call(call: Callable[[], Any], cpu: int = ..., /) -> dict[str, int]: ...
def counter_reason(why: int, /) -> str: ...
def count_call(call: Callable[[], Any], cpu: int = ..., /) -> dict[str, CounterReading]: ...

# handlers
class HandlerSet:
    def tallies(self) -> bytes: ...

def handler_set(
    body: str,
    size: str,
    packed: bool,
    keys: Buffer,
    masks: Buffer,
    values: Buffer,
    order: Buffer,
    state: int = ...,
    scattered: bool = ...,
) -> HandlerSet: ...
def arms() -> list[tuple[str, str, str, str, int]]: ...
def stamps() -> list[tuple[str, str, int]]: ...
def build_info() -> dict[str, str]: ...

# measure
class Slot:
    @property
    def footprint(self) -> int: ...
    def slowed(self, delay_ppm: int, /) -> Slot: ...
    def results(self) -> bytes: ...
    def count(self) -> tuple[int, bytes]: ...
    def run(self, placement: int, /) -> int: ...
    def sample(self, stride: int, phase: int, /) -> tuple[int, bytes]: ...
    def reference(self) -> tuple[bytes, bytes]: ...
    def expected(self, chunk: int, /) -> bytes: ...

class Measured(TypedDict):
    rounds: int
    ticks: bytes
    undelayed: bytes
    ledger: bytes
    mismatches: list[int]
    interrupted: bool

def slot(
    arm: str, handlers: HandlerSet, packets: Buffer, frequency: Buffer | None = ..., delay_ppm: int = ...
) -> Slot: ...
def measure(
    slots: tuple[Slot, ...],
    block: int,
    rounds: int,
    order: Buffer,
    placement: Buffer,
    window: Buffer,
    shift: Buffer,
    lead: int,
    cpu: int,
    ticks_per_ns: float,
    progress: Callable[[int], object] | None = ...,
) -> Measured: ...
def ledger_columns() -> list[str]: ...
