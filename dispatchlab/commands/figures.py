"""dispatchlab figures RECORDING: draw again, from the file alone."""

import argparse
import sys

from ..errors import UsageError, explain
from ..recording import load


def add(sub: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Register the command."""
    parser = sub.add_parser(
        "figures",
        help="draw a recording's figures",
        description="Draw every figure that a recording holds the cells for, as SVG and PNG. The same recording gives the "
        "same bytes.",
    )
    parser.add_argument("recording", metavar="RECORDING", help="a file that run or reproduce wrote")
    parser.add_argument("-o", "--out", default="figures", metavar="DIR", help="where they go (default figures/)")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Draw them and name each file; 1 when the recording's own checks had failed."""
    from ..figures import DRAWERS, names, save_all

    recording = load(args.recording)
    if not names(recording):
        raise UsageError(explain("nothing to draw", args.recording, f"cells for {', '.join(DRAWERS)}", recording.study))
    for path in save_all(recording, args.out):
        print(path)
    for failure in recording.failures:
        print(f"{args.recording}: a check failed: {failure}", file=sys.stderr)
    return 0 if recording.ok else 1
