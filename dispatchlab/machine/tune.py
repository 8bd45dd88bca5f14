"""Turn the knobs of a machine for as long as a command runs, and put every one back.

Order of things: every old value into the journal, flushed; then the writes, each read back; then the command; then everything back in
reverse order; then the journal goes.
"""

import contextlib
import errno
import os
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..errors import Error, UsageError, explain
from ..measure import choose_cpu
from .allowed import allowed
from .cpulist import list_of
from .journal import Entry, Journal, place
from .knobs import KNOBS, Change, Plan, Request, chosen, cpus_or_none, read
from .recommend import recommend
from .topology import online
from .tree import Tree


@dataclass(frozen=True)
class Outcome:
    """What became of one knob. before, after: its values, "" when untouched; done: read back as wanted; why: why not."""

    knob: str
    what: str
    before: str = ""
    after: str = ""
    done: bool = False
    why: str = ""


def request(root: Path, cpu: int | None, command: bool, priority: int, only: Sequence[str]) -> Request:
    """What is wanted, with the CPU chosen; UsageError for a CPU outside the allowed set or a bad root."""
    if not root.is_dir():
        raise UsageError(explain("is not a folder", str(root), "/ or a recorded tree"))
    root = root.resolve()
    if not 0 <= priority <= 99:
        raise UsageError(explain("no such real-time priority", "--priority", "1 to 99", str(priority)))
    if root == Path("/"):
        mine = choose_cpu(cpu)
        return Request(root, mine, frozenset(os.sched_getaffinity(0)), command, priority, tuple(only))
    tree = Tree(root)
    cpus = allowed(tree, tree.fact("online", lambda: online(tree)) or frozenset({0})).cpus
    if cpu is not None and cpu not in cpus:
        raise UsageError(explain("CPU is not in the allowed set", "--cpu", list_of(cpus), str(cpu)))
    best = recommend(tree, cpus).cpu if cpu is None else cpu
    assert best is not None, "the set is never empty"
    return Request(root, best, cpus, command, priority, tuple(only))


def plans(r: Request, only: Sequence[str] = (), skip: Sequence[str] = ()) -> list[Plan]:
    """Every wanted knob's plan, in the order of turning. UsageError for an unknown knob."""
    for name in (*only, *skip):
        if name not in KNOBS:
            raise UsageError(explain("no such knob", name, "one of " + ", ".join(KNOBS)))
    return [plan(r) for name, plan in KNOBS.items() if name not in skip and (not only or name in only)]


def boot(root: Path) -> str:
    """The id of the running boot, "unknown" where the kernel gives none."""
    return (read(root, "proc/sys/kernel/random/boot_id") or "unknown").strip()


def write(root: Path, path: str, value: str) -> None:
    """The one place that writes to the machine. Files are made only in a tree that is not the machine itself."""
    make = os.O_CREAT if root != Path("/") else 0
    fd = os.open(root / path, os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC | make, 0o644)
    try:
        os.write(fd, value.encode("utf-8", "surrogateescape"))
    finally:
        os.close(fd)


def entries(r: Request, wanted: Sequence[Plan]) -> list[Entry]:
    """Everything there is to undo, in the order of doing."""
    found = []
    for plan in wanted:
        inside = plan.group + "/"
        outside = [c for c in plan.changes if not plan.group or not c.path.startswith(inside)]
        for c in outside:
            old = read(r.root, c.path) or ""
            found.append(Entry("write", c.path, old, c.undo or chosen(old)))
        if plan.group:
            found.append(Entry("group", plan.group))
    return found


def turn(r: Request, wanted: Sequence[Plan], stop: Callable[[], bool]) -> list[Outcome]:
    """Write every plan's changes and read each back. Ends early when `stop` says so."""
    out = []
    for plan in wanted:
        if plan.why:
            out.append(Outcome(plan.knob, "", why=plan.why))
        for change in plan.changes:
            if stop():
                return out
            out.append(_write(r, plan, change))
    return out


def _write(r: Request, plan: Plan, change: Change) -> Outcome:
    before = chosen(read(r.root, change.path) or "")
    try:
        if plan.group and change.path.startswith(plan.group + "/"):
            (r.root / plan.group).mkdir(exist_ok=True)
        write(r.root, change.path, change.value)
    except OSError as error:
        return Outcome(plan.knob, change.path, before, before, why=f"the kernel refused: {error.strerror}")
    after = chosen(read(r.root, change.path) or "")
    done = same(after, change.value)
    why = "" if done else f"asked for {change.value}, reads {after or 'nothing'}"
    return Outcome(plan.knob, change.path, before, after, done, why)


