"""The ladder of noise: knobs are the process's own and really turned, what is refused is named, and the claims follow the numbers."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dispatchlab import _engine, bursts
from dispatchlab.bursts import Knobs, main
from dispatchlab.errors import ToolError
from dispatchlab.figures import draw, names
from dispatchlab.ladder import calmer, claims, deviation, faster, variation
from dispatchlab.recording import Recording
from dispatchlab.report import tables
from dispatchlab.studies import Options
from dispatchlab.studies import noise as study

CPU = _engine.allowed_cpus()[-1]
MACHINE = ("/proc/sys/kernel/randomize_va_space", "/sys/kernel/mm/transparent_hugepage/enabled")


def state() -> tuple[object, ...]:
    """What the study must leave as it was."""
    files = tuple(Path(p).read_text(encoding="ascii") for p in MACHINE if Path(p).exists())
    return (*files, os.sched_getaffinity(0), os.sched_getscheduler(0))


@pytest.fixture(scope="module")
def short() -> Recording:
    before = state()
    made = pytest.MonkeyPatch()
    few = ("untuned", "+ pinned", "+ addresses fixed")
    whole = study.steps
    made.setattr(study, "steps", lambda cpu, machine: {k: v for k, v in whole(cpu, machine).items() if k in few})
    try:
        recording = study.run(Options(quick=True, rounds=1))
    finally:
        made.undo()
    assert state() == before
    return recording


def made_up(short: Recording, cv: dict[str, float], mean: dict[str, float]) -> Recording:
    """A recording of 20 rounds with these CVs and means."""
    rng = np.random.default_rng(3)
    steps = list(cv)
    rows = [
        {s: dict.fromkeys(("serial", "vectorised", "dispatch"), float(mean[s] * rng.normal(1, cv[s]))) for s in steps}
        for _ in range(20)
    ]
    return replace(short, extra={"noise": {**short.extra["noise"], "rounds": rows, "steps": steps}})


def test_the_study_names_every_step_and_what_is_not_here(short: Recording) -> None:
    text = tables(short)
    for word in ("untuned", "+ pinned", "+ addresses fixed", "performance governor", "turbo off", "hyperthreading off"):
        assert word in text
    assert "noise-ladder" in names(short)
    draw(short, "noise-ladder")


def asked_of_a_child(knobs: Knobs, question: str) -> str:
    """What a process answers after it has turned these knobs."""
    code = f"from dispatchlab.bursts import *\nturn({knobs!r})\nimport os\nprint({question})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_pinned_child_may_use_one_cpu_and_no_huge_pages() -> None:
    question = "len(os.sched_getaffinity(0)), ctypes.CDLL(None).prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0)"
    assert asked_of_a_child(Knobs(CPU, small=True), question) == "1 1"


def test_addresses_are_the_same_in_two_children_that_fix_them() -> None:
    code = (
        "import sys\nfrom dispatchlab import bursts\n"
        "bursts.command = None\n"
        "bursts.os.execv = lambda p, a: os_execv(p, [p, '-c', \"print(open('/proc/self/stat').read().split()[27])\"])\n"
        "import os\nfrom posix import execv as os_execv\n"
        "bursts.fix_addresses([])"
    )
    done = [subprocess.run([sys.executable, "-c", code], capture_output=True, text=True) for _ in range(3)]
    if all("cannot be fixed" in d.stderr for d in done):
        pytest.skip("this kernel lets no process fix its addresses")
    assert [d.stderr for d in done] == [""] * 3
    assert len({d.stdout for d in done}) == 1 and int(done[0].stdout) > 0


def test_without_the_knob_addresses_move() -> None:
    code = "print(open('/proc/self/stat').read().split()[27])"
    seen = {subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout for _ in range(4)}
    if not Path(MACHINE[0]).exists() or Path(MACHINE[0]).read_text(encoding="ascii").strip() == "0":
        pytest.skip("this machine moves no addresses")
    assert len(seen) > 1


def test_a_kernel_that_does_not_tell_the_personality_refuses(monkeypatch) -> None:
    class Kernel:
        def personality(self, _: int) -> int:
            return -1

    monkeypatch.setattr(bursts.ctypes, "CDLL", lambda *_, **__: Kernel())
    with pytest.raises(OSError, match="cannot be fixed"):
        bursts.fix_addresses([])


def test_a_repetition_that_does_not_end_is_ended(monkeypatch) -> None:
    monkeypatch.setattr(study, "command", lambda knobs, bursts: [sys.executable, "-c", "import time; time.sleep(60)"])
    monkeypatch.setattr(study, "LONGEST_S", 0.2)
    with pytest.raises(ToolError, match="does not end"):
        study.repeat(study.Step(), 1, CPU)


def test_a_knob_that_the_kernel_refuses_is_named_and_not_run(monkeypatch, capsys) -> None:
    def no(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "sched_setscheduler", no)
    assert main([json.dumps({"real_time": True, "bursts": 1})]) == 0
    assert json.loads(capsys.readouterr().out) == {"refused": "Operation not permitted"}


def test_a_repetition_that_dies_ends_the_study_with_a_line(monkeypatch) -> None:
    monkeypatch.setattr(study, "command", lambda knobs, bursts: [sys.executable, "-c", "raise SystemExit('broken')"])
    with pytest.raises(ToolError, match="broken"):
        study.repeat(study.Step(), 1, CPU)


def test_the_claims_hold_where_the_posts_figures_are_ours(short: Recording) -> None:
    cv, mean = {"untuned": 0.08, "+ pinned": 0.012, "+ real-time": 0.002}, {"untuned": 100, "+ pinned": 50, "+ real-time": 50}
    found = claims(made_up(short, cv, mean).extra["noise"])
    assert [c.answer for c in found] == ["holds"] * 5


def test_the_claims_fail_where_nothing_helps(short: Recording) -> None:
    steps = ("untuned", "+ pinned", "+ real-time")
    found = claims(made_up(short, dict.fromkeys(steps, 0.012), dict.fromkeys(steps, 100.0)).extra["noise"])
    assert [c.answer for c in found[2:]] == ["does not hold here"] * 3
    assert found[0].answer != "holds" and found[1].answer != "holds"


def test_intervals_of_spread_cover_what_they_should() -> None:
    rng = np.random.default_rng(5)
    hits = [0, 0, 0]
    for _ in range(300):
        x, y = rng.normal(1, 0.02, 12), rng.normal(2, 0.02, 12)
        hits[0] += (e := deviation(x, 1)).low <= 0.02 <= e.high
        hits[1] += (e := calmer(x, y, 1)).low <= 2.0 <= e.high
        hits[2] += (e := faster(x, y, 1)).low <= 0.5 <= e.high
    assert all(h >= 270 for h in hits)
    assert variation(np.array([1.0]), 1).high == np.inf


def test_each_knob_that_the_tuner_has_here_is_a_rung_and_every_other_one_says_why_not(short: Recording) -> None:
    offered = study.offered(CPU)
    assert set(offered) == set(study.MACHINE)
    here = [knob for knob, why in offered.items() if not why]
    named = study.steps(CPU, here)
    assert all(f"+ {study.MACHINE[knob]}" in named and f"{study.MACHINE[knob]} alone" in named for knob in here)
    assert named[f"+ {study.MACHINE[here[-1]]}"].machine == tuple(here) if here else True
    assert set(short.extra["noise"]["absent"]) == {study.MACHINE[knob] for knob, why in offered.items() if why}


@pytest.mark.usefixtures("whole_machine")
def test_a_rung_of_the_tuner_leaves_the_machine_as_it_was() -> None:
    here = [knob for knob, why in study.offered(CPU).items() if not why]
    if not here:
        pytest.skip("the tuner can turn nothing of this machine here: " + str(study.offered(CPU)))
    before = {p: p.read_text() for p in Path("/proc/irq").glob("*/smp_affinity_list")}
    found = study.repeat(study.Step(machine=tuple(here)), 1, CPU)
    assert found.get("refused") or found["dispatch"] > 0
    assert {p: p.read_text() for p in before} == before
    assert not Path("/sys/fs/cgroup/cpuset/dispatchlab").exists()
