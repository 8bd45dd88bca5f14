"""Fixtures that several test modules share."""

from collections.abc import Callable, Mapping

import numpy as np
import pytest
from hypothesis import settings

from dispatchlab.recording import Measurement, Recording, Slot

# Cases must be the same in every run, and none may fail because a machine is slow.
settings.register_profile("dispatchlab", deadline=None, derandomize=True)
settings.load_profile("dispatchlab")


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
