"""dispatchlab animate RECORDING: what happens in a list, a sorted list, a table and a cache, as moving pictures."""

import argparse

from ..errors import UsageError, explain
from ..files import check_writable, write_atomic
from ..recording import load


def add(sub: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Register the command."""
    parser = sub.add_parser("animate", help="animations out of a recording", description="Write every animation the recording holds.")
    parser.add_argument("recording", metavar="RECORDING")
    parser.add_argument("-o", "--out", default="out/figures", metavar="DIR", help="where they go (default out/figures/)")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Draw and write them."""
    from ..figures.animations import gif, names

    recording = load(args.recording)
    found = names(recording)
    if not found:
        wanted = "scan and table-compact under seeded traffic, or the study mechanism"
        raise UsageError(explain("the recording holds nothing that can be animated", args.recording, wanted))
    out = check_writable(args.out)
    for name in found:
        write_atomic(out / f"{name}.gif", gif(recording, name))
        print(out / f"{name}.gif")
    return 0
