"""Every arm past the table against the oracle, packet for packet: python tests/bench/million.py [PACKETS], else 2^20.

So many packets for each (number of handlers, residual share, order), batches of every size and a ragged tail; the test suite does the
same with fewer packets. Prints a line for each number of handlers; ends with an AssertionError at the first wrong answer.
"""

import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from test_past import COUNTS, every_case


def main(packets: int = 1 << 20) -> None:
    """All cases."""
    for count in COUNTS:
        begin = time.monotonic()
        every_case(count, packets)
        took = time.monotonic() - begin
        print(f"{count} handlers: every arm answers as the oracle does, {packets + 7} packets a case ({took:.0f} s)", flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
