"""Interrupts of devices, per CPU, since boot."""

import re
from collections.abc import Mapping

from .settings import number
from .tree import Tree

FILE = "proc/interrupts"
UPTIME = "proc/uptime"


def interrupts(tree: Tree) -> Mapping[int, int]:
    """How many interrupts of devices each CPU took since boot: the numbered rows, without the timers that ARM and RISC-V number too.
    LookupError where the file has no CPU; OSError, ValueError."""
    head, *rows = tree.read(FILE).splitlines() or [""]
    cpus = [int(name) for name in re.findall(r"\bCPU(\d+)\b", head)]
    if not cpus:
        raise LookupError(f"{FILE} names no CPU")
    counts = [0] * len(cpus)
    for row in rows:
        name, _, rest = row.partition(":")
        if name.strip().isdigit() and "timer" not in rest:
            for place, word in enumerate(rest.split()[: len(cpus)]):
                counts[place] += int(number(FILE, word))
    return dict(zip(cpus, counts, strict=True))


def counts_only(text: str) -> str:
    """What of the file a recording may hold: the counts, and which rows are timers; devices have addresses in their names."""
    head, *rows = text.splitlines() or [""]
    columns = len(head.split())
    out = [head]
    for row in rows:
        name, _, rest = row.partition(":")
        if name.strip().isdigit():
            out.append(f"{name}: {' '.join(rest.split()[:columns])}{' timer' if 'timer' in rest else ''}")
    return "\n".join(out)


def uptime(tree: Tree) -> float:
    """Seconds since boot. OSError, ValueError."""
    seconds = number(UPTIME, (tree.read(UPTIME).split() or [""])[0])
    if seconds <= 0:
        raise ValueError(f"{UPTIME} tells no time since boot")
    return seconds
