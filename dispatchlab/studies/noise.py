"""Study `noise`: how evenly this machine runs, step by step of the advice for quiet benchmarks that can be followed here."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ..between import keep_rounds
from ..bursts import Knobs, command
from ..errors import ToolError, explain
from ..machine.process import tuned
from ..machine.tune import plans, request
from ..measure import record
from ..recording import Recording
from .options import Options

BURSTS = 100
PACKAGE_ROOT = Path(__file__).parent.parent.parent
LONGEST_S = 60


MACHINE = {
    "governor": "performance governor",
    "floor": "frequency floor",
    "turbo": "turbo off",
    "smt": "hyperthreading off",
    "nmi-watchdog": "watchdog off",
    "irq": "interrupts away",
    "cpuset": "CPU reserved",
}
"""Knobs of the tuner, and what their rungs are called."""


@dataclass(frozen=True)
class Step:
    """own: what the process does for itself; machine: what the tuner turns around it, and puts back."""

    own: Knobs = field(default_factory=Knobs)
    machine: tuple[str, ...] = ()


def steps(cpu: int, machine: Sequence[str] = ()) -> dict[str, Step]:
    """Name -> step: the ladder, each rung one more than the one before, then each knob alone."""
    every = Knobs(cpu, fixed=True, small=True, real_time=True)
    return {
        "untuned": Step(),
        "+ pinned": Step(Knobs(cpu)),
        "+ addresses fixed": Step(Knobs(cpu, fixed=True)),
        "+ no huge pages": Step(Knobs(cpu, fixed=True, small=True)),
        "+ real-time": Step(every),
        **{f"+ {MACHINE[knob]}": Step(every, tuple(machine[: n + 1])) for n, knob in enumerate(machine)},
        "addresses fixed alone": Step(Knobs(fixed=True)),
        "no huge pages alone": Step(Knobs(small=True)),
        "real-time alone": Step(Knobs(real_time=True)),
        **{f"{MACHINE[knob]} alone": Step(machine=(knob,)) for knob in machine},
    }


def run(options: Options) -> Recording:
    """Rounds in which each step is run once, in an order of its own, each in a fresh process.

    extra["noise"]: "rounds", a list of {step: {"serial": ns, "vectorised": ns, "dispatch": ns/packet}}; "refused", step -> why;
    "absent", knob -> why it was not turned.
    """
    why_not = offered(options.pinned)
    ladder = steps(options.pinned, [knob for knob, why in why_not.items() if not why])
    bursts = 20 if options.quick else BURSTS
    refused = {name: why for name, step in ladder.items() if (why := repeat(step, 1, options.pinned).get("refused"))}
    kept = [name for name in ladder if name not in refused]
    rng = np.random.default_rng(options.seed)

    def one() -> dict[str, Any]:
        return {kept[i]: repeat(ladder[kept[i]], bursts, options.pinned) for i in rng.permutation(len(kept))}

    done, interrupted = keep_rounds([partial(one)] * (options.rounds or (10 if options.quick else 12)))
    absent = {MACHINE[knob]: why for knob, why in why_not.items() if why}
    facts = {"rounds": done, "steps": kept, "refused": refused, "absent": absent, "bursts": bursts, "interrupted": interrupted}
    return record("noise", [], seed=options.seed, cpu=options.pinned, noise=facts)


def offered(cpu: int) -> dict[str, str]:
    """Knob of the machine -> why it cannot be turned here, "" where it can."""
    wanted = plans(request(Path("/"), cpu, True, 0, ()), tuple(MACHINE))
    return {plan.knob: plan.why for plan in sorted(wanted, key=lambda p: list(MACHINE).index(p.knob))}


def repeat(step: Step, bursts: int, cpu: int) -> dict[str, Any]:
    """One repetition in a process of its own, the machine tuned around it where the step says so. ToolError when it fails."""
    if not step.machine:
        return _repetition(step.own, bursts)
    with tuned(cpu, only=step.machine) as outcomes:
        if failed := [o for o in outcomes if not o.done and o.why and o.knob in step.machine]:
            return {"refused": f"{failed[0].knob}: {failed[0].why}"}
        return _repetition(step.own, bursts)


def _repetition(knobs: Knobs, bursts: int) -> dict[str, Any]:
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
