"""The knobs: what each would change on the machine below a root, or why it cannot. Nothing here writes."""

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from .cpulist import cpus_of, list_of

CPU = "sys/devices/system/cpu"
GROUP = "dispatchlab"
NEEDS_COMMAND = "concerns one command only: give one after --"


@dataclass(frozen=True)
class Change:
    """One write. path: below the root; value: what is written; undo: what a kernel takes to undo it, "" for the
    old choice."""

    path: str
    value: str
    undo: str = ""


@dataclass(frozen=True)
class Plan:
    """One knob's part. changes: in order; group: a control group to make first, "" for none; own: what only the command's process
    gets ("aslr", "pin", "realtime"), "" for nothing; why: why nothing is done, "" when something is."""

    knob: str
    changes: tuple[Change, ...] = ()
    group: str = ""
    own: str = ""
    why: str = ""


@dataclass(frozen=True)
class Request:
    """What is wanted. cpu: the chosen CPU; cpus: the allowed ones; command: whether one is run; priority: real-time, 0 for none."""

    root: Path
    cpu: int
    cpus: frozenset[int]
    command: bool
    priority: int = 0
    only: tuple[str, ...] = field(default=())


def read(root: Path, path: str) -> str | None:
    """The text of a file below the root, None when it is missing or cannot be read."""
    try:
        return (root / path).read_bytes().decode("utf-8", "surrogateescape")
    except OSError:
        return None


def chosen(text: str) -> str:
    """The value a kernel file shows: the word in brackets where there is one, else the text without blanks around it."""
    words = [w for w in text.split() if w.startswith("[") and w.endswith("]")]
    return words[0][1:-1] if len(words) == 1 else text.strip()


def _change(r: Request, knob: str, path: str, value: str) -> Plan:
    """A plan with one write, or why not."""
    why = _why_not(r, path)
    if not why and chosen(read(r.root, path) or "") == value:
        why = f"is {value} already"
    return Plan(knob, why=why) if why else Plan(knob, (Change(path, value),))


def _why_not(r: Request, path: str) -> str:
    file = r.root / path
    if not file.exists():
        return "not available here: no /" + path
    if read(r.root, path) is None:
        return f"/{path} cannot be read"
    if not file.stat().st_mode & 0o222:
        return f"/{path} is read-only here"
    return "" if os.access(file, os.W_OK) else f"/{path} cannot be written by this user: needs root"


def _all(r: Request, knob: str, changes: list[Change], none: str) -> Plan:
    """A plan of several writes, without those that change nothing; why not when none is left."""
    reasons = [why for c in changes if (why := _why_not(r, c.path))]
    able = [c for c in changes if not _why_not(r, c.path)]
    needed = tuple(c for c in able if chosen(read(r.root, c.path) or "") != c.value)
    if needed:
        return Plan(knob, needed)
    return Plan(knob, why=reasons[0] if reasons else f"is {able[0].value} already" if able else none)


def _policies(r: Request) -> list[str]:
    return sorted(str(p.relative_to(r.root)) for p in (r.root / CPU / "cpufreq").glob("policy*"))


def _governor(r: Request) -> Plan:
    changes = []
    for policy in _policies(r):
        offered = (read(r.root, f"{policy}/scaling_available_governors") or "").split()
        if not (read(r.root, f"{policy}/scaling_governor") or "").strip():
            return Plan("governor", why=f"/{policy}/scaling_governor is empty: the driver has none")
        if offered and "performance" not in offered:
            return Plan("governor", why=f"/{policy} offers {', '.join(offered)} only")
        changes.append(Change(f"{policy}/scaling_governor", "performance"))
    return _all(r, "governor", changes, "not available here: no cpufreq")


def _floor(r: Request) -> Plan:
    changes = []
    for policy in _policies(r):
        if most := (read(r.root, f"{policy}/scaling_max_freq") or "").strip():
            changes.append(Change(f"{policy}/scaling_min_freq", most))
    return _all(r, "floor", changes, "not available here: no cpufreq")


def _turbo(r: Request) -> Plan:
    if (r.root / CPU / "intel_pstate/no_turbo").exists():
        return _change(r, "turbo", f"{CPU}/intel_pstate/no_turbo", "1")
    if (r.root / CPU / "cpufreq/boost").exists():
        return _change(r, "turbo", f"{CPU}/cpufreq/boost", "0")
    changes = [Change(f"{p}/boost", "0") for p in _policies(r) if (r.root / p / "boost").exists()]
    return _all(r, "turbo", changes, "not available here: no intel_pstate, cpufreq/boost or policy boost")