def same(now: str, wanted: str) -> bool:
    """Whether what a file reads is what was written: the same text, the same CPUs, or a controller that is now in the list."""
    if now == wanted or (wanted.startswith("+") and wanted[1:] in now.split()):
        return True
    return cpus_or_none(now) is not None and cpus_or_none(now) == cpus_or_none(wanted)


def undo(root: Path, recorded: Sequence[Entry]) -> list[str]:
    """Put everything back, last first; what could not be, one line each. What is as it was is not written."""
    failed = []
    for entry in reversed(recorded):
        try:
            _undo(root, entry)
        except OSError as error:
            failed.append(f"/{entry.path}: {error.strerror or error}")
    return failed


def _undo(root: Path, entry: Entry) -> None:
    file = root / entry.path
    if entry.kind == "group":
        return _remove_group(root, file)
    if entry.path.startswith("proc/irq/") and not file.parent.exists():
        return None  # the device and its interrupt are gone
    if read(root, entry.path) == entry.old:
        return None
    write(root, entry.path, entry.undo if root == Path("/") else entry.old)
    now = read(root, entry.path)
    if now is None or not (now == entry.old or same(chosen(now), chosen(entry.old))):
        raise OSError(f"reads {chosen(now or '')}, was {chosen(entry.old)}")
    return None


def _remove_group(root: Path, group: Path) -> None:
    if not group.exists():
        return
    if root != Path("/"):
        shutil.rmtree(group)
        return
    for attempt in range(20):  # what was killed a moment ago may still be leaving
        for pid in (group / "cgroup.procs").read_text("ascii").split():
            with contextlib.suppress(ProcessLookupError):
                (group.parent / "cgroup.procs").write_text(pid, "ascii")
        try:
            group.rmdir()
            return
        except OSError as error:
            if error.errno != errno.EBUSY or attempt == 19:
                raise
        time.sleep(0.05)


def restore(root: Path, journal: Journal) -> list[str]:
    """Put back what an earlier tuner left in the journal and empty it; a line that tells what was done, none for an empty journal.
    Error, journal kept, when something could not be put back."""
    found = journal.found()
    if found is None:
        return []
    if not found.boot:
        line = f"{journal.path}: the journal is cut short before its first value: nothing had been changed, nothing is put back"
    elif found.boot != boot(root):
        line = f"{journal.path}: the journal is from another boot: the machine forgot those values by itself, none is written"
    else:
        put_back(root, journal, found.entries)
        cut = "" if found.whole else "; the journal is cut short, these are the values that are whole"
        line = f"put back what an earlier tuner left: {len(found.entries)} values{cut}"
    journal.clear()
    return [line]


def put_back(root: Path, journal: Journal, recorded: Sequence[Entry]) -> None:
    """Undo everything; Error, with the journal kept, when something stays."""
    if failed := undo(root, recorded):
        remedy = f"the journal {journal.path} is kept: dispatchlab tune --restore"
        raise Error(explain("could not be put back", "; ".join(failed), remedy=remedy))


class Tuner:
    """One tuning of one machine. lines: what was found of an earlier one; plans: what was wanted; outcomes: what became of it."""

    def __init__(self, r: Request, only: Sequence[str] = (), skip: Sequence[str] = ()) -> None:
        plans(r, only, skip)  # refuses unknown names before anything is made
        self.request = r
        self.journal = Journal(place(r.root))
        self.recorded: list[Entry] = []
        self.outcomes: list[Outcome] = []
        try:
            self.lines = restore(r.root, self.journal)
            self.plans = plans(r, only, skip)
            self.recorded = entries(r, self.plans)
            self.journal.record(boot(r.root), self.recorded)
        except BaseException:
            self.journal.close()
            raise

    def turn(self, stop: Callable[[], bool]) -> list[Outcome]:
        """Write everything, each read back. Ends early when `stop` says so."""
        self.outcomes = turn(self.request, self.plans, stop)
        return self.outcomes

    def own(self) -> tuple[str, ...]:
        """What the process that is measured gets for itself."""
        return tuple(p.own for p in self.plans if p.own)

    def group(self) -> Path | None:
        """The control group that was made, None without one."""
        made = [self.request.root / p.group for p in self.plans if p.group]
        return made[0] if made and made[0].exists() else None

    def end(self) -> None:
        """Everything back, and the journal gone. Error, journal kept, when something stays."""
        try:
            put_back(self.request.root, self.journal, self.recorded)
            self.journal.clear()
        finally:
            self.journal.close()

    def leave(self) -> None:
        """Let the machine be tuned; the journal stays for --restore."""
        self.journal.close()
