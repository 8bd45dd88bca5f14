"""The command line: finds the commands, runs one, turns what goes wrong into one line and an exit code.

Exit codes: 0 all checks hold, 1 a check failed, 2 wrong usage or unreadable input, 3 `compare` found something slower,
130 interrupted.
"""

import argparse
import importlib
import os
import pkgutil
import sys
from collections.abc import Sequence

from . import commands
from .environment import package
from .errors import Error

USAGE = 2
INTERRUPTED = 130


class _Parser(argparse.ArgumentParser):
    """argparse, with its complaint in one line like every other."""

    def error(self, message: str) -> "None":  # type: ignore[override]
        self.exit(USAGE, f"{self.prog}: {message}; see {self.prog} --help\n")


def parser() -> argparse.ArgumentParser:
    """The whole command line, one sub-command per module of `dispatchlab.commands`."""
    top = _Parser(prog="dispatchlab", description="Which way of finding and calling a handler pays, and how sure is that?")
    top.add_argument("--version", action="version", version=f"dispatchlab {package()['version']}")
    top.add_argument("--debug", action="store_true", help="show tracebacks")
    sub = top.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for module in sorted(m.name for m in pkgutil.iter_modules(commands.__path__)):
        importlib.import_module(f"{commands.__name__}.{module}").add(sub)
    return top


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    args = parser().parse_args(argv)
    try:
        code: int = args.run(args)
        sys.stdout.flush()
        return code
    except Error as error:
        if args.debug:
            raise
        print(f"dispatchlab: {error}", file=sys.stderr)
        return USAGE
    except KeyboardInterrupt:
        if args.debug:
            raise
        print("dispatchlab: interrupted before anything could be kept", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:  # the reader of our output has gone: nobody is left to tell
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


if __name__ == "__main__":
    sys.exit(main())
