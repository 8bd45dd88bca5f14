"""dl_ring beside boost::lockfree::spsc_queue, in one process and interleaved: python tests/bench/spsc.py [ITEMS [ROUNDS]].

Needs a C and a C++ compiler and Boost's headers (Debian: libboost-dev). Prints medians and ratios to Boost,
item by item and with arrays, with intervals of 95 % for all of them together. The published
versions' ratios are in `dispatchlab run ring`; here the queues that a user could take are compared.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from dispatchlab.labs import median, text

ROOT = Path(__file__).parent.parent.parent


def build(folder: Path) -> Path:
    """The binary; CalledProcessError when something that it needs is missing."""
    here, flags = ROOT / "tests/bench", ["-O3", "-D_GNU_SOURCE", f"-I{ROOT / 'csrc/include'}"]
    subprocess.run(["cc", "-std=c11", *flags, "-c", here / "spsc.c", "-o", folder / "c.o"], check=True)
    subprocess.run(["c++", "-std=c++17", *flags, "-c", here / "spsc.cpp", "-o", folder / "cpp.o"], check=True)
    subprocess.run(["c++", folder / "c.o", folder / "cpp.o", "-o", folder / "spsc", "-lpthread"], check=True)
    return folder / "spsc"


def race(binary: Path, items: int, rounds: int) -> dict[str, list[float]]:
    """Million items per second of every round, by queue."""
    cpus = sorted(os.sched_getaffinity(0))[:2]
    if len(cpus) < 2:
        sys.exit("spsc: a hand-off needs two CPUs: one is allowed")
    words = [str(binary), str(items), str(rounds), *map(str, cpus)]
    out = subprocess.run(words, check=True, capture_output=True, text=True).stdout
    found: dict[str, list[float]] = {}
    for name, value in map(str.split, out.splitlines()):
        found.setdefault(name, []).append(float(value))
    return found


def main() -> None:
    items, rounds = (int(x) for x in (*sys.argv[1:], *("5000000", "11")[len(sys.argv) - 1 :]))
    with tempfile.TemporaryDirectory() as folder:
        found = race(build(Path(folder)), items, rounds)
    for name, values in found.items():
        base = found["boost-arrays" if name in ("dl_ring-arrays", "dl_ring-in-place") else "boost"]
        ratios = text(median([v / b for v, b in zip(values, base, strict=True)], len(found)))
        against = "" if values is base or name == "boost-arrays" else f", {ratios} of the same with Boost, round by round"
        print(f"{name:17}{text(median(values, len(found)))} million items/s{against}")


if __name__ == "__main__":
    main()
