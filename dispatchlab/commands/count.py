"""dispatchlab count: what arms make a simulated CPU do, per packet, the same number every time."""

import argparse
from collections.abc import Sequence

from tabulate import tabulate

from .. import strictjson
from ..counting import PACKETS, Counted, count, document
from ..handlers import handlers
from ..traffic import make

COLUMNS = {
    "instructions": "instructions",
    "conditional": "conditional",
    "conditional_mispredicted": "mispredicted",
    "indirect": "indirect",
    "indirect_mispredicted": "mispredicted",
    "l1i_misses": "L1i misses",
    "l1d_misses": "L1d misses",
}


def add(sub: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Register the command."""
    parser = sub.add_parser(
        "count",
        help="instructions and simulated misses of arms",
        description="Run arms under valgrind's cachegrind, a simulated CPU with fixed caches and a simple branch predictor, and "
        "print what they did per packet. No clock is involved: the same arm gives the same numbers.",
    )
    parser.add_argument("arms", nargs="+", metavar="ARM")
    parser.add_argument("--handlers", type=int, default=100, metavar="N", help="how many handlers (default 100)")
    parser.add_argument("--body", default="chain", metavar="B", help="what a handler computes (default chain)")
    parser.add_argument("--size", default="fat", metavar="S", help="how much of it (default fat)")
    parser.add_argument("--traffic", default="uniform", metavar="T", help="a name, counts file or capture (default uniform)")
    parser.add_argument("--json", action="store_true", help="print JSON instead of the table")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Count and print."""
    hs = handlers(args.handlers, body=args.body, size=args.size)
    counted = count(args.arms, hs, make(args.traffic, hs, pool=PACKETS))
    print(strictjson.render(strictjson.plain(document(counted))) if args.json else table(counted))
    return 0


def table(counted: Sequence[Counted]) -> str:
    """One row per arm, events per packet."""
    rows = [[c.arm, *(f"{getattr(c, field):z.2f}" for field in COLUMNS)] for c in counted]
    c = counted[0]
    heads = ("arm", *COLUMNS.values())
    align = ("left", *("right",) * (len(heads) - 1))
    lines = tabulate(rows, heads, disable_numparse=True, colalign=align)
    return (
        f"per packet, simulated: {c.handlers} handlers, {c.size} {c.body} bodies, {c.traffic} traffic, {c.packets} packets\n\n"
        f"{lines}\n\nAn indirect branch is predicted to go where it went last: a count of surprises. CPUs that remember paths "
        "guess more."
    )
