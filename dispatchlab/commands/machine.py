"""dispatchlab machine: what this machine is, what is set badly for measuring, and which CPU to pin to."""

import argparse
from collections.abc import Iterator, Mapping
from pathlib import Path

from tabulate import tabulate

from .. import strictjson, wording
from ..errors import UsageError, explain
from ..files import write_atomic
from ..machine.cpulist import list_of
from ..machine.document import document, grouped
from ..machine.record import record
from ..machine.report import Machine, machine, tree_of
from ..machine.topology import Cpus

LONGEST = 60
"""Letters of a list in the table; --json has them all."""
KINDS = ("svg", "png")


def add(sub: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Register the command."""
    parser = sub.add_parser(
        "machine",
        help="what this machine is, and which CPU to pin to",
        description="Tell packages, NUMA nodes, cores and their kinds, caches and who shares them, the allowed CPUs, and each "
        "setting that makes timings vary: ok, bad for benchmarking, or unknown, with why. Recommend the CPU to pin to. Nothing "
        "is changed.",
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of the tables")
    parser.add_argument("--draw", type=Path, metavar="FILE", help="draw the machine as nested boxes into a .svg or .png")
    parser.add_argument("--root", default="/", metavar="DIR", help="read a recorded tree instead of the machine")
    parser.add_argument("--record", type=Path, metavar="DIR", help="write what was read into an empty folder, for --root")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Tell, and draw or record where asked to."""
    if args.draw and args.draw.suffix[1:] not in KINDS:
        raise UsageError(explain("cannot draw that", str(args.draw), "a name that ends in " + " or ".join(f".{k}" for k in KINDS)))
    tree = tree_of(args.root)
    m = machine(tree)
    if args.draw:
        from ..machine.draw import draw, rendered

        write_atomic(args.draw, rendered(draw(m), args.draw.suffix[1:]))
    if args.record:
        record(tree, args.record)
    print(strictjson.render(strictjson.plain(document(m))) if args.json else text(m))
    return 0


def text(m: Machine) -> str:
    """How it is built, how it is set, and the choice."""
    built = tabulate(list(_built(m)), ("", "CPUs and what they share"), disable_numparse=True)
    rows = [(name, s.state, cut(s.value or ""), s.why) for name, s in m.settings.items()]
    judged = tabulate(rows, ("setting", "state", "value", "why"), disable_numparse=True)
    pin = f"Pin to CPU {m.choice.cpu}" if m.choice.cpu is not None else "No CPU to recommend"
    return f"{built}\n\n{judged}\n\n{pin}: {'; '.join(m.choice.why)}."


def _built(m: Machine) -> Iterator[tuple[str, str]]:
    def told(name: str, value: str | None) -> tuple[str, str]:
        return name, f"unknown: {m.unread.get(name, m.unread.get(name.replace(' ', '_'), 'not told'))}" if value is None else value

    yield told("cpu model", m.cpu_model)
    yield told("packages", _sets(m.packages))
    yield told("nodes", _sets(m.nodes))
    yield told("cores", None if m.cores is None else _cores(m.cores))
    yield told("online", None if m.online is None else f"{len(m.online)}: {cut(list_of(m.online))}")
    yield told("offline", None if m.offline is None else cut(list_of(m.offline)) or "none")
    if m.kinds is None:
        yield told("kinds", None)
    for kind in m.kinds or ():
        yield "kind", f"{kind.name}: {cut(list_of(kind.cpus))} ({kind.why})"
    if m.caches is None:
        yield told("caches", None)
    for (level, kind_of, size), shared in grouped(m.caches or ()).items():
        bytes_of = "of unknown size" if size is None else wording.size(size)
        yield f"L{level} {kind_of}", f"{len(shared)} of {bytes_of}: {_shared(shared)}"
    counts = None if m.interrupts is None else "; ".join(f"{cpu}: {count}" for cpu, count in m.interrupts.items())
    yield told("interrupts", None if counts is None else f"of devices since boot, {cut(counts)}")
    yield told("affinity", None if m.allowed.affinity is None else cut(list_of(m.allowed.affinity)))
    yield told("cpuset", None if m.allowed.group is None else f"{cut(list_of(m.allowed.group))} ({m.allowed.version})")


def _sets(sets: Mapping[int, Cpus] | None) -> str | None:
    if sets is None:
        return None
    each = "; ".join(f"{number}: {list_of(cpus) or 'no CPU'}" for number, cpus in sets.items())
    return f"{len(sets)} ({cut(each)})"


def _cores(found: tuple[Cpus, ...]) -> str:
    threads = sorted({len(core) for core in found})
    several = [core for core in found if len(core) > 1]
    told = f"{len(found)} of {' or '.join(map(str, threads))} threads"
    return f"{told}: {_shared(several)}" if several else told


def _shared(sets: list[Cpus]) -> str:
    return cut(" | ".join(list_of(cpus) for cpus in sets))


def cut(text: str) -> str:
    """At most so many letters."""
    return text if len(text) <= LONGEST else text[: LONGEST - 4] + " ..."
