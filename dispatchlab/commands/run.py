"""dispatchlab run STUDY: one study, its tables, its recording and its figures."""

import argparse
import json
import sys
from pathlib import Path

from .. import studies
from ..files import check_writable
from ..measure import parse_budget
from ..recording import Recording
from ..studies import Options

FAILED = 1
OUT = "out"


def add(sub: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Register the command."""
    parser = sub.add_parser("run", help="run one study", description=f"Run one study: {', '.join(studies.NAMES)}.")
    parser.add_argument("study", metavar="STUDY")
    add_options(parser)
    parser.add_argument("--handlers", type=int, default=100, metavar="N", help="how many handlers (default 100)")
    parser.add_argument("--budget", metavar="TIME", help='measuring time of each measurement, such as "5s"')
    parser.add_argument("--threads", type=int, metavar="N", help="study lock: so many threads instead of 1, 2, 4...")
    parser.add_argument("--oversubscribe", action="store_true", help="study lock: more threads than CPUs are meant")
    parser.set_defaults(run=lambda args: execute(args.study, args, args.handlers, args.budget))


def add_options(parser: argparse.ArgumentParser) -> None:
    """Options of everything that measures."""
    parser.add_argument("--quick", action="store_true", help="a tenth of the measuring time, wider intervals")
    parser.add_argument("--out", default=OUT, metavar="DIR", help=f"where recording and figures go (default {OUT}/)")
    parser.add_argument("--cpu", type=int, metavar="N", help="the CPU to pin to (default: the one that machine recommends)")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="seed of traffic and schedule (default 0)")
    parser.add_argument(
        "--traffic", action="append", default=[], metavar="T", help="a capture, a counts file or a name; may be repeated"
    )
    parser.add_argument("--no-figures", action="store_true", help="draw no figures")
    parser.add_argument("--json", action="store_true", help="print a summary as JSON instead of the tables")


def execute(study: str, args: argparse.Namespace, handlers: int = 100, budget: str | None = None) -> int:
    """Measure, save, print, draw; 1 when a checksum or another check failed."""
    out = check_writable(args.out)
    options = Options(
        quick=args.quick,
        cpu=args.cpu,
        seed=args.seed,
        traffic=tuple(args.traffic),
        handlers=handlers,
        budget=None if budget is None else parse_budget(budget),
        bar=sys.stderr.isatty(),
        threads=getattr(args, "threads", None),
        oversubscribe=getattr(args, "oversubscribe", False),
    )
    recording = studies.run(study, options)
    path = out / f"{study}.json"
    recording.save(path)
    show(recording, path, args.json)
    if not args.no_figures:
        from ..figures import save_all

        for figure in save_all(recording, out / "figures"):
            if not args.json and figure.suffix == ".png":
                print(f"figure     {figure}")
    for failure in recording.failures:
        print(f"FAILED     {failure}", file=sys.stderr)
    return 0 if recording.ok else FAILED


def show(recording: Recording, path: Path, as_json: bool) -> None:
    """Tables for people, or a summary for programs."""
    from ..report import tables

    if as_json:
        print(json.dumps(summary(recording, path), indent=1))
        return
    print(tables(recording))
    print(f"\nrecording  {path}  sha256 {recording.digest[:16]}")


def summary(recording: Recording, path: Path) -> dict[str, object]:
    """Every cell's ns/packet with its interval, ready for JSON."""
    from .. import summary as estimates

    cells = [
        {
            "measurement": m.name,
            "label": slot.label,
            "arm": slot.arm,
            "handlers": slot.handlers,
            "traffic": slot.traffic,
            "ns": e.value,
            "low": e.low,
            "high": e.high,
            "probes": m.probes.get(slot.label),
        }
        for m in recording.measurements
        for i, slot in enumerate(m.slots)
        for e in [estimates.ns(m, i)]
    ]
    return {"study": recording.study, "recording": str(path), "ok": recording.ok, "cells": cells}
