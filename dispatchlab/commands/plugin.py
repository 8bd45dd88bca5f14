"""dispatchlab plugin: build, describe, validate and measure handlers out of shared libraries."""

import argparse
import dataclasses
import json
from pathlib import Path

from ..errors import UsageError, explain
from ..files import write_atomic
from ..plugins import load
from ..plugins.building import build, template
from ..plugins.validation import validate, validation_table, verdict
from ..report import as_text

FAILED = 1
GUIDE = Path(__file__).parent.parent / "plugins" / "guide.md"


def add(sub: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Register the command and its verbs."""
    parser = sub.add_parser("plugin", help="handlers out of shared libraries", description="Plugins: handlers compiled elsewhere.")
    verbs = parser.add_subparsers(title="verbs", metavar="VERB", required=True)
    one = verbs.add_parser("build", help="compile FILE.c or FILE.cpp with the system's compiler")
    one.add_argument("file")
    one.add_argument("-o", "--out", metavar="OUT", help="the library (default: FILE.so)")
    one.set_defaults(run=lambda args: _print(f"built      {build(args.file, args.out)}"))
    one = verbs.add_parser("template", help="write the source of a plugin to start from")
    one.add_argument("file", metavar="FILE.c")
    one.set_defaults(run=_template)
    one = verbs.add_parser("guide", help="print the plugin author's page")
    one.set_defaults(run=lambda args: _print(GUIDE.read_text(encoding="utf-8")))
    one = verbs.add_parser("describe", help="inspect, load and say what it offers")
    one.add_argument("file")
    one.add_argument("--json", action="store_true")
    one.set_defaults(run=_describe)
    one = verbs.add_parser("validate", help="run every rule of plugin.h against it; exit code 1 when one is broken")
    one.add_argument("file")
    one.add_argument("--json", action="store_true")
    one.set_defaults(run=_validate)
    one = verbs.add_parser("measure", help="price its handlers beside built-in ones")
    one.add_argument("file", nargs="+")
    one.add_argument("--handlers", type=int, default=60, metavar="N", help="built-in handlers beside them (default 60)")
    one.add_argument("--budget", default="2s", metavar="TIME")
    one.add_argument("--out", default="out", metavar="DIR", help="where plugin.json goes (default out/)")
    one.add_argument("--cpu", type=int, metavar="N")
    one.set_defaults(run=_measure)


def _print(text: str) -> int:
    print(text)
    return 0


def _template(args: argparse.Namespace) -> int:
    path = Path(args.file)
    if path.suffix != ".c":
        raise UsageError(explain("not a name for C source", str(path), "FILE.c", path.suffix or "no ending"))
    if path.exists():
        raise UsageError(explain("the file is there already", str(path), remedy="choose another name"))
    write_atomic(path, template(path.stem).encode("utf-8"))
    return _print(f"wrote      {path}")


def _describe(args: argparse.Namespace) -> int:
    plugin = load(args.file)
    facts = plugin.described() | {"needed": list(plugin.inspection.needed), "first_keys": [int(k) for k in plugin.keys[:16]]}
    if args.json:
        return _print(json.dumps(facts, indent=1))
    return _print("\n".join(f"{name:<11}{value}" for name, value in facts.items()))


def _validate(args: argparse.Namespace) -> int:
    cases = validate(args.file)
    if args.json:
        print(json.dumps({"file": Path(args.file).name, "cases": [dataclasses.asdict(c) for c in cases]}, indent=1))
    else:
        print(as_text(validation_table(Path(args.file), cases)))
        print(f"\n{args.file}: {verdict(cases)}")
    return FAILED if any(c.outcome == "broken" for c in cases) else 0


def _measure(args: argparse.Namespace) -> int:
    from ..files import check_writable
    from ..handlers import handlers
    from ..measure import Cell, choose_cpu, measure_cells, parse_budget, record
    from ..traffic import uniform
    from .run import show

    out, cpu = check_writable(args.out), choose_cpu(args.cpu)
    hs = handlers(args.handlers, plugins=args.file)
    inside, outside = handlers(1, residual=0, size="tiny"), handlers(0, residual=0, plugins=hs.foreign.plugins)
    tr, seconds = uniform(hs), parse_budget(args.budget)
    cells = [Cell(arm, hs, tr) for arm in ("scan", "scan-ordered", "table-compact")]
    one = Cell("table-compact", inside, uniform(inside), "a tiny built-in")
    crossing = [one, Cell("table-compact", outside, uniform(outside), "plugin")]
    done = [
        measure_cells("plugin", cells, budget=seconds, cpu=cpu),
        measure_cells("crossing", crossing, budget=seconds / 2, cpu=cpu, reference=0),
    ]
    recording = record("plugin", done, seed=0, cpu=cpu, plugins=[p.described() for p in hs.foreign.plugins])
    path = out / "plugin.json"
    recording.save(path)
    show(recording, path, False)
    return FAILED if recording.failures else 0
