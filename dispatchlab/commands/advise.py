"""dispatchlab advise TRAFFIC: measure what matters for one service, answer the checklist, give one verdict."""

import argparse
import json
import sys
import textwrap

from ..advise import Advice, Case, advise, measure, page, parse_rate
from ..files import check_writable, write_atomic
from ..measure import parse_budget
from ..plugins.adapter import POLICIES
from ..studies.options import Options

WIDTH = 110


def add(sub: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Register the command."""
    parser = sub.add_parser(
        "advise",
        help="a verdict for your own traffic",
        description="TRAFFIC is a capture (.pcap, .pcapng), a counts table (.csv with key,packets) or a generator such as zipf:1.3. "
        "Measures the arms that matter for it, answers a checklist and gives one verdict, as text, JSON and an HTML page.",
    )
    parser.add_argument("traffic", metavar="TRAFFIC")
    parser.add_argument("--handlers", type=int, default=100, metavar="N", help="built-in handlers (default 100)")
    parser.add_argument("--residual", type=float, default=0.1, metavar="F", help="share of them that ask for more than a key")
    parser.add_argument("--overlap", action="store_true", help="residual predicates accept one another's packets")
    parser.add_argument("--body", default="chain", help="what a handler's code is like: chain, wide, branchy (default chain)")
    parser.add_argument("--size", default="fat", help="how much code a handler is: tiny, fat (default fat)")
    parser.add_argument("--rate", default="3M", metavar="R", help="packets per second: 3M, 3e6, 3_000_000 (default 3M)")
    parser.add_argument("--p999", type=float, metavar="NS", help="what one packet in a thousand may take")
    parser.add_argument("--plugins", nargs="+", default=[], metavar="FILE", help="handlers from shared libraries")
    parser.add_argument("--conflicts", default="error", choices=POLICIES, help="when a plugin claims a key that is taken")
    parser.add_argument("--key", default="service", help="key of a capture: service, ip-proto or ethertype (default service)")
    parser.add_argument("--budget", default="20s", metavar="TIME", help="measuring time (default 20s)")
    parser.add_argument("--out", default="out", metavar="DIR", help="where recording, JSON and page go (default out/)")
    parser.add_argument("--cpu", type=int, metavar="N", help="the CPU to pin to")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="seed of traffic and schedule (default 0)")
    parser.add_argument("--json", action="store_true", help="print JSON instead of text")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Measure, save, advise; 1 when a checksum or another check failed."""
    case = Case(
        traffic=args.traffic,
        handlers=args.handlers,
        residual=args.residual,
        overlap=args.overlap,
        body=args.body,
        size=args.size,
        rate=parse_rate(args.rate),
        p999=args.p999,
        plugins=tuple(args.plugins),
        conflicts=args.conflicts,
        key=args.key,
        budget=parse_budget(args.budget),
        options=Options(cpu=args.cpu, seed=args.seed, bar=sys.stderr.isatty()),
    )
    out = check_writable(args.out)
    recording = measure(case)
    recording.save(out / "advise.json")
    advice = advise(recording)
    document = json.dumps(advice.to_dict(), indent=1, allow_nan=False)
    write_atomic(out / "verdict.json", (document + "\n").encode("utf-8"))
    write_atomic(out / "verdict.html", page(recording).encode("utf-8"))
    print(document if args.json else as_text(advice))
    if not args.json:
        print(f"\nrecording  {out / 'advise.json'}\nnumbers    {out / 'verdict.json'}\npage       {out / 'verdict.html'}")
    for failure in recording.failures:
        print(f"FAILED     {failure}", file=sys.stderr)
    return 0 if recording.ok else 1


def as_text(advice: Advice) -> str:
    """The checklist, then the verdict with what it rests on."""
    lines: list[str] = []
    for number, answer in enumerate(advice.answers, 1):
        lines += [f"{number:>2}. {answer.question}", _folded(answer.answer, "    ")]
    kind = advice.verdict.kind
    lines += ["", _folded(kind.upper() + advice.verdict.sentence.removeprefix(kind), "")]
    lines += [_folded(line, "  * ", "    ") for line in (*advice.verdict.conditions, *advice.verdict.further)]
    return "\n".join(lines)


def _folded(text: str, first: str, then: str | None = None) -> str:
    return textwrap.fill(text, WIDTH, initial_indent=first, subsequent_indent=first if then is None else then)
