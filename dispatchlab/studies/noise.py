"""Study `noise`: how evenly this machine runs, step by step of the advice for quiet benchmarks that can be followed here."""

from __future__ import annotations

import json
import os
import subprocess
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ..between import keep_rounds
from ..bursts import Knobs, command
from ..errors import ToolError, explain
from ..measure import record
from ..recording import Recording
from .options import Options

BURSTS = 100
PACKAGE_ROOT = Path(__file__).parent.parent.parent
LONGEST_S = 60


def steps(cpu: int) -> dict[str, Knobs]:
    """Name -> knobs: the ladder, each rung one more than the one before, then each knob alone."""
    return {
        "untuned": Knobs(),
        "+ pinned": Knobs(cpu),
        "+ addresses fixed": Knobs(cpu, fixed=True),
        "+ no huge pages": Knobs(cpu, fixed=True, small=True),
        "+ real-time": Knobs(cpu, fixed=True, small=True, real_time=True),
        "addresses fixed alone": Knobs(fixed=True),
        "no huge pages alone": Knobs(small=True),
        "real-time alone": Knobs(real_time=True),
    }


def run(options: Options) -> Recording:
    """Rounds in which each step is run once, in an order of its own, each in a fresh process.

    extra["noise"]: "rounds", a list of {step: {"serial": ns, "vectorised": ns, "dispatch": ns/packet}}; "refused", step -> why;
    "absent", knob -> why it was not turned.
    """
    ladder = steps(options.pinned)
    bursts = 20 if options.quick else BURSTS
    refused = {name: why for name, knobs in ladder.items() if (why := repeat(knobs, 1).get("refused"))}
    kept = [name for name in ladder if name not in refused]
    rng = np.random.default_rng(options.seed)

    def one() -> dict[str, Any]:
        return {kept[i]: repeat(ladder[kept[i]], bursts) for i in rng.permutation(len(kept))}

    done, interrupted = keep_rounds([partial(one)] * (options.rounds or (10 if options.quick else 12)))
    facts = {"rounds": done, "steps": kept, "refused": refused, "bursts": bursts, "interrupted": interrupted}
    recording = record("noise", [], seed=options.seed, cpu=options.pinned, noise=facts)
    facts["absent"] = absent(recording)
    return recording


def repeat(knobs: Knobs, bursts: int) -> dict[str, Any]:
    """One repetition in a process of its own. ToolError when it fails."""
    path = os.pathsep.join(filter(None, (str(PACKAGE_ROOT), os.environ.get("PYTHONPATH", ""))))
    try:
        done = subprocess.run(
            command(knobs, bursts), capture_output=True, text=True, env={**os.environ, "PYTHONPATH": path}, timeout=LONGEST_S
        )
    except subprocess.TimeoutExpired as error:
        raise ToolError(explain("a repetition does not end", "noise", f"{LONGEST_S} s or less")) from error
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise ToolError(explain("a repetition failed", "noise", "exit code 0", f"{done.returncode}: {last}"))
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def absent(recording: Recording) -> dict[str, str]:
    """The post's other knobs, and why no rung is theirs."""
    env = recording.environment
    found = {}
    for knob, name in (("performance governor", "governor"), ("turbo off", "turbo"), ("hyperthreading off", "smt")):
        setting = env.get(name) or {}
        state = "already" if setting.get("state") == "ok" else "not turned by this study" if setting.get("value") else "not here"
        found[knob] = f"{state}: {setting.get('why')}"
    return found
