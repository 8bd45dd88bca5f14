"""A long check of the labs: python tests/bench/long_check.py [ITEMS [ACQUISITIONS]], 1e8 and 1e7 where nothing is said.

Every ring hands over so many numbers between two CPUs, and none may be lost, twice or out of order; under every lock two threads
count so far, and no increment may be lost. Prints a line for each; exit code 1 when one fails.
"""

import sys
import time

from dispatchlab import _engine
from dispatchlab.between import two_cpus
from dispatchlab.studies import lock, ring


def main(items: int = 10**8, acquisitions: int = 10**7) -> int:
    """How many versions failed, at most 1."""
    cpus, wrong = two_cpus(), 0
    expected = _engine.lab_transfer_expected(items)
    for version in ring.VERSIONS:
        begin = time.monotonic()
        found = ring.failures(version, items, _engine.lab_ring(version, cpus, ring.CAPACITIES[1], items), expected)
        wrong += tell(f"ring {version}: {items} items", found, begin)
    for version in lock.VERSIONS:
        begin = time.monotonic()
        out = _engine.lab_lock(version, cpus, acquisitions // len(cpus))
        wrong += tell(f"lock {version}: {out['counter']} acquisitions", lock.failures(version, acquisitions, out["counter"]), begin)
    print(f"{wrong} of {len(ring.VERSIONS) + len(lock.VERSIONS)} failed")
    return min(wrong, 1)


def tell(what: str, found: list[str], begin: float) -> bool:
    """Print how it went; whether it went wrong."""
    print(f"{what}: {'; '.join(found) or 'all there, once, in order'} ({time.monotonic() - begin:.1f} s)", flush=True)
    return bool(found)


if __name__ == "__main__":
    sys.exit(main(*(int(float(text)) for text in sys.argv[1:])))
