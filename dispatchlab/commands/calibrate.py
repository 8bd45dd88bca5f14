"""dispatchlab calibrate: how often this machine, now, is wrong."""

import argparse
import sys
from datetime import UTC, datetime

from tabulate import tabulate

from .. import strictjson
from ..calibration import Calibration, Rate
from ..environment import environment, package
from ..errors import UsageError, explain
from ..files import check_writable, write_atomic
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
    document = {
        "calibration": found.as_dict(),
        "created": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "environment": environment(cpu=options.pinned),
        "package": package(),
    }
    path = out / "calibration.json"
    write_atomic(path, (strictjson.render(strictjson.plain(document)) + "\n").encode("ascii"))
    print(table(found))
    print(f"\nstored     {path}")
    return 0


def table(found: Calibration) -> str:
    """One row per injected difference and measuring time."""
    rows = [
        (
            "none (A/A)" if o.effect == 0 else f"+{100 * o.effect:g} %",
            f"{o.seconds:g} s",
            o.different.trials,
            _percent(o.different),
            _percent(o.covered),
            f"{100 * o.half_width:.3f} %",
            f"{100 * o.spread:.3f} %",
        )
        for o in found.outcomes
    ]
    heads = ("difference", "measured", "comparisons", "called different", "interval holds it", "half-width", "spread")
    text = tabulate(rows, heads, disable_numparse=True)
    return (
        f"{text}\n\ncoverage of the {100 * found.confidence:g} % interval over all: {_percent(found.coverage)}\n"
        f"the same source compiled twice, called different: {_percent(found.copies)} of {found.copies.trials}\n"
        "in brackets: exact binomial 95 % intervals of the rates themselves"
    )


def _percent(rate: Rate) -> str:
    return f"{100 * rate.value:.1f} % [{100 * rate.low:.1f}, {100 * rate.high:.1f}]"
