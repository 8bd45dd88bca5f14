"""What may be said of a measurement: paired estimates, and verdicts that are never surer than the data."""

import itertools
import math
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from numpy.typing import NDArray

from dispatchlab.design import placements
from dispatchlab.errors import UsageError
from dispatchlab.summary import change, contrast, difference, ns, placement_spread, ratio
from dispatchlab.verdicts import CODE_FLOOR, TWIN_CONFIDENCE, twin_check, verdict


@dataclass(frozen=True)
class Slot:
    label: str
    arm: str
    handlers: int = 100
    body: str = "chain"
    size: str = "fat"
    order: str = "registration"
    residual: float = 0.1
    overlap: bool = False
    predicates: str = "packed"


@dataclass(frozen=True)
class Measurement:
    ticks: NDArray[np.int64]
    slots: tuple[Slot, ...] = (Slot("a", "a"), Slot("b", "b"), Slot("twin", "a"), Slot("a again", "a"))
    placement: NDArray[np.int8] = field(default_factory=lambda: np.zeros(0, np.int8))
    flagged: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, bool))
    reference: int = 0
    twin: int = 2
    block: int = 1000
    ticks_per_ns: float = 2.0


def measurement(
    ticks: NDArray[np.float64] | NDArray[np.int64], places: int = 4, **changes: object
) -> Measurement:
    rounds = len(ticks)
    made = Measurement(
        np.rint(ticks).astype(np.int64),
        placement=placements(max(rounds, 1), 1, places)[:rounds],
        flagged=np.zeros(rounds, bool),
    )
    return replace(made, **changes)  # type: ignore[arg-type]


def simulated(
    seed: int,
    rounds: int = 400,
    effect: float = 0.0,
    noise: float = 0.003,
    place: float = 0.0,
    bias: float = 0.0,
) -> Measurement:
    """Slots a (reference), b (other code, slower by effect, moved by placement), a's twin (slower by bias)
    and a slowed a, under drift, common spells, and spells that hit a single block."""
    generator = np.random.default_rng(seed)
    log_ticks = np.full((rounds, 4), math.log(1e6)) + noise * generator.standard_normal((rounds, 4))
    log_ticks += np.linspace(0, 0.2, rounds)[:, None]
    log_ticks += 0.3 * (generator.random((rounds, 1)) < 0.1)
    log_ticks += generator.uniform(0.05, 1.0, (rounds, 4)) * (generator.random((rounds, 4)) < 0.02)
    rotation = placements(rounds, seed)
    log_ticks[:, 1] += math.log1p(effect) + place * generator.standard_normal(4)[rotation]
    log_ticks[:, 2] += math.log1p(bias)
    log_ticks[:, 3] += math.log1p(effect)
    return measurement(np.exp(log_ticks), placement=rotation)


def test_ticks_become_ns_per_packet() -> None:
    generator = np.random.default_rng(0)
    m = measurement(generator.integers(19_000, 21_001, (300, 4)))
    found = ns(m, "a")
    assert found.low < 10.0 < found.high and found.high - found.low < 0.2
    assert (found.unit, found.n, found.confidence) == ("ns/packet", 300, 0.95)


