"""dispatchlab animate RECORDING: small films out of a recording."""

import argparse
import sys

from ..recording import load


def add(sub: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Register the command."""
    parser = sub.add_parser(
        "animate",
        help="animations of a recording, as GIF",
        description="Draw what a recording holds the cells for: the predicates that a scan and the table walk (walk.gif), a list that "
        "is sorted (sorting.gif), rounds that close an interval (rounds.gif). Measures nothing.",
    )
    parser.add_argument("recording", metavar="RECORDING", help="a file that run or reproduce wrote")
    parser.add_argument("-o", "--out", default="animations", metavar="DIR", help="where they go (default animations/)")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Draw them and name each file; 1 when the recording's own checks had failed."""
    from ..animations import save_all

    recording = load(args.recording)
    for path in save_all(recording, args.out):
        print(path)
    for failure in recording.failures:
        print(f"{args.recording}: a check failed: {failure}", file=sys.stderr)
    return 0 if recording.ok else 1
