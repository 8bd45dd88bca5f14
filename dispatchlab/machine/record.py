"""A recorded tree: the files that an answer came from, and of those only what the answer needs, so that nothing names the machine.

The list below allows. A file that is read and stands not in it is an error of this package and not written.
"""

import errno
import re
import secrets
import shutil
from collections.abc import Callable
from pathlib import Path

from ..errors import Error, UsageError, explain
from ..files import check_writable
from .allowed import GROUPS, STATUS
from .conditions import CPUINFO
from .interrupts import counts_only
from .tree import UNREADABLE, Tree

Keep = Callable[[str], str]


def _only(keys: tuple[str, ...]) -> Keep:
    """Lines "key: value" of these keys; empty lines part processors."""

    def keep(text: str) -> str:
        lines = text.splitlines()
        return "\n".join(line for line in lines if not line.strip() or line.partition(":")[0].strip() in keys)

    return keep


def _values(text: str) -> str:
    """One short line out of letters, digits and the signs of lists, as settings have it."""
    return text if re.fullmatch(r"[\w ,.:/()\[\]+-]{0,20000}", text.rstrip("\0")) else ""


def _nameless(text: str) -> str:
    """Hierarchies that may hold a cpuset, without the names of their groups, which are those of users and containers."""
    rows = [row for line in text.splitlines() if len(row := line.split(":", 2)) == 3]
    return "\n".join(f"{n}:{c}:/" for n, c, _ in rows if "cpuset" in c.split(",") or (n == "0" and not c))


def _release(text: str) -> str:
    """A kernel's number, and whether it is WSL's; the rest may name who built it, and for whom."""
    number = re.match(r"[\d.]+", text)
    return (number[0] if number else "") + ("-microsoft" if "microsoft" in text.lower() else "")


def _times(text: str) -> str:
    """The rows of CPUs in /proc/stat."""
    return "\n".join(line for line in text.splitlines() if re.match(r"cpu\d*\s", line))


_CPU = r"sys/devices/system/cpu"
ALLOWED: tuple[tuple[str, Keep], ...] = (
    (r"proc/cpuinfo", _only(CPUINFO)),
    (r"proc/interrupts", counts_only),
    (r"proc/stat", _times),
    (r"proc/uptime", _values),
    (GROUPS, _nameless),
    (STATUS, _only(("Cpus_allowed", "Cpus_allowed_list"))),
    (r"proc/sys/kernel/osrelease", _release),
    (r"proc/sys/kernel/(randomize_va_space|nmi_watchdog|perf_event_paranoid)", _values),
    (r"proc/device-tree/hypervisor/compatible", _values),
    (r"sys/hypervisor/type", _values),
    (r"sys/class/dmi/id/(sys_vendor|product_name)", _values),
    (r"sys/kernel/mm/transparent_hugepage/enabled", _values),
    (r"sys/devices/system/clocksource/clocksource0/(current|available)_clocksource", _values),
    (rf"{_CPU}/(online|offline|present|isolated|nohz_full)", _values),
    (rf"{_CPU}/smt/active", _values),
    (rf"{_CPU}/(intel_pstate/no_turbo|cpufreq/boost)", _values),
    (rf"{_CPU}/(cpufreq/policy\d+|cpu\d+/cpufreq)/(scaling_(governor|driver|min_freq|max_freq)|cpuinfo_max_freq|boost)", _values),
    (rf"{_CPU}/cpu\d+/cpu_capacity", _values),
    (rf"{_CPU}/cpu\d+/topology/(physical_package_id|thread_siblings(_list)?)", _values),
    (rf"{_CPU}/cpu\d+/cache/index\d+/(level|type|size|shared_cpu_(list|map))", _values),
    (r"sys/devices/system/node/node\d+/(cpulist|cpumap)", _values),
    (r"sys/devices/cpu_(core|atom|lowpower)/cpus", _values),
    (r"sys/bus/event_source/devices/\w+/type", _values),
    (r"sys/class/powercap/(intel|amd)-rapl(-mmio)?:\d+/name", _values),
    (r"sys/class/msr/msr0/dev", _values),
    (r"sys/fs/cgroup(/[a-z,]+)?/cpuset\.(effective_cpus|cpus|cpus\.effective)", _values),
)



def record(tree: Tree, folder: Path) -> int:
    """Write what the tree was asked for into a folder that is empty or not there yet: all of it or nothing; the number of files.
    UsageError, Error."""
    out = check_writable(folder)
    if any(out.iterdir()):
        raise UsageError(explain("holds files already", str(folder), "an empty folder", remedy="records are not mixed"))
    kept = recorded(tree)
    out = out.resolve()
    temporary = out.with_name(f".{secrets.token_hex(8)}.tmp")
    try:
        for name, text in kept.items():
            (temporary / name).parent.mkdir(parents=True, exist_ok=True)
            (temporary / name).write_text(f"{text}\n", encoding="utf-8")
        temporary.rename(out)
    except OSError as error:
        shutil.rmtree(temporary, ignore_errors=True)
        raise Error(explain("cannot be written", str(folder), got=error.strerror or str(error))) from error
    return len(kept)


def recorded(tree: Tree) -> dict[str, str]:
    """The texts of a record by path; what was there and could not be read stands in one file of its own."""
    kept = {name: _keep(name)(text).strip() for name, text in sorted(tree.kept.items())}
    for name in tree.refused:
        _keep(name)  # its name must be in the list too
    refused = [f"{errno.errorcode.get(code, 'EIO')} {name}" for name, code in sorted(tree.refused.items())]
    return {**kept, UNREADABLE: "\n".join(refused)} if refused else kept


def _keep(name: str) -> Keep:
    for pattern, keep in ALLOWED:
        if re.fullmatch(pattern, name):
            return keep
    raise LookupError(f"{name} is read and is not in the list of what may be recorded")
