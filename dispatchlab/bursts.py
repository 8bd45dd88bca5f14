"""One repetition of study `noise` in a process of its own: `python -m dispatchlab.bursts '{"cpu": 1, ...}'` prints one JSON object.

Every knob here is the process's own - affinity, address layout, huge pages, priority - so nothing of the machine has to be put
back, whatever happens to the process.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from . import _engine
from .between import refuse
from .handlers import handlers
from .traffic import uniform

ADDR_NO_RANDOMIZE = 0x0040000
ASK = 0xFFFFFFFF
PR_SET_THP_DISABLE, PR_GET_THP_DISABLE = 41, 42
SUMS = 256
IDLE_NS = 2_000_000
HANDLERS = 100


@dataclass(frozen=True)
class Knobs:
    """cpu: pin to it. fixed: no random addresses. small: no huge pages. real_time: SCHED_FIFO, the least priority of it."""

    cpu: int | None = None
    fixed: bool = False
    small: bool = False
    real_time: bool = False


def turn(knobs: Knobs) -> None:
    """Set every knob of this process but the address layout and read it back; OSError where the kernel refuses."""
    libc = ctypes.CDLL(None, use_errno=True)
    if knobs.small and (libc.prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0) != 0 or libc.prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0) != 1):
        raise OSError(ctypes.get_errno(), f"huge pages cannot be refused: {os.strerror(ctypes.get_errno())}")
    if knobs.real_time:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(os.sched_get_priority_min(os.SCHED_FIFO)))
    if knobs.cpu is not None:
        os.sched_setaffinity(0, {knobs.cpu})


def fix_addresses(arguments: list[str]) -> None:
    """Begin this program again without random addresses, unless that is done. OSError where the kernel refuses."""
    libc = ctypes.CDLL(None, use_errno=True)
    before = libc.personality(ASK)
    if before != -1 and before & ADDR_NO_RANDOMIZE:
        return
    if before == -1 or libc.personality(before | ADDR_NO_RANDOMIZE) == -1 or not libc.personality(ASK) & ADDR_NO_RANDOMIZE:
        raise OSError(ctypes.get_errno(), "the address layout cannot be fixed")
    os.execv(sys.executable, [sys.executable, "-P", "-m", "dispatchlab.bursts", *arguments])


def dispatching(passes: int, rate: float) -> list[float]:
    """ns/packet of each pass of table-compact over its pool, on whatever CPU the process may use. Error for a wrong checksum."""
    hs = handlers(HANDLERS)
    packets = uniform(hs).packets
    slot = _engine.slot("table-compact", hs.engine, packets)
    right = slot.run(0)
    found = []
    for _ in range(passes):
        begin = _engine.clock_reading()
        checksum = slot.run(0)
        found.append((_engine.clock_reading() - begin) / rate / len(packets))
        refuse([] if checksum == right else [f"table-compact: checksum {checksum:x}, not {right:x}"])
    return found


def repetition(bursts: int) -> dict[str, float]:
    """Mean ns of a burst of serial sums, of one of vectorised sums, and ns/packet of a dispatch, each over `bursts`."""
    rate = _engine.clock_info()["ticks_per_ns"]
    serial, lanes = (
        float(np.frombuffer(_engine.cost_bursts(bursts, SUMS, IDLE_NS, wide), np.int64).mean() / rate) for wide in (False, True)
    )
    return {"serial": serial, "vectorised": lanes, "dispatch": float(np.mean(dispatching(bursts, rate)))}


def main(arguments: list[str]) -> int:
    """Prints {"serial": ns, ...}, or {"refused": why} when a knob cannot be turned."""
    asked: dict[str, Any] = json.loads(arguments[0])
    bursts = int(asked.pop("bursts"))
    knobs = Knobs(**asked)
    try:
        if knobs.fixed:
            fix_addresses(arguments)
        turn(knobs)
    except OSError as error:
        print(json.dumps({"refused": error.strerror or str(error)}))
        return 0
    print(json.dumps(repetition(bursts)))
    return 0


def command(knobs: Knobs, bursts: int) -> list[str]:
    """What runs one repetition."""
    return [sys.executable, "-P", "-m", "dispatchlab.bursts", json.dumps({**asdict(knobs), "bursts": bursts})]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
