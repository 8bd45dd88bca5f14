"""dispatchlab check: every checksum and invariant, nothing timed."""

import argparse
import json

from .. import checks

FAILED = 1


def add(sub: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Register the command."""
    parser = sub.add_parser(
        "check",
        help="every checksum and invariant, nothing timed",
        description="Runs every arm against an oracle that shares no code with it, and every other invariant; times nothing. "
        "Exit code 1 when one does not hold.",
    )
    parser.add_argument("--quick", action="store_true", help="fewer packets, and up to 100 handlers instead of 512")
    parser.add_argument("--only", action="append", default=[], metavar="CHECK", help="this check alone; may be repeated")
    parser.add_argument("--json", action="store_true", help="print what was checked as JSON")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the checks, show each as it ends."""
    outcomes = []
    for outcome in checks.run(args.quick, tuple(args.only)):
        outcomes.append(outcome)
        if not args.json:
            show(outcome)
    failed = [outcome.name for outcome in outcomes if not outcome.ok]
    if args.json:
        print(json.dumps({"ok": not failed, "checks": [as_json(outcome) for outcome in outcomes]}, indent=1))
    else:
        print(f"\n{len(outcomes)} checks, " + (f"{len(failed)} failed: {', '.join(failed)}" if failed else "all hold"))
    return FAILED if failed else 0


def show(outcome: checks.Outcome) -> None:
    """One check in a line, and a line for each of its first failures."""
    verdict = "ok" if outcome.ok else "FAILED"
    print(f"{verdict:<6}  {outcome.name:<24}  {outcome.compared:>9} compared  {outcome.proves}", flush=True)
    for failure in outcome.failures[: checks.MOST_SHOWN]:
        print(f"       {failure}")
    if (more := len(outcome.failures) - checks.MOST_SHOWN) > 0:
        print(f"       and {more} more")


def as_json(outcome: checks.Outcome) -> dict[str, object]:
    """One check for programs."""
    return {
        "name": outcome.name,
        "proves": outcome.proves,
        "ok": outcome.ok,
        "compared": outcome.compared,
        "failures": list(outcome.failures),
    }