def _smt(r: Request) -> Plan:
    now = (read(r.root, f"{CPU}/smt/control") or "").strip()
    if now and now != "on":
        return Plan("smt", why=f"the kernel says {now}")
    siblings = cpus_or_none(read(r.root, f"{CPU}/cpu{r.cpu}/topology/thread_siblings_list"))
    if siblings and min(siblings) != r.cpu:
        return Plan("smt", why=f"CPU {r.cpu} would go offline: it is the sibling of {min(siblings)}")
    return _change(r, "smt", f"{CPU}/smt/control", "off")


def cpus_or_none(text: str | None) -> frozenset[int] | None:
    """The CPUs in a file's text, None where it is missing, empty or not a list."""
    try:
        return cpus_of(text or "") or None
    except ValueError:
        return None


def _irq(r: Request) -> Plan:
    others = r.cpus - {r.cpu}
    if not others:
        return Plan("irq", why=f"CPU {r.cpu} is the only one: interrupts have nowhere to go")
    changes = []
    for file in sorted((r.root / "proc/irq").glob("*/smp_affinity_list"), key=lambda f: f.parent.name):
        path = str(file.relative_to(r.root))
        now = cpus_or_none(read(r.root, path))
        if now and r.cpu in now:
            changes.append(Change(path, list_of((now & r.cpus) - {r.cpu} or others)))
    return _all(r, "irq", changes, f"no interrupt may go to CPU {r.cpu}")


def _cpuset(r: Request) -> Plan:
    if not r.command:
        return Plan("cpuset", why=NEEDS_COMMAND)
    for base in ("sys/fs/cgroup", "sys/fs/cgroup/unified"):
        if "cpuset" in (read(r.root, f"{base}/cgroup.controllers") or "").split():
            return _group(r, base, _v2(r, base, f"{base}/{GROUP}"))
    base = "sys/fs/cgroup/cpuset"
    mems = (read(r.root, f"{base}/cpuset.mems") or "").strip()
    if not mems:
        return Plan("cpuset", why="not available here: no cpuset controller, v2 or v1")
    values = {"cpuset.cpus": str(r.cpu), "cpuset.mems": mems, "cpuset.cpu_exclusive": "1"}
    return _group(r, base, [Change(f"{base}/{GROUP}/{name}", value) for name, value in values.items()])


def _v2(r: Request, base: str, group: str) -> list[Change]:
    enabled = "cpuset" in (read(r.root, f"{base}/cgroup.subtree_control") or "").split()
    first = [] if enabled else [Change(f"{base}/cgroup.subtree_control", "+cpuset", "-cpuset")]
    return [*first, Change(f"{group}/cpuset.cpus", str(r.cpu)), Change(f"{group}/cpuset.cpus.partition", "root")]


def _group(r: Request, base: str, changes: list[Change]) -> Plan:
    group = f"{base}/{GROUP}"
    if (r.root / group).exists():
        return Plan("cpuset", why=f"/{group} is there already and not ours")
    if not os.access(r.root / base, os.W_OK):
        return Plan("cpuset", why=f"/{base} cannot be written by this user: needs root")
    return Plan("cpuset", tuple(changes), group=group)


def _own(knob: str) -> Callable[[Request], Plan]:
    return lambda r: Plan(knob, own=knob) if r.command else Plan(knob, why=NEEDS_COMMAND)


def _realtime(r: Request) -> Plan:
    return _own("realtime")(r) if r.priority else Plan("realtime", why="not asked for: --priority N")


KNOBS: dict[str, Callable[[Request], Plan]] = {
    "governor": _governor,
    "floor": _floor,
    "turbo": _turbo,
    "nmi-watchdog": lambda r: _change(r, "nmi-watchdog", "proc/sys/kernel/nmi_watchdog", "0"),
    "thp": lambda r: _change(r, "thp", "sys/kernel/mm/transparent_hugepage/enabled", "never"),
    "aslr-system": lambda r: (
        _change(r, "aslr-system", "proc/sys/kernel/randomize_va_space", "0")
        if "aslr-system" in r.only
        else Plan("aslr-system", why="not asked for: --only aslr-system; the command alone gets aslr")
    ),
    "irq": _irq,
    "cpuset": _cpuset,
    "smt": _smt,
    "aslr": _own("aslr"),
    "pin": _own("pin"),
    "realtime": _realtime,
}
"""In the order they are turned; put back in the reverse one: SMT goes off last and comes back first, so that every CPU's files are
there when they are written."""
