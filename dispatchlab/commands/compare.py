"""dispatchlab compare A B: did anything get slower between two recordings? Exit code 3 says yes."""

import argparse
import sys

from tabulate import tabulate

from ..compare import Comparison, Row, compare, differences
from ..errors import UsageError, explain
from ..recording import load

SLOWER = 3


def add(sub: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Register the command."""
    parser = sub.add_parser(
        "compare",
        help="two recordings side by side",
        description="Pair the equal cells of two recordings; say which got slower (exit code 3) or faster.",
    )
    parser.add_argument("old", metavar="A", help="the recording to compare against")
    parser.add_argument("new", metavar="B", help="the recording that may have got slower")
    parser.add_argument("--relative", action="store_true", help="compare ratios to each run's reference slot")
    parser.add_argument("--force", action="store_true", help="compare although the environments differ")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the table; 0, 3 when something got slower, 1 when a recording's own checks had failed."""
    old, new = load(args.old), load(args.new)
    unlike = differences(old, new)
    if unlike and not args.force:
        raise UsageError(
            explain(
                f"not run alike: {'; '.join(unlike)}",
                f"{args.old}, {args.new}",
                remedy="run both in one environment, or add --force",
            )
        )
    comparison = compare(old, new, args.relative)
    print(table(comparison))
    for line in unlike:
        print(f"not alike: {line}")
    for path, recording in ((args.old, old), (args.new, new)):
        for failure in recording.failures:
            print(f"{path}: a check failed: {failure}", file=sys.stderr)
    if not (old.ok and new.ok):
        return 1
    return SLOWER if comparison.slower else 0


def table(comparison: Comparison) -> str:
    """The comparison as text: one row per cell and what the intervals mean."""
    unit = "of reference" if comparison.relative else "ns/packet"
    headers = ["measurement", "slot", f"A {unit}", f"B {unit}", "B/A", "interval", "verdict"]
    lines = [tabulate([_row(row) for row in comparison.rows], headers, disable_numparse=True), ""]
    lines.append(
        f"Intervals: {100 * comparison.confidence:g} % for all {len(comparison.rows)} cells together "
        f"({100 * comparison.each:.4g} % each, Bonferroni)."
    )
    if not comparison.relative:
        lines.append(
            "They hold the noise inside each run; drift of the machine between the runs is not in them,"
        )
        lines.append("--relative cancels the part of it that all slots of a run share.")
    if any(comparison.alone):
        lines.append(f"Left out: {comparison.alone[0]} cells only in A, {comparison.alone[1]} only in B.")
    return "\n".join(lines)


def _row(row: Row) -> list[str]:
    ratio = row.ratio
    return [
        row.measurement,
        row.slot.label,
        f"{row.old.value:.4g}",
        f"{row.new.value:.4g}",
        f"{ratio.value:.4f}",
        f"{ratio.low:.4f} .. {ratio.high:.4f}",
        f"{row.verdict}: {row.doubt}" if row.doubt else row.verdict,
    ]
