"""dispatchlab sweep: a grid of handlers, traffics, bodies and residual shares, every arm in each, one file for each combination."""

import argparse
import os
import re
import sys
from typing import Any

from ..errors import UsageError, explain
from ..files import write_atomic
from ..measure import parse_budget
from ..recording import Recording
from ..sweep import CSV, Combination, Done, Folder, Plan, run
from ..sweeptable import csv_bytes
from ..wording import measured

FAILED, INTERRUPTED = 1, 130


def add(sub: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Register the command."""
    parser = sub.add_parser(
        "sweep",
        help="a grid of cells, resumable, here or on a cluster",
        description="Measure every combination of the lists, all arms of a combination interleaved. Each combination is a recording "
        f"of its own in the folder; {CSV} has a row for each arm. Started again, it goes on where it stopped.",
    )
    parser.add_argument("--handlers", default="10,50,100", metavar="N,N", help="numbers of handlers (default 10,50,100)")
    parser.add_argument("--traffic", action="append", metavar="T,T", help="names or files (default uniform,zipf); may be repeated")
    parser.add_argument("--body", default="chain", metavar="B,B", help="what handlers compute (default chain)")
    parser.add_argument("--arm", default="scan,scan-ordered,table-compact", metavar="A,A", help="arms of each combination")
    parser.add_argument("--residual", default="0.1", metavar="R,R", help="shares of residual predicates (default 0.1)")
    parser.add_argument("--budget", default="1s", metavar="TIME", help="measuring time of a combination (default 1s)")
    parser.add_argument("--rounds", type=int, metavar="N", help="so many rounds instead of a time")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="seed of traffic and schedule (default 0)")
    parser.add_argument("--cpu", type=int, metavar="N", help="the CPU to pin to here (default: the last allowed one)")
    parser.add_argument("--out", required=True, metavar="FOLDER", help="where the recordings go; holds one sweep")
    parser.add_argument("--on", metavar="SCHEDULER", help="measure on a Dask cluster: address or scheduler file (extra: fleet)")
    parser.set_defaults(run=execute)


def execute(args: argparse.Namespace) -> int:
    """Measure what is missing; 1 when a combination or a check failed, 130 when interrupted."""
    plan = Plan(
        handlers=listed(args.handlers, "handlers", int),
        traffic=traffics(args.traffic or ["uniform,zipf"]),
        body=listed(args.body, "body", str),
        arm=listed(args.arm, "arm", str),
        residual=listed(args.residual, "residual", float),
        budget=parse_budget(args.budget),
        rounds=args.rounds,
        seed=args.seed,
    )
    found: dict[Combination, Recording] = {}
    failed: list[str] = []
    with Folder(args.out, plan) as folder:
        try:
            _measure(plan, folder, _teller(plan, found, failed), args)
        except KeyboardInterrupt:
            print(f"interrupted: {len(found)} of {len(plan.combinations())} are kept; start it again to go on", file=sys.stderr)
            return INTERRUPTED
        finally:
            if found:
                order = [found[c] for c in plan.combinations() if c in found]
                write_atomic(folder.path / CSV, csv_bytes(order))
    lost = f", {len(failed)} FAILED" if failed else ""
    print(f"\n{len(found)} combinations of {len(plan.arm)} arms in {folder.path / CSV}{lost}")
    return FAILED if failed else 0


def _measure(plan: Plan, folder: Folder, done: Done, args: argparse.Namespace) -> None:
    if args.on is None:
        run(plan, folder, done, args.cpu)
        return
    if args.cpu is not None:
        raise UsageError(explain("--cpu is of this machine", "--on", "one of the two", "both", "set the affinity of the workers"))
    from .. import fleet

    fleet.run(plan, folder, done, args.on)


def _teller(plan: Plan, found: dict[Combination, Recording], failed: list[str]) -> Done:
    """Collects, and shows each combination in a line as it comes."""
    total = len(plan.combinations())

    def done(c: Combination, recording: Recording | None, how: str) -> None:
        if recording is None:
            failed.append(str(c))
            print(f"FAILED {c}: {how}", file=sys.stderr, flush=True)
            return
        found[c] = recording
        slots = [s for s in recording.measurements[0].slots if s.role != "twin"]
        times = "  ".join(f"{s.arm} {measured(recording.ns(s.label))}" for s in slots)
        print(f"{len(found):>4} of {total}  {how:<8}  {c}:  {times}", flush=True)
        for line in recording.failures:
            failed.append(line)
            print(f"FAILED {c}: {line}", file=sys.stderr, flush=True)

    return done


def listed(text: str, what: str, kind: type) -> tuple[Any, ...]:
    """The values of a comma-separated option. UsageError for one that is not of its kind."""
    try:
        return tuple(kind(part.strip()) for part in text.split(",") if part.strip())
    except ValueError:
        wanted = "numbers" if kind is float else "whole numbers"
        raise UsageError(explain(f"--{what} cannot be read", expected=f"{wanted} with commas between them", got=repr(text))) from None


def traffics(given: list[str]) -> tuple[str, ...]:
    """Names and files; a number behind a comma belongs to the name before it ("hot:0.95,2"), and a file's name may have commas."""
    found: list[str] = []
    for text in given:
        if os.path.isfile(text):
            found.append(text)
            continue
        for part in (p.strip() for p in text.split(",")):
            if found and ":" in found[-1] and re.fullmatch(r"[\d.]+", part):
                found[-1] += f",{part}"
            elif part:
                found.append(part)
    return tuple(found)
