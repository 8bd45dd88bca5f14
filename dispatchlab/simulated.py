"""The program that `dispatchlab count` runs under a simulator: passes of arms, with hardly any start-up around them.

It is run by its path, not imported: simulating the start of the interpreter with NumPy would take longer than everything
that is counted. Every arm runs in a process of its own, forked off the started interpreter. In one of two runs of this program
its last pass goes over the packets, in the other over none; all else, up to the address of every object, is equal.

Arguments: the engine's file, "packets" or "nothing", body, size, "packed" or "spread", then one arm or more. The arrays are
files of the working folder. Prints a line for each arm: process number, and 0 when the checksum was the one in `expected.<arm>`.
"""

import _imp  # importlib.util would bring a third of the start-up back
import posix
import sys
from _frozen_importlib import ModuleSpec
from typing import Any

ARRAYS = ("keys", "masks", "values", "order")


def contents(name: str) -> bytes:
    """A file of the working folder."""
    with open(name, "rb", 0) as file:
        return file.read()


def load(path: str) -> Any:
    """The engine, without its package."""
    engine = _imp.create_dynamic(ModuleSpec("_engine", None, origin=path))
    _imp.exec_dynamic(engine)
    return engine


def passes(slot: Any, nothing: Any, last: bool, expected: int) -> bool:
    """Warm the simulated caches and predictors up with one pass, then make the pass that counts; was the first one right?"""
    right: bool = slot.run(0) == expected
    (nothing, slot)[last].run(0)
    return right


def main(path: str, last: str, body: str, size: str, placement: str, *arms: str) -> None:
    """Fork one process for each arm, one after the other."""
    engine = load(path)
    handlers = engine.handler_set(body, size, placement == "packed", *map(contents, ARRAYS))
    packets, frequency = contents("packets"), contents("frequency")
    ended = []
    for arm in arms:
        process = posix.fork()
        if process == 0:
            slot = engine.slot(arm, handlers, packets, frequency)
            nothing = engine.slot(arm, handlers, b"", frequency)
            expected = int(contents(f"expected.{arm}"))
            posix._exit(0 if passes(slot, nothing, last == "packets", expected) else 1)
        ended.append(posix.waitpid(process, 0))
    for process, status in ended:
        print(process, status)


if __name__ == "__main__":
    main(*sys.argv[1:])
