"""dispatchlab reproduce: the whole study; the exit code is the verdict on its checks."""

import argparse

from .run import add_options, execute


def add(sub: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Register the command."""
    parser = sub.add_parser(
        "reproduce",
        help="the whole study",
        description="Measure the whole study, print its tables, record the raw numbers, draw the figures.",
    )
    add_options(parser)
    parser.set_defaults(run=lambda args: execute("reproduce", args))
