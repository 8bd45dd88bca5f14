"""What the progress bar does to an answer: the same comparison with it and without it, in turns.

    python tests/bench/progress.py [--pairs N]

Prints by how much the ratio table-compact / direct-call shifts when a bar is drawn while it is measured.
"""

from __future__ import annotations

import argparse
import io

import numpy as np
from scipy.stats import t as student
from tqdm import tqdm

import dispatchlab as dl
from dispatchlab.measure import Cell, measure_cells
from dispatchlab.summary import log_ratio


def once(cells: list[Cell], seed: int, bar: bool) -> float:
    with tqdm(total=1, file=io.StringIO(), disable=not bar, mininterval=0.05) as drawn:

        def progress(done: int, planned: int) -> None:
            drawn.total = planned
            drawn.update(done - drawn.n)

        m = measure_cells("progress", cells, budget="1s", seed=seed, progress=progress if bar else None)
    return log_ratio(m, "table-compact", "direct-call").value


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=16)
    args = parser.parse_args()
    hs = dl.handlers(100)
    tr = dl.traffic.uniform(hs)
    cells = [Cell("table-compact", hs, tr), Cell("direct-call", hs, tr)]
    shift = np.array(
        [once(cells, seed, bar=True) - once(cells, seed, bar=False) for seed in range(args.pairs)]
    )
    half = float(student.ppf(0.975, len(shift) - 1)) * shift.std(ddof=1) / np.sqrt(len(shift))
    mean, low, high = (f"{100 * x:+.3f}" for x in (shift.mean(), shift.mean() - half, shift.mean() + half))
    print(f"the bar shifts the ratio by {mean} % [{low}, {high}]")


if __name__ == "__main__":
    main()
