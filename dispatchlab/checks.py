"""Every checksum and invariant of the engine, nothing timed: what `dispatchlab check` runs.

A check is a function below: its name is the check's, the first line of its docstring says what holding proves, and it reports
to a Findings what it compared. One that compared nothing fails.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from . import _engine, oracle
from .arms import Arm, arms, prepare, results
from .cases import COUNTS, awkward, matrix
from .design import permutation
from .errors import UsageError, explain
from .handlers import ORDERS, HandlerSet, bodies, handlers
from .measure import PLACEMENTS, choose_cpu
from .probes import count_probes, expected_probes, mean_by_enumeration
from .traffic import PACKET, Traffic, from_packets, make, uniform

MOST_SHOWN = 5


@dataclass(frozen=True)
class Scale:
    """How much is compared."""

    counts: tuple[int, ...] = COUNTS
    packets: int = 8192
    """To each handler set of the matrix: 139 of them, more than a million packets in all."""

    @property
    def most(self) -> int:
        """The largest handler set."""
        return self.counts[-1]


FULL = Scale()
QUICK = Scale(counts=(1, 2, 10, 100), packets=512)


@dataclass
class Findings:
    """What a check compared, and what did not hold."""

    compared: int = 0
    failures: list[str] = field(default_factory=list)

    def equal(self, where: str, got: Any, wanted: Any) -> None:
        """Two arrays of the same shape, entry by entry."""
        got, wanted = np.asarray(got), np.asarray(wanted)
        self.compared += wanted.size
        if got.shape != wanted.shape:
            self.failures.append(f"{where}: expected shape {wanted.shape}, got {got.shape}")
        elif len(wrong := np.flatnonzero(np.ravel(got != wanted))):
            first = wrong[0]
            self.failures.append(
                f"{where}: {len(wrong)} of {wanted.size} differ, the first at {first}: "
                f"expected {wanted.flat[first]}, got {got.flat[first]}"
            )

    def true(self, where: str, holds: bool) -> None:
        """One statement."""
        self.compared += 1
        if not holds:
            self.failures.append(where)


@dataclass(frozen=True)
class Outcome:
    """One check that ran. failures: a line each; none when it holds."""

    name: str
    proves: str
    compared: int
    failures: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """Whether it holds."""
        return not self.failures


Check = Callable[[Scale, Findings], None]
CHECKS: list[Check] = []


def check(function: Check) -> Check:
    """Register a check."""
    CHECKS.append(function)
    return function


def run(quick: bool = False, only: tuple[str, ...] = ()) -> Iterator[Outcome]:
    """Run every check in turn, or those named. quick: fewer packets, and up to 100 handlers instead of 512. UsageError for a name
    that no check has."""
    known = {_name(function): function for function in CHECKS}
    for name in only:
        if name not in known:
            raise UsageError(explain("no such check", expected=", ".join(known), got=name))
    for name in only or known:
        yield run_one(known[name], QUICK if quick else FULL)


def _name(function: Check) -> str:
    return function.__name__.replace("_", "-")


def run_one(function: Check, scale: Scale = FULL) -> Outcome:
    """Run one check; whatever it raises is a failure of it."""
    found = Findings()
    try:
        function(scale, found)
    except Exception as error:  # a broken engine can break a check anywhere; the other checks must still run
        found.failures.append(f"raised {type(error).__name__}: {error}")
    if not found.compared and not found.failures:
        found.failures.append("compared nothing")
    proves = (function.__doc__ or "").partition("\n")[0].rstrip(".")
    return Outcome(_name(function), proves, found.compared, tuple(found.failures))


def _holding(hs: HandlerSet, tr: Traffic) -> Iterator[tuple[Arm, Any]]:
    """Every arm that can hold the set, prepared. Some arms are closed over fewer handlers."""
    for arm in arms():
        try:
            yield arm, prepare(arm.name, hs, tr)
        except UsageError:
            continue


def _answer(slot: Any) -> np.ndarray[Any, np.dtype[np.uint32]]:
    return np.frombuffer(slot.results(), np.uint32)


@check
def answers(scale: Scale, found: Findings) -> None:
    """Every arm gives every packet the answer of the oracle, whatever the count, order, keys, residuals and overlaps."""
    held = set()
    for case in matrix(scale.counts, scale.packets):
        wanted = {kind: oracle.answers(case.handlers, case.traffic.packets, kind) for kind in {a.answers for a in arms()}}
        for arm, slot in _holding(case.handlers, case.traffic):
            held.add(arm)
            found.equal(f"{arm.name}, {case.name}", _answer(slot), wanted[arm.answers])
    for arm in arms():
        found.true(f"{arm.name}: could hold none of the handler sets", arm in held)


@check
def reference(scale: Scale, found: Findings) -> None:
    """The engine's own reference scan, which timed blocks are held against, selects and answers as the oracle does."""
    for case in matrix(scale.counts, scale.packets // 8):
        selected, answered = prepare("scan", case.handlers, case.traffic).reference()
        found.equal(f"selection, {case.name}", np.frombuffer(selected, np.int32), case.handlers.select(case.traffic.packets))
        wanted = oracle.answers(case.handlers, case.traffic.packets)
        found.equal(f"answers, {case.name}", np.frombuffer(answered, np.uint32), wanted)


@check
def orders(scale: Scale, found: Findings) -> None:
    """Where predicates do not overlap, no order of the list changes any answer of any arm."""
    for count in scale.counts[2:]:
        for residual in (0, 0.1, 1):
            hs = handlers(count, size="tiny", residual=residual)
            tr = awkward(hs, scale.packets, count)
            wanted = oracle.answers(hs, tr.packets)
            for order in (*ORDERS, permutation(count, count).tolist()):
                again = handlers(count, size="tiny", residual=residual, order=order, frequency=hs.frequency(tr.packets))
                for arm, slot in _holding(again, tr):
                    if arm.answers == "list":
                        found.equal(f"{arm.name}, {count} handlers in another order", _answer(slot), wanted)


@check
def order_is_behaviour(scale: Scale, found: Findings) -> None:
    """Where predicates overlap, the reverse list answers otherwise, and every arm follows it."""
    for count in scale.counts[2:]:
        forward, reverse = (handlers(count, size="tiny", overlap=True, order=o) for o in ORDERS[:2])
        tr = awkward(forward, scale.packets, count)
        first, second = oracle.answers(forward, tr.packets), oracle.answers(reverse, tr.packets)
        found.true(f"{count} handlers: both orders give the same answers", bool((first != second).any()))
        for hs, wanted in ((forward, first), (reverse, second)):
            for arm, slot in _holding(hs, tr):
                if arm.answers == "list":
                    found.equal(f"{arm.name}, {count} overlapping handlers, {hs.order_name}", _answer(slot), wanted)


@check
def bodies_by_formula(scale: Scale, found: Findings) -> None:
    """Every handler of every body and size computes its documented formula, and no two compute the same."""
    few, count = 8, scale.most
    for body, size, _ in bodies():
        hs = handlers(count, body=body, size=size, residual=0)
        packets = awkward(hs, few, 1).packets.repeat(count)
        packets["key"] = np.tile(hs.keys, few)
        got = results("table-direct16", hs, from_packets(packets))
        found.equal(f"{body} {size}", got, oracle.answers(hs, packets))
        distinct = len(np.unique(got.reshape(few, count), axis=1).T)
        found.true(f"{body} {size}: {count} handlers compute only {distinct} different things", distinct == count)


@check
def state_is_its_own(scale: Scale, found: Findings) -> None:
    """Whatever arm runs, and wherever objects and state lie, each handler's state grows by the answers it gave and by no others."""
    for objects in ("packed", "scattered"):
        for state in (0, 64, 4096):
            hs = handlers(100, body="tally", size="tiny", residual=0, state=state, objects=objects)
            tr = awkward(hs, scale.packets // 4, state)
            for arm, slot in _holding(hs, tr):
                before = hs.tallies()
                answered = _answer(slot)
                del slot  # an arm that holds state in its own table gives it back
                owner = hs.select(tr.packets) if arm.answers == "list" else np.zeros(len(answered), np.int32)
                wanted = np.zeros(hs.count, np.uint64)
                if not arm.answers.startswith("key"):
                    np.add.at(wanted, owner[owner >= 0], answered[owner >= 0].astype(np.uint64))
                found.equal(f"{arm.name}, {state} bytes {objects}", hs.tallies() - before, wanted)


@check
def checksum_formula(scale: Scale, found: Findings) -> None:
    """The checksum of every arm, by each of its loops and code placements, is the documented sum over its answers."""
    plain = [handlers(count, body=body, size=size, residual=0) for count in (1, 100) for body, size, _ in bodies()]
    for hs in (handlers(100), handlers(100, size="tiny", overlap=True, placement="spread"), *plain):
        tr = uniform(hs, pool=scale.packets)
        for arm, slot in _holding(hs, tr):
            wanted = oracle.checksum(oracle.answers(hs, tr.packets, arm.answers), arm.answers)
            sums = {f"placement {p}": slot.run(p) for p in range(PLACEMENTS)}
            sums |= {"counting loop": slot.count()[0], "sampling loop": slot.sample(7, 3)[0]}
            for loop, got in sums.items():
                found.equal(f"{arm.name}, {loop}", np.uint64(got), np.uint64(wanted))


@check
def checksum_sees(scale: Scale, found: Findings) -> None:
    """Swapping any two answers, leaving one out, adding one or altering one changes the checksum."""
    hs = handlers(scale.most, size="tiny", residual=0)
    plain = awkward(hs, 64, 3).packets.copy()
    plain["key"] = hs.keys[np.arange(64) % hs.count]
    before = _sum(hs, plain)
    for i in range(64):
        found.true(f"blind to leaving out answer {i} of 64", _sum(hs, np.delete(plain, i)) != before)
        found.true(f"blind to answer {i} given twice", _sum(hs, np.insert(plain, i, plain[i])) != before)
        altered = plain.copy()
        altered["key"][i] = 0
        found.true(f"blind to unmatched for answer {i}", _sum(hs, altered) != before)
        for j in range(i):
            found.true(f"blind to a swap of answers {j} and {i}", _sum(hs, _swapped(plain, i, j)) != before)
    pool = uniform(hs, pool=32768).packets.copy()
    for power in range(15):  # where a weight that grows by a power of two would repeat
        pool["key"][[0, 1 << power]] = hs.keys[:2]
        before, after = _sum(hs, pool), _sum(hs, _swapped(pool, 0, 1 << power))
        found.true(f"blind to a swap {1 << power} packets apart", before != after)


def _swapped(packets: Any, i: int, j: int) -> Any:
    swapped = packets.copy()
    swapped[i], swapped[j] = packets[j], packets[i]
    return swapped


def _sum(hs: HandlerSet, packets: Any) -> int:
    checksum: int = _engine.slot("table-compact", hs.engine, np.ascontiguousarray(packets)).run(0)
    return checksum


@check
def probes(scale: Scale, found: Findings) -> None:
    """The predicates an arm asks, counted by running it, are those that enumerating its list gives, packet for packet."""
    for count in scale.counts:
        for overlap in (False, True):
            if overlap and count < 10:
                continue
            hs = handlers(count, size="tiny", overlap=overlap, order="shuffled", seed=count)
            for tr in (awkward(hs, scale.packets // 4, count), make("zipf", hs, pool=scale.packets // 4)):
                for arm, _ in _holding(hs, tr):
                    counted = count_probes(arm.name, hs, tr)
                    found.equal(f"{arm.name}, {count} handlers", counted, expected_probes(arm.name, hs, tr))


@check
def published_probes(scale: Scale, found: Findings) -> None:
    """Scanning 100 handlers under uniform traffic with 2 % unmatched asks 52.18 predicates a packet."""
    hs = handlers(100, size="tiny")
    every = np.zeros((hs.count + 1, 256), PACKET)
    every["key"][:-1] = hs.keys[:, np.newaxis]
    every["payload"][..., 0] = np.arange(256)
    counted = count_probes("scan", hs, from_packets(every.ravel())).reshape(every.shape)
    mean = 0.98 * counted[:-1].mean() + 0.02 * counted[-1].mean()
    found.equal("counted", round(float(mean), 2), 52.18)
    found.equal("enumerated", round(mean_by_enumeration(hs), 9), round(float(mean), 9))


@check
def timed_blocks(scale: Scale, found: Findings) -> None:
    """Every block that the timing loop runs, in every window and code placement, gives the checksum of the reference."""
    hs = handlers(100, size="tiny")
    for pool, block in ((2048, 512), (256, 512), (512, 512), (1000, 256)):
        tr = uniform(hs, pool=pool)
        held = list(_holding(hs, tr))
        wrong = _run(tuple(slot for _, slot in held), block, rounds=4 * PLACEMENTS)["mismatches"]
        for (arm, _), mismatches in zip(held, wrong, strict=True):
            found.equal(f"{arm.name}, blocks of {block} out of {pool}: wrong blocks", mismatches, 0)


@check
def wrong_blocks_are_counted(scale: Scale, found: Findings) -> None:
    """A packet that changes under the timing loop is noticed in every block from then on."""
    hs = handlers(100, size="tiny")
    packets = uniform(hs, pool=4096).packets.copy()
    slot = _engine.slot("table-compact", hs.engine, packets)
    rounds, altered_at = 64, -1

    def alter(done: int) -> None:
        nonlocal altered_at
        if altered_at < 0:
            packets["key"][7] = hs.keys[0] if packets["key"][7] != hs.keys[0] else hs.keys[1]
            altered_at = done

    while altered_at < 0 or altered_at >= rounds - 2:
        rounds, altered_at = 2 * rounds, -1
        wrong = _run((slot,), 4096, rounds, alter)["mismatches"][0]
    found.true(
        f"altered in round {altered_at} of {rounds}, but {wrong} blocks were found wrong",
        wrong in (rounds - altered_at, rounds - altered_at - 1),
    )


@check
def stopping(scale: Scale, found: Findings) -> None:
    """The timing loop stops when it is asked to, wherever in a round that is, and keeps the whole rounds."""
    hs = handlers(100, size="tiny")
    slot = prepare("scan", hs, uniform(hs, pool=4096))
    for slots in (1, 2, 3):
        asked: list[int] = []

        def stop(done: int, asked: list[int] = asked) -> None:
            asked.append(done)
            raise KeyboardInterrupt

        done = _run((slot,) * slots, 4096, 2000, stop)["rounds"]
        found.true(f"{slots} slots: asked to stop in round {asked} of 2000, {done} rounds done", done - asked[0] in (0, 1))
        found.equal(f"{slots} slots: asked to stop", len(asked), 1)


@check
def the_machine_is_put_back(scale: Scale, found: Findings) -> None:
    """Measuring pins the thread to one CPU and gives it back the CPUs it was allowed."""
    hs = handlers(10)
    slot = prepare("scan", hs, uniform(hs, pool=512))
    before = os.sched_getaffinity(0)
    seen: list[set[int]] = []
    cpu = choose_cpu(None)
    rounds = 256
    while not seen:
        rounds *= 2
        _run((slot,), 512, rounds, lambda done: seen.append(os.sched_getaffinity(0)), cpu)
    found.equal("allowed while measuring", sorted(seen[0]), [cpu])
    found.equal("allowed afterwards", sorted(os.sched_getaffinity(0)), sorted(before))


def _run(
    slots: tuple[Any, ...], block: int, rounds: int, progress: Callable[[int], object] | None = None, cpu: int = -1
) -> _engine.Measured:
    """The timing loop, its ticks ignored."""
    order = np.tile(np.arange(len(slots), dtype=np.int16), rounds)
    number = np.arange(rounds)
    placement, window = (number % PLACEMENTS).astype(np.int8), (number // PLACEMENTS).astype(np.int32)
    shift = np.arange(len(slots), dtype=np.int32)
    return _engine.measure(slots, block, rounds, order, placement, window, shift, 128, cpu, 1.0, progress)


GOLDEN = {
    "uniform": "51a9109c28193a063822212b6b40e5fd8f332188edcd299f2816eaecd4d0608f",
    "zipf": "f7b03d8673c6443c8ed0322291786a6446cb5b89eaba224d3e010f3602a4962a",
    "hot": "d66fd9b7d207fd36cd933cbf0b31e3cef41441cee9592c7cfcf9d343bbb33e81",
    "worst": "576d44b7997fef7c22e3900bd427a8cad5251a4974d95bddcaa30e880c7f356e",
}
"""SHA-256 of 32768 packets for 100 handlers, seed 0."""


@check
def same_packets(scale: Scale, found: Findings) -> None:
    """The same seed gives byte-identical packets on every machine, and another seed gives others."""
    hs = handlers(100)
    for name, digest in GOLDEN.items():
        found.equal(name, make(name, hs, seed=0).digest, digest)
        found.true(f"{name}: seed 1 gives the packets of seed 0", make(name, hs, seed=1).digest != digest)
