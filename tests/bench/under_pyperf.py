"""The subject under pyperf, twice: one function against itself. Started by resolution.py; takes pyperf's own options."""

import pyperf
from resolution import ARM, subject

slot = subject()


def time(loops: int) -> float:
    begin = pyperf.perf_counter()
    for _ in range(loops):
        slot.run(0)
    return pyperf.perf_counter() - begin


if __name__ == "__main__":
    runner = pyperf.Runner()
    runner.bench_time_func(f"{ARM} a", time)
    runner.bench_time_func(f"{ARM} b", time)
