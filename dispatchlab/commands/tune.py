"""dispatchlab tune: turn the machine's knobs for a command, show what each did, and put every one back."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from tabulate import tabulate

from ..errors import UsageError, explain
from ..machine.journal import Journal, place
from ..machine.knobs import KNOBS, Plan, Request, chosen, read
from ..machine.process import Signals, command
from ..machine.tune import Outcome, Tuner, plans, request, restore


def add(sub: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Register the command."""
    parser = sub.add_parser(
        "tune",
        help="make the machine repeatable for a command, and put it back",
        description="Turn the knobs that make timings vary, run COMMAND, and put everything back: at its end, on an error, on a "
        "signal. Old values are on the disk before the first write (root: /run/dispatchlab-tune.journal, others: "
        "$XDG_STATE_HOME/dispatchlab/tune.journal), so that --restore puts them back after kill -9. Without COMMAND the machine "
        "stays tuned until --restore. Knobs: " + ", ".join(KNOBS) + ".",
    )
    parser.add_argument("--dry-run", action="store_true", help="show what would be written, write nothing")
    parser.add_argument("--only", action="append", default=[], metavar="KNOB", help="this knob only (may be repeated)")
    parser.add_argument("--skip", action="append", default=[], metavar="KNOB", help="not this knob (may be repeated)")
    parser.add_argument("--cpu", type=int, metavar="N", help="the CPU to keep free (default: the one that machine recommends)")
    parser.add_argument("--priority", type=int, default=0, metavar="N", help="real-time priority of COMMAND, 1 to 99")
    parser.add_argument("--restore", action="store_true", help="put back what a killed tuner left")
    parser.add_argument("--root", type=Path, default=Path("/"), metavar="DIR", help="tune a recorded tree instead of the machine")
    parser.add_argument("command", nargs="*", metavar="COMMAND", help="after --: what to run")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Tune, run, put back; the command's exit code."""
    r = request(args.root, args.cpu, bool(args.command), args.priority, args.only)
    if args.restore:
        return _restore(r, args.command)
    if args.dry_run:
        print(_planned(r, plans(r, args.only, args.skip)))
        return 0
    with Signals() as signals:
        tuner = Tuner(r, args.only, args.skip)
        kept = False
        try:
            outcomes = tuner.turn(signals.stop)
            print("\n".join([*tuner.lines, _table(outcomes)]), flush=True)
            code = 0
            if args.command and not signals.got:
                code, own = command(tuner, args.command, signals)
                print(_table(own) if own else "", end="\n" if own else "", flush=True)
            kept = not args.command and not signals.got
        finally:
            if not kept:
                tuner.end()
        if kept:
            tuner.leave()
            print("the machine stays tuned: put it back with dispatchlab tune --restore")
        else:
            print("everything is put back")
    return 128 + signals.got[0] if signals.got else code


def _restore(r: Request, argv: Sequence[str]) -> int:
    if argv:
        raise UsageError(explain("--restore runs no command", argv[0], remedy="give one of the two"))
    with Signals():
        journal = Journal(place(r.root))
        try:
            lines = restore(r.root, journal)
        finally:
            journal.close()
    print("\n".join(lines) or "nothing to put back")
    return 0


def _planned(r: Request, wanted: Sequence[Plan]) -> str:
    rows = []
    for plan in wanted:
        if plan.why or plan.own:
            rows.append((plan.knob, "the command" if plan.own else "", "", "", plan.why))
        rows += [(plan.knob, "/" + c.path, chosen(read(r.root, c.path) or ""), c.value, "") for c in plan.changes]
    return tabulate(rows, ("knob", "what", "now", "would be", "why not"), disable_numparse=True)


def _table(outcomes: Sequence[Outcome]) -> str:
    rows = [(o.knob, o.what, o.before, o.after, "yes" if o.done else "no", o.why) for o in outcomes]
    return tabulate(rows, ("knob", "what", "before", "after", "verified", "why not"), disable_numparse=True)