def test_the_level_stays_with_the_calm_rounds() -> None:
    m = simulated(1, noise=0.001)
    flat = m.ticks / np.exp(np.linspace(0, 0.2, 400))[:, None]
    slowed = flat * np.where(np.arange(400) // 50 == 2, 1.5, 1.0)[:, None]  # an eighth of the run
    assert ns(measurement(slowed), 0).value == pytest.approx(ns(measurement(flat), 0).value, rel=0.003)
    assert np.mean(slowed[:, 0]) > 1.05 * np.mean(flat[:, 0])


def test_undisturbed_leaves_out_the_flagged_rounds_and_nothing_else() -> None:
    m = simulated(2)
    hit = np.arange(400) % 2 == 1
    noisy = replace(m, ticks=np.where(hit[:, None] & (np.arange(4) == 1), 3 * m.ticks, m.ticks), flagged=hit)
    assert ratio(noisy, "b", "a").value > 1.2
    assert ratio(noisy, "b", "a", undisturbed=True).value == pytest.approx(1.0, abs=0.003)
    assert ratio(noisy, "b", "a", undisturbed=True).n == 200
    assert ns(noisy, "b", undisturbed=True).n == difference(noisy, "b", "a", undisturbed=True).n == 200


def test_ratio_and_difference_know_direction_and_are_antisymmetric() -> None:
    m = simulated(3, effect=0.02)
    there, back = ratio(m, "b", "a"), ratio(m, "a", "b")
    assert there.low < 1.02 < there.high
    assert there.high - there.low < 0.002
    assert there.value == pytest.approx(1 / back.value) and there.low == pytest.approx(1 / back.high)
    gap = difference(m, "b", "a")
    assert gap.low < 0.02 * ns(m, "a").value < gap.high
    assert gap.value == pytest.approx(-difference(m, "a", "b").value)


def test_pairing_cancels_what_slows_a_whole_round() -> None:
    m = simulated(4)
    unpaired = replace(m, ticks=np.random.default_rng(0).permuted(m.ticks, axis=0))
    paired_width, width = (e.high - e.low for e in (ratio(m, "b", "a"), ratio(unpaired, "b", "a")))
    assert width > 10 * paired_width


def test_a_contrast_is_the_weighted_sum_round_by_round() -> None:
    m = simulated(5, effect=0.03)
    assert contrast(m, {"b": 1.0, "a": -1.0}) == difference(m, "b", "a")
    twofold = contrast(m, [(1, 1.0), (0, -1.0), (3, -1.0), (2, 1.0)])  # (b - a) - (a again - twin): both 3 %
    assert twofold.low < 0 < twofold.high
    assert contrast(m, {0: 2.0}).value == pytest.approx(2 * contrast(m, {0: 1.0}).value)


def test_the_spread_is_the_range_over_placements() -> None:
    rotation, factors = placements(400, 1), np.array([1.00, 1.02, 1.05, 1.01])
    ticks = np.full((400, 4), 100_000) + np.arange(400)[:, None] % 7
    m = measurement(ticks * np.where(np.arange(4) == 1, factors[rotation][:, None], 1.0), placement=rotation)
    assert placement_spread(m, "b", "a") == pytest.approx(math.log(1.05), abs=1e-4)
    assert placement_spread(m, "a", "twin") == 0.0
    assert ratio(m, "b", "a").value == pytest.approx(np.prod(factors) ** 0.25, abs=1e-4)


@pytest.mark.parametrize(("effect", "kind"), [(0.01, "slower"), (-0.01, "faster"), (0.0, "equal")])
def test_clear_data_give_clear_verdicts(effect: float, kind: str) -> None:
    found = verdict(simulated(6, rounds=2000, effect=effect), "b", "a")
    assert found.kind == kind
    assert CODE_FLOOR < found.minimum_detectable_effect < 2 * CODE_FLOOR
    assert found.estimate.low < 1 + effect < found.estimate.high


def test_a_few_noisy_rounds_leave_it_unresolved_and_say_what_could_have_been_seen() -> None:
    found = verdict(simulated(7, rounds=40, effect=0.001, noise=0.01), "b", "a")
    assert (found.kind, found.reason) == ("unresolved", "the interval holds zero")
    assert found.minimum_detectable_effect > found.estimate.high - found.estimate.value


def test_a_difference_inside_the_spread_of_placements_is_not_called_one() -> None:
    m = simulated(8, rounds=4000, effect=0.004, place=0.02)
    found = verdict(m, "b", "a")
    assert found.kind == "unresolved" and "between code placements" in found.reason
    assert found.estimate.low > 1 or found.estimate.high < 1, "the interval alone would have called it"
    assert abs(found.estimate.value - 1) < found.spread < found.minimum_detectable_effect
    one_code = replace(m, slots=tuple(replace(slot, arm="a") for slot in m.slots))
    assert verdict(one_code, "b", "a").kind in ("slower", "faster"), "one code shares its placements"


def test_a_difference_that_a_second_compilation_could_make_is_not_called_one() -> None:
    m = simulated(11, rounds=4000, effect=0.002, noise=0.001)
    found = verdict(m, "b", "a")
    assert found.kind == "unresolved" and "one source compiled twice" in found.reason
    assert found.estimate.low > 1 and found.spread < 0.001, "neither the interval nor the spread would have held it back"
    one_code = replace(m, slots=tuple(replace(slot, arm="a") for slot in m.slots))
    assert verdict(one_code, "b", "a").kind == "slower", "one code has no second compilation"


def called_different(a: str, b: str, place: float = 0.0, margin: float = 0.0) -> float:
    """The share of 400 simulated null comparisons that are called faster or slower."""
    kinds = [verdict(simulated(s, rounds=200, place=place), a, b, margin=margin).kind for s in range(400)]
    return sum(kind in ("faster", "slower") for kind in kinds) / 400


@pytest.mark.parametrize("place", [0.0, 0.02])
def test_two_identical_codes_are_seldom_called_different_whatever_the_placements_do(place: float) -> None:
    assert called_different("b", "a", place=place) <= 0.04


def test_without_the_spread_rule_placements_would_pass_for_a_difference() -> None:
    moved = [ratio(simulated(s, rounds=200, place=0.02), "b", "a") for s in range(100)]
    assert np.mean([e.low > 1 or e.high < 1 for e in moved]) > 0.6


def test_one_code_against_itself_is_called_different_as_often_as_stated() -> None:
    assert 0.02 <= called_different("a again", "a") <= 0.08


def test_a_family_shares_one_error() -> None:
    m = simulated(9, effect=0.01)
    alone, among = (verdict(m, "a again", "a", family=k) for k in (1, 20))
    assert among.estimate.confidence == pytest.approx(1 - 0.05 / 20)
    assert among.estimate.high - among.estimate.low > 1.3 * (alone.estimate.high - alone.estimate.low)
    assert among.minimum_detectable_effect > alone.minimum_detectable_effect


def test_a_twin_that_differs_marks_the_measurement() -> None:
    m = simulated(10, effect=0.05, bias=0.01)
    assert not twin_check(m).ok
    found = verdict(m, "b", "a")
    assert (found.kind, found.reason) == ("unresolved", "the twin of the reference differs from it")


def test_a_twin_within_the_margin_passes_however_sure_the_difference() -> None:
    check = twin_check(simulated(11, rounds=20_000, noise=0.001, bias=0.0005))
    assert check.ok and check.estimate.high < 1.0


def test_a_sound_twin_fails_about_once_in_a_thousand() -> None:
    failed = sum(not twin_check(simulated(s, rounds=100, noise=0.01)).ok for s in range(1000))
    assert failed <= 5
    often = sum(not twin_check(simulated(s, rounds=100, noise=0.01), confidence=0.9).ok for s in range(200))
    assert often > 5, "at a lower confidence the same check does fail"
    assert TWIN_CONFIDENCE == 0.999


def poor() -> dict[str, Measurement]:
    """Measurements in which slot b takes twice as long, and nothing may be said of it."""
    good, double = simulated(12).ticks, np.array([1, 2, 1, 1])
    stopped = good * double
    stopped[17] = 0
    return {
        "no round": measurement(good[:0]),
        "one round": measurement(good[:1] * double),
        "seven rounds": measurement(good[:7] * double),
        "one round of each placement": measurement(good[:9] * double, places=9),
        "all rounds tie and are equal": measurement(np.full((100, 4), 1000)),
        "all rounds tie and differ": measurement(np.full((100, 4), 1000) * double),
        "a round without ticks": measurement(stopped),
        "nothing but zeros": measurement(np.zeros((100, 4))),
        "a clock that went back": measurement(-good),
        "no twin": measurement(good * double, twin=0),
    }


@pytest.mark.parametrize("case", poor())
def test_poor_data_are_unresolved_and_never_an_exception(case: str) -> None:
    m = poor()[case]
    for a, b in itertools.product(range(4), repeat=2):
        found = verdict(m, a, b)
        assert found.kind == "unresolved" and found.reason
        contrasts = difference(m, a, b), contrast(m, {a: 1.0}), contrast(m, {a: 1.0, b: -0.5})
        for estimate in (
            found.estimate,
            ratio(m, a, b),
            ns(m, a),
            change(m, m, a, b),
            change(m, m, a),
            *contrasts,
        ):
            assert estimate.low <= estimate.high
        placement_spread(m, a, b)


def test_a_slow_clock_leaves_its_step_in_the_interval() -> None:
    ticks = 40 * np.random.default_rng(13).choice([49, 50], (100, 4), p=[0.02, 0.98])
    found = ratio(measurement(ticks), "b", "a")
    assert (found.low, found.high) == pytest.approx((math.exp(-0.04), math.exp(0.04)))


def test_two_measurements_of_unequal_length_compare() -> None:
    old, new = simulated(14, rounds=300), simulated(15, rounds=700, effect=0.02)
    slower_machine = replace(new, ticks=new.ticks * 2)
    found = change(slower_machine, old, "b", "a")
    assert 1.0 < found.low < 1.02 < found.high
    assert found.n == 300
    assert change(slower_machine, old, "b").value == pytest.approx(2.04, rel=0.03)
    short = change(simulated(16, rounds=1), old, "b", "a")
    assert (short.low, short.high, short.bounded) == (0.0, math.inf, False)


def test_a_slot_that_is_not_there_is_named() -> None:
    with pytest.raises(UsageError, match=r"expected a, b, twin, a again; got 'c'"):
        ratio(simulated(17), "c", "a")
    with pytest.raises(UsageError, match="got 4"):
        ns(simulated(17), 4)


def test_the_same_ticks_give_the_same_estimate_to_the_last_bit() -> None:
    assert ratio(simulated(18), "b", "a") == ratio(simulated(18), "b", "a")
