"""How small a difference each tool sees in a second: one function against itself, again and again, side by side.

    python tests/bench/resolution.py [--comparisons N] [--out FILE]

Every tool times the same machine code (table-compact over 100 fat handlers, uniform traffic) against itself for about a second
of measuring, warm-up and process starts not counted against it; the tools take turns. A perfect tool would always answer a ratio
of 1. What it answers instead scatters: the table gives the standard deviation of the log-ratio, scaled to one second of
measuring, with its 95 % interval (chi-squared), and how many times less ours resolves than the best of the others.

Google Benchmark runs with random interleaving and 20 repetitions, its answer is the ratio of the medians (of the means would be
worse); pyperf with 10 processes of 5 values each, its answer is the ratio of the means, the one that it reports (of the medians:
also tried, the better of the two counts).
"""

from __future__ import annotations

import argparse
import json
import math
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import chi2

import dispatchlab as dl
from dispatchlab import _engine
from dispatchlab.arms import prepare
from dispatchlab.environment import environment
from dispatchlab.files import write_atomic
from dispatchlab.measure import BLOCK, Cell, Runner, as_measurement, choose_cpu, prepare_cells, shortest_block
from dispatchlab.summary import log_ratio

ARM, HANDLERS, SECONDS = "table-compact", 100, 1.0
HERE, ROOT = Path(__file__).resolve().parent, Path(__file__).resolve().parents[2]
Answer = tuple[float, float]
"""A log-ratio, and the seconds that were measured for it."""


def subject() -> Any:
    """The engine's slot that all tools time."""
    hs = dl.handlers(HANDLERS)
    return prepare(ARM, hs, dl.traffic.uniform(hs))


def ours() -> Callable[[int], Answer]:
    hs = dl.handlers(HANDLERS)
    clock = _engine.clock_info()
    cells = [Cell(ARM, hs, dl.traffic.uniform(hs), ARM)]
    run = Runner(prepare_cells(cells, 0, BLOCK), BLOCK, choose_cpu(None), 0, clock["ticks_per_ns"])
    run.lengthen(shortest_block(clock))
    per_round = run.pilot(shortest_block(clock), "ours") / clock["ticks_per_ns"] / 1e9

    def answer(seed: int) -> Answer:
        rounds = run.rounds(round(SECONDS / per_round), None, seed)
        m = as_measurement("ours", run.prepared, run, rounds, 0, {})
        return log_ratio(m, m.twin, 0).value, per_round * len(m.ticks)

    return answer


def google(folder: Path) -> Callable[[int], Answer]:
    hs = dl.handlers(HANDLERS)
    tr = dl.traffic.uniform(hs)
    for name in ("keys", "masks", "values", "order"):
        (folder / name).write_bytes(getattr(hs, name).tobytes())
    (folder / "packets").write_bytes(tr.packets.tobytes())
    program = build(folder)
    command = [
        str(program), str(folder), ARM, str(HANDLERS), str(len(tr)), "--benchmark_format=json", "--benchmark_repetitions=20",
        "--benchmark_enable_random_interleaving=true", f"--benchmark_min_time={SECONDS / 40}",
    ]  # fmt: skip

    def answer(seed: int) -> Answer:
        cpu = choose_cpu(None)
        done = subprocess.run(["taskset", "-c", str(cpu), *command], check=True, capture_output=True, text=True)
        rows = json.loads(done.stdout)["benchmarks"]
        runs = [r for r in rows if r["run_type"] == "iteration"]
        time = {n: float(np.median([r["cpu_time"] for r in runs if r["name"].startswith(n)])) for n in "ab"}
        return math.log(time["b"] / time["a"]), sum(r["real_time"] * r["iterations"] for r in runs) / 1e9

    return answer


