"""dispatchlab audit FILE: predicates that do not factor, and what they make of a table."""

import argparse

from .. import strictjson
from ..audit import DEGENERATE, HOLD, Audit, Bucket, Probes, audit
from ..audittable import read
from ..report import as_text
from ..tables import Table

MOST_ROWS = 20


def add(sub: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Register the command."""
    parser = sub.add_parser(
        "audit",
        help="what predicates that do not factor make of a table",
        description="Read a table of handlers (CSV: name,key,residual,share; in the order of registration) and enumerate how many "
        "predicates a scan, a scan sorted by share and a table ask per packet, how long the lists behind the table's keys get, "
        "and whether sorting is legal. Runs nothing.",
    )
    parser.add_argument("file", metavar="FILE", help="key: 0..65535 or empty for none; residual: yes or no; share: part of traffic")
    parser.add_argument("--hold", type=float, default=HOLD, metavar="P", help=f"part of the packets to bound (default {HOLD})")
    parser.add_argument("--json", action="store_true", help="print JSON instead of the tables")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Enumerate and print."""
    found = audit(read(args.file), args.hold)
    print(strictjson.render(strictjson.plain(found.to_dict())) if args.json else text(found))
    return 0


def text(found: Audit) -> str:
    """Tables for people, and the answers below them."""
    parts = [as_text(_probes(found)), as_text(_lists(found)), "\n".join(answers(found))]
    return "\n\n".join(parts)


def _probes(found: Audit) -> Table:
    rows = tuple(
        (name, f"{p.mean:.3g}", f"{p.high:.3g}", str(p.worst))
        for name, p in (("scan", found.scan), ("scan sorted by share", found.ordered), ("table", found.table))
    )
    notes = [
        "Mean: over the shares; packets of handlers without a key carry keys that nobody names. Mean, at most: they carry those "
        "with the longest lists.",
        "Worst: the most that any packet needs, one that nobody wants among them.",
    ]
    heads = ("way", "mean", "mean, at most", "worst")
    return Table("audit-probes", f"Predicates asked per packet, {len(found.handlers)} handlers", heads, rows, tuple(notes))


def _lists(found: Audit) -> Table:
    longest = sorted(found.buckets, key=lambda b: -b.asked)
    rows = tuple((_key(b), str(b.asked), f"{100 * b.share:.3g} %", _named(b)) for b in longest[:MOST_ROWS])
    more = len(longest) - len(rows)
    notes = (f"And {more} more keys, with lists of {longest[len(rows)].asked} at most.",) if more else ()
    return Table("audit-lists", "What stands behind each key, the longest list first", ("key", "asked", "share", "list"), rows, notes)


def _key(b: Bucket) -> str:
    return "any other" if b.key is None else str(b.key)


def _named(b: Bucket) -> str:
    shown = ", ".join(b.names[:4])
    return f"{shown} and {len(b.names) - 4} more" if len(b.names) > 4 else shown or "nobody"


def answers(found: Audit) -> list[str]:
    """One line for each question."""
    lines = [_table_answer(found.table, found.ordered, found.degenerate)]
    over = [b for b in found.buckets if b.key in found.over]
    rest = f"{len(over)} keys have longer ones, up to {max(b.asked for b in over)}" if over else "none is longer"
    lines.append(f"Bound: lists of {found.bound} hold at least {100 * found.hold:g} % of the packets; {rest}.")
    lines.append(_sorting(found))
    if found.unreachable:
        lines.append(f"Never reached: {', '.join(found.unreachable)}: a handler before takes all that they could get.")
    return lines


def _table_answer(table: Probes, ordered: Probes, degenerate: str) -> str:
    part = f"{100 * table.mean / ordered.mean:.3g} %"
    if degenerate == "yes":
        return f"The table is the loop again: it asks {part} of what the sorted scan asks ({100 * DEGENERATE:g} % is the limit)."
    if degenerate == "no":
        return f"The table pays: it asks {part} of what the sorted scan asks ({100 * DEGENERATE:g} % is the limit)."
    most = f"{100 * table.high / ordered.mean:.3g} %"
    return (
        f"Whether the table pays depends on the keys that packets of handlers without a key carry: it asks {part} to {most} of what "
        f"the sorted scan asks ({100 * DEGENERATE:g} % is the limit). Measure those keys."
    )


def _sorting(found: Audit) -> str:
    if not found.rivals:
        return "Sorting is legal: no two handlers can match the same packet."
    if not found.swaps:
        return f"Sorting by share is legal: {found.rivals} pairs can match the same packet, and it turns none of them round."
    a, b = found.swapped[0]
    return (
        f"Sorting by share is NOT legal: it would turn round {found.swaps} of {found.rivals} pairs that can match the same packet, "
        f"{b} before {a} among them. The sorted scan above keeps them in order."
    )
