"""dispatchlab disassemble: the machine code of an arm's dispatch, as it was built."""

import argparse
import json
from dataclasses import asdict

from ..disassembly import disassemble, examine, listing, loop_of


def add(sub: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Register the command."""
    parser = sub.add_parser(
        "disassemble",
        help="the machine code of an arm's dispatch",
        description="Print the timed loop of an arm out of the built library, its loads and its indirect call marked. Needs objdump "
        "(binutils), or the Python package capstone.",
    )
    parser.add_argument("arm", metavar="ARM")
    parser.add_argument("--body", default="chain", metavar="B", help="for arms with a loop for each body (default chain)")
    parser.add_argument("--size", default="fat", metavar="S", help="and size (default fat)")
    parser.add_argument("--placement", type=int, default=0, choices=range(4), help="which of the four copies (default 0)")
    parser.add_argument("--json", action="store_true", help="print the counts as JSON")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Disassemble and print."""
    symbol = loop_of(args.arm, args.body, args.size, args.placement)
    code = disassemble(symbol)
    found = examine(code)
    if args.json:
        print(json.dumps({"arm": args.arm, "symbol": symbol.name, **asdict(found)}))
        return 0
    print(f"{args.arm}: {symbol.name} of {symbol.file}, {symbol.size} bytes, one packet per turn\n")
    print("\n".join(listing(code)))
    chain = "none" if found.chain is None else f"{found.chain} loads in a row, from the packet's key on"
    print(
        f"\nindirect calls {found.indirect_calls}, indirect jumps {found.indirect_jumps}, handlers called by name {found.named}; "
        f"to the target: {chain}"
    )
    return 0