def build(folder: Path) -> Path:
    """The Google Benchmark program around the core of this tree, compiled as setup.py compiles it."""
    flags = ["-O3", "-D_GNU_SOURCE", *(f"-I{ROOT / 'csrc' / i}" for i in ("include", "core", "core/arms")), "-w"]
    objects = []
    for source in [*sorted((ROOT / "csrc/core").rglob("*.c")), HERE / "subject.c", HERE / "google.cc"]:
        objects.append(str(folder / f"{len(objects)}.o"))
        language = ["g++", "-std=c++17"] if source.suffix == ".cc" else ["gcc", "-std=c11", "-fno-lto"]
        stamps = ["-fno-tree-slp-vectorize", "-fno-schedule-insns2"] if source.parent.name == "stamps" else []
        run = [*language, *flags, *stamps, "-c", str(source), "-o", objects[-1]]
        done = subprocess.run(run, capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"{shlex.join(run)}\n{done.stderr}")
    subprocess.run(["g++", *objects, "-o", str(folder / "google"), "-lbenchmark", "-lpthread"], check=True)
    return folder / "google"


def pyperf_answers(folder: Path) -> tuple[Callable[[int], Answer], Callable[[int], Answer]]:
    """By its means and by its medians, from the same runs."""
    found: dict[int, tuple[Answer, Answer]] = {}

    def run(seed: int) -> tuple[Answer, Answer]:
        import pyperf

        if seed not in found:
            out = folder / f"pyperf-{seed}.json"
            subprocess.run(
                [sys.executable, str(HERE / "under_pyperf.py"), "-o", str(out), "--processes=10", "--values=5", "--warmups=1",
                 f"--min-time={SECONDS / 100}", f"--affinity={choose_cpu(None)}", "--inherit-environ=PYTHONPATH", "--quiet"],
                check=True, capture_output=True, cwd=HERE,
            )  # fmt: skip
            a, b = pyperf.BenchmarkSuite.load(str(out)).get_benchmarks()
            seconds = sum(sum(v * r.get_loops() for v in r.values) for bench in (a, b) for r in bench.get_runs() if r.values)
            mean, median = math.log(b.mean() / a.mean()), math.log(b.median() / a.median())
            found[seed] = (mean, seconds), (median, seconds)
        return found[seed]

    return lambda seed: run(seed)[0], lambda seed: run(seed)[1]


def row(tool: str, answers: list[Answer]) -> dict[str, Any]:
    """Spread per second of measuring: the standard deviation times the root of the seconds, with its interval."""
    ratios, seconds = np.array(answers).T
    n, scaled = len(ratios), ratios * np.sqrt(seconds.mean())
    spread = float(np.sqrt(np.mean(scaled**2)))  # around the truth, which is known: a ratio of 1
    low, high = (spread * math.sqrt(n / float(chi2.ppf(q, n))) for q in (0.975, 0.025))
    return {"tool": tool, "comparisons": n, "seconds": float(seconds.mean()), "spread": spread, "low": low, "high": high}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--comparisons", type=int, default=20)
    parser.add_argument("--out", type=Path, help="store what was found, as JSON")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        mean, median = pyperf_answers(Path(name))
        tools = {
            "dispatchlab": ours(),
            "Google Benchmark, random interleaving": google(Path(name)),
            "pyperf, means": mean,
            "pyperf, medians": median,
        }
        answers: dict[str, list[Answer]] = {tool: [] for tool in tools}
        for seed in range(args.comparisons):
            for tool, answer in tools.items():
                answers[tool].append(answer(seed))
            if sys.stderr.isatty():
                print(f"\r{seed + 1}/{args.comparisons}", end="", file=sys.stderr)
    rows = [row(tool, found) for tool, found in answers.items()]
    best = min(rows[1:], key=lambda r: float(r["spread"]))
    document = {
        "resolution": rows,
        "times": best["spread"] / rows[0]["spread"],
        "created": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "environment": environment(cpu=choose_cpu(None)),
    }
    from dispatchlab.evidence import resolution_table
    from dispatchlab.report import as_text

    print(as_text(resolution_table(document)))
    if args.out is not None:
        write_atomic(args.out, (json.dumps(document, indent=1) + "\n").encode())
    return 0


if __name__ == "__main__":
    os.environ.setdefault("PYTHONPATH", str(ROOT))
    raise SystemExit(main())
