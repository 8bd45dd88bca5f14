"""What is done for the measured process alone, a command or this one, and how signals are kept from falling in between.

Signals only set a mark while a command is tuned for, so that none can fall between a write and its undoing.
"""

import contextlib
import ctypes
import os
import select
import signal
import subprocess
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

from ..errors import UsageError, explain
from .tune import Outcome, Tuner, request

NO_RANDOMIZE = 0x0040000
ASK = 0xFFFFFFFF
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
GRACE = 3.0
"""Seconds a command gets to end by itself, after Ctrl-C and after each signal sent to it."""


def _personality(value: int) -> int:
    """Set this thread's personality, or ask for it with ASK; the one before."""
    return int(ctypes.CDLL(None).personality(ctypes.c_ulong(value)))


class Signals:
    """Collects the signals that would end us, in `got`, until left. `fd` becomes readable with each."""

    def __init__(self) -> None:
        self.got: list[int] = []

    def __enter__(self) -> "Signals":
        self.main = threading.current_thread() is threading.main_thread()
        self.fd, self._write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        if self.main:
            self._wakeup = signal.set_wakeup_fd(self._write, warn_on_full_buffer=False)
            self._old = {s: signal.signal(s, self._mark) for s in SIGNALS}
        return self

    def _mark(self, number: int, frame: FrameType | None) -> None:
        self.got.append(number)

    def stop(self) -> bool:
        """Whether one came."""
        return bool(self.got)

    def __exit__(self, *exc: object) -> None:
        if self.main:
            for number, handler in self._old.items():
                signal.signal(number, handler)
            signal.set_wakeup_fd(self._wakeup)
        os.close(self.fd)
        os.close(self._write)


def enter(tuner: Tuner) -> None:
    """Give the calling process what is its own. What is refused shows when it is read back."""
    own, r, group = tuner.own(), tuner.request, tuner.group()
    if group:
        with contextlib.suppress(OSError):
            (group / "cgroup.procs").write_bytes(b"0")
    if "pin" in own:
        with contextlib.suppress(OSError):
            os.sched_setaffinity(0, {r.cpu})
    if "realtime" in own:
        with contextlib.suppress(OSError):
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(r.priority))
    if "aslr" in own:
        _personality(_personality(ASK) | NO_RANDOMIZE)


def verify(tuner: Tuner, pid: int) -> list[Outcome]:
    """What process `pid` has of its own, read back from the kernel."""
    r, group = tuner.request, tuner.group()
    own = tuner.own() + (("cpuset",) if group else ())
    return [_verified(name, pid, r.cpu, group) for name in own]


def _verified(name: str, pid: int, cpu: int, group: Path | None) -> Outcome:
    try:
        if name == "aslr":
            bits = int(Path(f"/proc/{pid}/personality").read_text("ascii"), 16)
            done, after = bool(bits & NO_RANDOMIZE), f"personality {bits:x}"
        elif name == "pin":
            cpus = os.sched_getaffinity(pid)
            done, after = cpus == {cpu}, "CPUs " + ",".join(map(str, sorted(cpus)))
        elif name == "realtime":
            done = os.sched_getscheduler(pid) == os.SCHED_FIFO
            after = f"SCHED_FIFO {os.sched_getparam(pid).sched_priority}" if done else "not real-time"
        else:
            done = group is not None and f"/{group.name}\n" in Path(f"/proc/{pid}/cgroup").read_text("utf-8")
            after = "in the group" if done else "not in the group"
    except OSError as error:
        return Outcome(name, f"process {pid}", why=f"not read back: {error.strerror}")
    return Outcome(name, f"process {pid}", "", after, done, "" if done else "the kernel refused")


def command(tuner: Tuner, argv: Sequence[str], signals: Signals) -> tuple[int, list[Outcome]]:
    """Run a command to its end; its exit code as a shell gives it, and what it had of its own. UsageError when it cannot start."""
    real = tuner.request.root == Path("/")

    def prepare() -> None:
        if real:
            enter(tuner)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)

    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    try:
        child = subprocess.Popen(argv, preexec_fn=prepare)
    except OSError as error:
        raise UsageError(explain("cannot be run", argv[0], got=error.strerror or "")) from error
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
    outcomes = verify(tuner, child.pid) if real else []
    _wait(child, signals)
    code = child.returncode
    return (128 - code if code < 0 else code), outcomes


def _wait(child: "subprocess.Popen[bytes]", signals: Signals) -> None:
    """Until it has ended. A terminal's Ctrl-C reaches it too: it gets time first, and is sent signals only when it stays."""
    ends = os.pidfd_open(child.pid)
    try:
        if not signals.got:
            select.select([ends, signals.fd], [], [])
        typed = signals.got[:1] == [signal.SIGINT]
        steps = (None, signal.SIGINT, signal.SIGTERM, signal.SIGKILL) if typed else (signal.SIGTERM, signal.SIGKILL)
        for number in steps:
            if select.select([ends], [], [], 0)[0]:
                break
            if number is not None:
                child.send_signal(number)
            select.select([ends], [], [], GRACE)
    finally:
        os.close(ends)
        child.wait()


@contextlib.contextmanager
def tuned(
    cpu: int | None = None, only: Sequence[str] = (), skip: Sequence[str] = (), priority: int = 0, root: str = "/"
) -> Iterator[list[Outcome]]:
    """The machine tuned for this process; gives what became of each knob. Afterwards everything is as it was, also after an
    exception, Ctrl-C or SIGTERM (raised as SystemExit). ASLR concerns processes started inside. UsageError, ToolError (another tuner
    is at work), Error (something could not be put back: the journal is kept)."""
    tuner = Tuner(request(Path(root), cpu, True, priority, only), only, skip)
    real = tuner.request.root == Path("/")
    before: Any = (os.sched_getaffinity(0), os.sched_getscheduler(0), os.sched_getparam(0), _personality(ASK))
    signals = Signals()
    try:
        with signals:
            outcomes = tuner.turn(signals.stop)
            if real:
                enter(tuner)
                outcomes = [*outcomes, *verify(tuner, os.getpid())]
        _again(signals)
        with _terminated():
            yield outcomes
    finally:
        with Signals() as late:
            try:
                tuner.end()
            finally:
                if real:
                    os.sched_setscheduler(0, before[1], before[2])
                    os.sched_setaffinity(0, before[0])
                    _personality(before[3])
        _again(late)


@contextlib.contextmanager
def _terminated() -> Iterator[None]:
    """SIGTERM and SIGHUP raise SystemExit inside, so that what is after runs."""

    def leave(number: int, frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    mine = (signal.SIGTERM, signal.SIGHUP) if threading.current_thread() is threading.main_thread() else ()
    old = {s: signal.signal(s, leave) for s in mine if signal.getsignal(s) is signal.SIG_DFL}
    try:
        yield
    finally:
        for number, handler in old.items():
            signal.signal(number, handler)


def _again(signals: Signals) -> None:
    """Let the signal that was held do what it does."""
    for number in signals.got[:1]:
        signal.raise_signal(number)
