"""Rules about the process that a plugin lives in."""

from __future__ import annotations

import ctypes as c
import locale
import os
import signal
import tempfile
import threading
import time
from pathlib import Path

from .host import Broken, Plugin, everything, libc, need, packets, rule, singles


@rule("no threads are left running")
def no_threads(p: Plugin) -> None:
    before = len(os.listdir("/proc/self/task"))
    everything(p)
    need(len(os.listdir("/proc/self/task")) <= before, "a thread was started")


def status_lines(*names: str) -> dict[str, str]:
    rows = (line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return {k: v.strip() for k, v in rows if k in names}


@rule("signal handlers and masks stay as they are")
def no_signals(p: Plugin) -> None:
    names = ("SigCgt", "SigIgn", "SigBlk")
    before = status_lines(*names)
    everything(p)
    after = status_lines(*names)
    need(after == before, ", ".join(k for k in names if after[k] != before[k]))


@rule("no timer is left running")
def no_timers(p: Plugin) -> None:
    everything(p)
    kinds = (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF)
    need(all(signal.getitimer(k) == (0.0, 0.0) for k in kinds), "a timer runs")


@rule("the locale stays as it is")
def no_locale(p: Plugin) -> None:
    locale.setlocale(locale.LC_ALL, "C")
    libc.setlocale.restype = c.c_char_p
    everything(p)
    got = libc.setlocale(6, None)
    need(got == b"C", str(got))


@rule("the rounding mode and the floating-point control stay as they are")
def no_rounding(p: Plugin) -> None:
    libm = c.CDLL("libm.so.6")

    def control() -> tuple[int, int]:
        env = (c.c_uint32 * 8)()
        libm.fegetenv(env)
        words = {"x86_64": env[7] & ~0x3F, "aarch64": env[0]}  # MXCSR without its sticky flags; FPCR
        return libm.fegetround(), words.get(os.uname().machine, 0)

    before = control()
    everything(p)
    after = control()
    need(after == before, f"control word 0x{before[1]:x} before, 0x{after[1]:x} after; rounding {before[0]}, {after[0]}")


@rule("the working directory, the umask and the environment stay as they are")
def no_process_state(p: Plugin) -> None:
    libc.getenv.restype = c.c_char_p
    before = os.getcwd(), status_lines("Umask"), libc.getenv(b"PATH"), libc.getenv(b"TZ")
    everything(p)
    need((os.getcwd(), status_lines("Umask"), libc.getenv(b"PATH"), libc.getenv(b"TZ")) == before, "changed")


@rule("no file is left open")
def no_files(p: Plugin) -> None:
    before = set(os.listdir("/proc/self/fd"))
    everything(p)
    left = set(os.listdir("/proc/self/fd")) - before
    need(len(left) <= 1, f"{len(left)} more")  # the listing itself opens one


@rule("nothing is printed")
def silent(p: Plugin) -> None:
    with tempfile.TemporaryFile() as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
        everything(p)
        libc.fflush(None)
        need(os.fstat(file.fileno()).st_size == 0, "something is")


@rule("no child process is started")
def no_children(p: Plugin) -> None:
    everything(p)
    try:
        need(os.waitpid(-1, os.WNOHANG) is None, "a child was started")
    except ChildProcessError:
        return


@rule("an instance may move to another thread")
def other_thread(p: Plugin) -> None:
    it, key, data = p.instance(), p.keys()[0], packets(20)
    here = [p.process(it, d, key) for d in data]
    there: list[tuple[int, int]] = []
    worker = threading.Thread(target=lambda: there.extend(p.process(it, d, key) for d in data))
    worker.start()
    worker.join()
    need(here == there, "other results there")


@rule("different instances may run at the same time")
def parallel_instances(p: Plugin) -> None:
    key, data = p.keys()[0], packets(300)
    wanted = [p.process(p.instance(), d, key) for d in data[:1]] and singles(p, data)
    found: list[list[int]] = []
    workers = [threading.Thread(target=lambda: found.append(singles(p, data))) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    need(found == [wanted] * 4, "other results in parallel")


@rule("many instances may live at the same time")
def many_instances(p: Plugin) -> None:
    alive = [p.instance() for _ in range(200)]
    for it in alive[::2] + alive[1::2]:
        p.table().destroy(it)


@rule("threads may end after the plugin ran in them")
def thread_end(p: Plugin) -> None:
    p.address()
    for _ in range(3):
        worker = threading.Thread(target=lambda: everything(p))
        worker.start()
        worker.join()


@rule("the process can end after everything was destroyed")
def ends(p: Plugin) -> None:
    everything(p)
    libc.exit.argtypes = [c.c_int]
    child = os.fork()
    if child == 0:
        libc.exit(0)  # with the destructors of the library
    deadline = time.monotonic() + 2
    while time.monotonic() < deadline:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            need(status == 0, f"a destructor at exit ends it with {status}")
            return
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    raise Broken("a destructor at exit does not come back")
