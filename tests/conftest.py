"""Fixtures that several test modules share."""

import fcntl
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings

from dispatchlab.recording import Measurement, Recording, Slot

# A child started in the checkout must import the installed package and not the sources beside it.
os.environ["PYTHONSAFEPATH"] = "1"

# Cases must be the same in every run, and none may fail because a machine is slow.
settings.register_profile("dispatchlab", deadline=None, derandomize=True)
settings.load_profile("dispatchlab")


@pytest.fixture
def whole_machine() -> Iterator[None]:
    """For tests that turn the machine's own knobs or must find them unturned: one of them at a time, in whatever process."""
    with open(os.path.join(tempfile.gettempdir(), f"dispatchlab-tests-{os.getuid()}.lock"), "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


NS = {"scan": 300.0, "scan-ordered": 160.0, "table-compact": 50.0, "direct-call": 38.0}


def _slot(arm: str, handlers: int, role: str = "arm") -> Slot:
    label = f"{arm} {handlers}" + (" twin" if role == "twin" else "")
    return Slot(
        arm, label, role, handlers, "chain", "fat", "registration", 0.1, False, "packed", "uniform", 32768
    )  # fmt: skip


def _measurement(handlers: int, rounds: int, ns: Mapping[str, float], noise: float, seed: int) -> Measurement:
    rng = np.random.default_rng(seed)
    slots = [_slot(arm, handlers) for arm in ("scan", "scan-ordered", "table-compact")]
    slots += [_slot("table-compact", handlers, "twin"), _slot("direct-call", handlers, "control")]
    block, ticks_per_ns = 8192, 2.0
    level = np.log([ns[slot.arm] * block * ticks_per_ns for slot in slots])
    common = rng.normal(0, noise * 5, (rounds, 1))  # what the whole machine does in a round
    ticks = np.exp(level + common + rng.normal(0, noise, (rounds, len(slots)))).astype(np.int64)
    labels = [slot.label for slot in slots]
    return Measurement(
        name=f"{handlers} handlers",
        slots=tuple(slots),
        reference=2,
        twin=3,
        block=block,
        ticks=ticks,
        order=np.array([rng.permutation(len(slots)) for _ in range(rounds)]),
        placement=np.arange(rounds) % 4,
        window=np.arange(rounds) % 4 * block,
        ticks_per_ns=ticks_per_ns,
        clock={"source": "tsc", "tick_ns": 0.5, "cost_ticks": 40},
        ledger={"involuntary": np.zeros(rounds, int), "skew_ppb": rng.integers(-9, 9, rounds)},
        flagged=np.arange(rounds) == 1,
        checksums=dict.fromkeys(labels, f"{handlers:016x}"),
        expected=dict.fromkeys(labels, f"{handlers:016x}"),
        probes={label: float(handlers + 1) / 2 for label in labels[:2]},
        expected_probes={label: float(handlers + 1) / 2 for label in labels[:2]},
        footprint={labels[2]: 24576},
    )


@pytest.fixture
def sample() -> Callable[..., Recording]:
    """sample(handlers=(100,), rounds=12, ns={arm: ns}, noise=0.01, seed=0, **fields): a made-up Recording."""

    def make(
        handlers: tuple[int, ...] = (100,),
        rounds: int = 12,
        ns: Mapping[str, float] = NS,
        noise: float = 0.01,
        seed: int = 0,
        **fields: object,
    ) -> Recording:
        given = {
            "study": "scan",
            "seed": 0,
            "package": {"version": "0.1.0", "commit": None},
            "environment": {
                "cpu_model": "Model A",
                "flags": "-O3",
                "thp": {"state": "ok", "value": "never", "why": ""},
            },
            "measurements": [_measurement(n, rounds, {**NS, **ns}, noise, seed + n) for n in handlers],
            "extra": {"note": "made up"},
            "created": "2026-01-31T12:00:00Z",
        }
        return Recording(**{**given, **fields})

    return make


PROBES = {"uniform": (52.3, 51.0, 52.5), "zipf": (67.6, 18.7, 20.0), "hot": (88.2, 5.7, 6.0), "worst": (100.0, 3.0, 3.1)}


def _probes(slot: Slot) -> float:
    if not slot.arm.startswith("scan"):
        return 0.2 if slot.arm.startswith("table") else 0.0
    if slot.handlers != 100:
        return {10: 5.7, 25: 13.9, 50: 27.2}.get(slot.handlers, slot.handlers / 2)
    return PROBES.get(slot.traffic, PROBES["zipf"])[("scan", "scan-ordered", "scan-mtf").index(slot.arm)]


def _cost(slot: Slot) -> float:
    """A calm machine on which every probe costs 3 ns and the table rises with the number of handlers."""
    if slot.arm in ("null", "null-serial"):
        return (1.2 if slot.arm == "null" else 2.3) * (1 + (slot.pool > 1 << 17))
    if slot.size == "tiny":
        return 12.0 + 6.0 * (slot.pool > 1 << 17)
    if slot.arm == "direct-call":
        return 38.0
    if slot.arm.startswith("table"):
        return 40.0 + 2.0 * np.log(slot.handlers)
    return 40.0 + 3.0 * _probes(slot) + (6.0 if slot.arm == "scan-mtf" else 0.0)


def _cells(name: str) -> list[Slot]:
    def cell(arm: str, handlers: int = 100, traffic: str = "uniform", pool: int = 32768, size: str = "fat") -> Slot:
        role = "control" if arm in ("null", "null-serial", "direct-call") else "arm"
        label = f"{arm} {handlers} {traffic} {pool}"
        return Slot(arm, label, role, handlers, "chain", size, "registration", 0.1, False, "packed", traffic, pool)

    five = ("scan", "scan-ordered", "scan-mtf", "table-direct16", "table-compact")
    if name == "instrument":
        return [cell(arm) for arm in ("null", "null-serial", "direct-call", "table-compact")]
    if name == "scan":
        return [cell(arm, n) for n in (10, 25, 50, 100, 200, 500) for arm in ("direct-call", "scan", "table-compact")]
    if name == "pool":
        return [cell(arm, pool=512 << i, size="tiny") for i in range(13) for arm in ("null", "table-compact")]
    traffics = PROBES if name == "traffic" else [name.removeprefix("traffic ")]
    return [cell(arm, traffic=t) for t in traffics for arm in five] + [cell("direct-call", traffic=min(traffics))]


@pytest.fixture(scope="session")
def study() -> Callable[..., Recording]:
    """study(names, cost=, rounds=48, noise=0.002, twin=1.0, **fields): a made-up recording of the studies' shape.

    cost(slot, placement) -> ns; twin is how much slower the second, identical slot is.
    """

    def measured(name: str, cost: Callable[[Slot, int], float], rounds: int, noise: float, twin: float) -> Measurement:
        cells = _cells(name)
        reference = max(i for i, s in enumerate(cells) if s.arm == "table-compact" and s.handlers <= 100)
        slots = [*cells, replace(cells[reference], role="twin", label="twin")]
        rng = np.random.default_rng(len(cells))
        placement = np.arange(rounds) % 4
        ns = np.array([[cost(s, p) * (twin if s.role == "twin" else 1.0) for s in slots] for p in placement])
        ticks = np.rint(ns * 8192 * 2.0 * np.exp(rng.normal(0, noise, ns.shape))).astype(np.int64)
        labels = [s.label for s in slots]
        probes = {s.label: _probes(s) for s in slots}
        size = {"table-compact": 24576, "table-direct16": 1 << 20}
        return Measurement(
            name=name,
            slots=tuple(slots),
            reference=reference,
            twin=len(slots) - 1,
            block=8192,
            ticks=ticks,
            order=np.array([rng.permutation(len(slots)) for _ in range(rounds)]),
            placement=placement,
            window=np.arange(rounds),
            ticks_per_ns=2.0,
            clock={"source": "tsc", "cpu": 1},
            ledger={"involuntary": np.zeros(rounds, int)},
            flagged=np.arange(rounds) % 16 == 1,
            checksums=dict.fromkeys(labels, f"{1:016x}"),
            expected=dict.fromkeys(labels, f"{1:016x}"),
            probes=probes,
            expected_probes=probes,
            footprint={s.label: size.get(s.arm, 8 * s.handlers) for s in slots},
        )

    def make(
        names: tuple[str, ...] = ("instrument", "scan", "traffic", "traffic a.service.csv", "pool"),
        cost: Callable[[Slot, int], float] = lambda slot, placement: _cost(slot),
        rounds: int = 48,
        noise: float = 0.002,
        twin: float = 1.0,
        **fields: object,
    ) -> Recording:
        warm_up = [round(150 * np.exp(-i / 6) + 49, 2) for i in range(200)]
        clock = {"source": "tsc", "ticks_per_ns": 2.0, "cost": 40}
        bodies = [{"body": "chain", "size": "fat", "handlers": 512, "distinct": 512, "as_documented": True}]
        caches = {"L1d": 32768, "L1i": 32768, "L2": 1 << 20, "L3": 32 << 20}
        given = {
            "study": "reproduce",
            "seed": 0,
            "package": {"version": "0.1.0", "commit": None},
            "environment": {"cpu_model": "Model A", "hypervisor": "kvm", "compiler": "cc 12", "flags": "-O3", "caches": caches},
            "measurements": [measured(name, cost, rounds, noise, twin) for name in names],
            "extra": {"instrument": {"clock": clock, "warm_up_ns": warm_up, "bodies": bodies}},
            "created": "2026-01-31T12:00:00Z",
        }
        return Recording(**{**given, **fields})

    return make


SHIPPED = sorted((Path(__file__).parent.parent / "data").glob("reproduce.json*"))


@pytest.fixture(params=SHIPPED or [None], ids=lambda p: p.name if p else "none")
def shipped(request: pytest.FixtureRequest) -> Path:
    """Each recording of the whole study that lies in data/."""
    if request.param is None:
        pytest.skip("data/ holds no recording of the whole study")
    return Path(request.param)
