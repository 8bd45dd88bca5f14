"""Event counters of the CPU and the kernel around a piece of work."""

from collections.abc import Callable
from dataclasses import dataclass

from dispatchlab import _engine
from dispatchlab.errors import UsageError

_LONG_ENOUGH = 200_000  # additions: some milliseconds, so that every group that shares the PMU had its turn


@dataclass(frozen=True)
class Count:
    """What one counter saw, or why it saw nothing.

    value       events (task-clock: ns; cycles, frontend-stalls: cycles), scaled by enabled_ns / running_ns;
                None, never 0, where the counter cannot be read
    enabled_ns  how long the event was wanted while the thread ran
    running_ns  how long it was counting: less than enabled_ns when it shared its counter with other events
    source      "perf", or "accounting" where perf_event_open was refused and the kernel's own books
                (getrusage, the thread's CPU clock) tell the same; None without a value
    reason      one line, None with a value
    """

    value: int | None
    enabled_ns: int
    running_ns: int
    source: str | None
    reason: str | None


def count(call: Callable[[], object], cpu: int | None = None) -> dict[str, Count]:
    """Counts the calling thread during call(), pinned to cpu if one is given, by counter name.

    Hardware events count in user mode only, software events everywhere (perf_event_open(2)). What call()
    raises passes through. Raises UsageError when cpu is not in the allowed set.
    """
    if cpu is None:
        readings = _engine.count_call(call)
    elif cpu in (allowed := _engine.allowed_cpus()):
        readings = _engine.pinned(cpu, lambda: _engine.count_call(call, cpu))
    else:
        raise UsageError(f"cpu: expected one of the allowed CPUs {allowed}; got {cpu}")
    return {name: Count(**reading) for name, reading in readings.items()}


def available(cpu: int | None = None) -> dict[str, str | None]:
    """Why each counter cannot be read here, by name; None for those that can."""
    return {name: seen.reason for name, seen in count(lambda: sum(range(_LONG_ENOUGH)), cpu).items()}
