"""dispatchlab calibrate: how often this machine, now, is wrong."""

import argparse
import sys
from datetime import UTC, datetime
from typing import Any

from .. import strictjson
from ..environment import environment, package
from ..errors import UsageError, explain
from ..evidence import calibration_table
from ..files import check_writable, write_atomic
from ..report import as_text
from ..studies import Options


def add(sub: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Register the command."""
    parser = sub.add_parser(
        "calibrate",
        help="how often this machine, now, is wrong",
        description="Compare table-compact with itself, and with itself slowed by a known share, many times over. Prints "
        "how often a difference was seen where there is none, how often the interval holds the truth, and how often a "
        "real difference is found.",
    )
    parser.add_argument("--comparisons", type=int, default=100, metavar="N", help="of the arm with itself (default 100)")
    parser.add_argument("--seconds", type=float, default=1.0, metavar="S", help="measuring time of one (default 1)")
    parser.add_argument("--out", default="out", metavar="DIR", help="where calibration.json goes (default out/)")
    parser.add_argument("--cpu", type=int, metavar="N", help="the CPU to pin to")
    parser.add_argument("--seed", type=int, default=0, metavar="N")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Measure, print, store. The exit code is 0: what the rates are is the answer, not a check."""
    from ..calibrate import calibrate_here

    if args.comparisons < 8 or not args.seconds > 0:
        raise UsageError(explain("too little to calibrate with", "calibrate", "8 comparisons or more, of more than 0 s"))
    out = check_writable(args.out)
    options = Options(cpu=args.cpu, seed=args.seed, bar=sys.stderr.isatty())
    found = calibrate_here(options, args.comparisons, args.seconds)
    document: dict[str, Any] = {
        "calibration": found.as_dict(),
        "created": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "environment": environment(cpu=options.pinned),
        "package": package(),
    }
    path = out / "calibration.json"
    write_atomic(path, (strictjson.render(strictjson.plain(document)) + "\n").encode("ascii"))
    print(as_text(calibration_table(document)))
    print(f"\nstored     {path}")
    return 0
