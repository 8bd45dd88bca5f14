from collections.abc import Callable
from typing import Any, TypedDict, TypeVar

import numpy as np
from numpy.typing import NDArray

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
def allowed_cpus() -> list[int]: ...
def pinned(cpu: int, call: Callable[[], _T], /) -> _T: ...
def ledger_call(call: Callable[[], Any], cpu: int = ..., /) -> dict[str, int]: ...
def counter_reason(why: int, /) -> str: ...
def count_call(call: Callable[[], Any], cpu: int = ..., /) -> dict[str, CounterReading]: ...
