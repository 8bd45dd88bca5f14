"""The interval holds what it says it holds, as often as it says: simulated skewed, tied, autocorrelated
rounds."""

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri, stdtrit

from dispatchlab.intervals import (
    LEVEL,
    PAIRED,
    Estimate,
    Location,
    Refused,
    locate,
    locate_many,
    quantile_interval,
)

Floats = NDArray[np.float64]
Method = Callable[[Floats], tuple[Floats, Floats]]

SHAPES: dict[str, Callable[[Floats], Floats]] = {
    "normal": lambda z: z,
    "exponential": lambda z: -np.log(ndtr(-z)),
    "log-normal": np.exp,
    "tied": np.round,
    "skewed and tied": lambda z: np.round(-2 * np.log(ndtr(-z))),
}
ROUNDS = {30: 2000, 200: 1000, 2000: 250}
MEMORY = (0.0, 0.3, 0.6)


def autoregressive(generator: np.random.Generator, runs: int, rounds: int, rho: float) -> Floats:
    """Standard normal AR(1) series, float64[runs, rounds]."""
    z = generator.standard_normal((rounds, runs))
    for t in range(1, rounds):
        z[t] = rho * z[t - 1] + math.sqrt(1 - rho**2) * z[t]
    return z.T.copy()


def truth(shape: str, trim: tuple[float, float]) -> float:
    """The location of the whole population, by its quantiles at a million equally likely points."""
    population = SHAPES[shape](ndtri((np.arange(1_000_000) + 0.5) / 1_000_000))
    return locate(population, np.zeros(1_000_000, np.int8), trim).value


def chosen(x: Floats, placements: int = 1, trim: tuple[float, float] = PAIRED) -> tuple[Floats, Floats]:
    """Values and half widths of the 95 % interval."""
    values, errors, freedom = locate_many(x, (np.arange(x.shape[1]) % placements).astype(np.int8), trim)
    return values, errors * stdtrit(freedom, 0.975)


def independent(x: Floats) -> tuple[Floats, Floats]:
    """The same location with the error of independent rounds, which the coverage test must catch."""
    values, _, _ = locate_many(x, np.zeros(x.shape[1], np.int8))
    shuffled = np.random.default_rng(0).permuted(x, axis=1)
    return values, locate_many(shuffled, np.zeros(x.shape[1], np.int8))[1] * 1.96


def coverage(method: Method, shape: str, target: float) -> dict[tuple[float, int], float]:
    generator, shares = np.random.default_rng(20), {}
    for rho in MEMORY:
        for rounds, runs in ROUNDS.items():
            values, half = method(SHAPES[shape](autoregressive(generator, runs, rounds, rho)))
            shares[rho, rounds] = float(np.mean(np.abs(values - target) <= half))
    return shares


def keeps_its_promise(shares: dict[tuple[float, int], float]) -> bool:
    """94 to 98 % over all lengths for each memory; and for each length and memory alone as far as its number
    of simulated runs can tell (2.5 standard errors)."""
    runs = list(ROUNDS.values())
    together = [np.average([shares[rho, n] for n in ROUNDS], weights=runs) for rho in MEMORY]
    noise = {n: 2.5 * math.sqrt(0.05 * 0.95 / runs) for n, runs in ROUNDS.items()}
    alone = (0.94 - noise[n] <= share <= 0.98 + noise[n] for (_, n), share in shares.items())
    return all(0.94 <= share <= 0.98 for share in together) and all(alone)


@pytest.mark.parametrize("shape", SHAPES)
def test_the_95_percent_interval_covers_94_to_98_percent(shape: str) -> None:
    shares = coverage(chosen, shape, truth(shape, PAIRED))
    assert keeps_its_promise(shares), shares


def test_an_interval_that_takes_rounds_for_independent_fails_that_test() -> None:
    shares = coverage(independent, "normal", 0.0)
    assert not keeps_its_promise(shares)
    assert max(shares[0.6, n] for n in ROUNDS) < 0.80


@pytest.mark.parametrize("shape", ["normal", "exponential", "skewed and tied"])
def test_it_covers_as_well_when_placements_differ_by_far_more_than_the_noise(shape: str) -> None:
    def shifted(x: Floats) -> tuple[Floats, Floats]:
        values, half = chosen(x + 5.0 * (np.arange(x.shape[1]) % 4), placements=4)
        return values - 7.5, half

    shares = coverage(shifted, shape, truth(shape, PAIRED))
    assert keeps_its_promise(shares), shares


@pytest.mark.parametrize("shape", ["exponential", "log-normal"])
def test_four_placements_seen_four_times_each_pay_for_their_four_centres(shape: str) -> None:
    x = SHAPES[shape](autoregressive(np.random.default_rng(1), 8000, 16, 0.6))
    values, half = chosen(x, placements=4)
    missed = np.abs(values - truth(shape, PAIRED))
    assert np.mean(missed <= half) >= 0.937
    assert np.mean(missed <= half * math.sqrt(12 / 16)) < 0.937, "without the correction it must fail"


def test_pooling_such_placements_would_not_do() -> None:
    """The location of four clusters taken as one is wide: strata are what keeps the interval narrow."""
    x = autoregressive(np.random.default_rng(1), 50, 400, 0.0)
    clusters = x + 5.0 * np.random.default_rng(2).permuted(np.tile(np.arange(400) % 4, (50, 1)), axis=1)
    assert np.median(chosen(clusters)[1]) > 3 * np.median(chosen(x, placements=4)[1])


@pytest.mark.parametrize("rho", MEMORY)
def test_the_level_interval_covers_too(rho: float) -> None:
    generator = np.random.default_rng(5)
    for shape in ("normal", "exponential", "log-normal"):
        values, half = chosen(SHAPES[shape](autoregressive(generator, 2500, 150, rho)), trim=LEVEL)
        assert 0.935 <= np.mean(np.abs(values - truth(shape, LEVEL)) <= half) <= 0.98


def spells(generator: np.random.Generator, calm: Floats, share: float) -> Floats:
    """Rounds in which one side was slowed by 5 to 100 %, where a calm round varies by 0.3 %."""
    hit = generator.random(calm.shape) < share
    side = generator.choice([-1.0, 1.0], calm.shape)
    return calm + hit * side * np.log1p(generator.uniform(0.05, 1.0, calm.shape)) / 0.003


@pytest.mark.parametrize("share", [0.01, 0.05, 0.1])
def test_disturbed_rounds_widen_the_interval_by_little(share: float) -> None:
    generator = np.random.default_rng(3)
    calm = autoregressive(generator, 400, 400, 0.3)
    disturbed = spells(generator, calm, share)
    values, half = chosen(disturbed)
    assert np.mean(np.abs(values) <= half) >= 0.93
    assert np.median(half) < 1.25 * np.median(chosen(calm)[1])
    naive = disturbed.std(axis=1) / calm.std(axis=1)
    assert np.median(naive) > 3, "the mean would have been ruined"


def test_a_single_wild_round_in_a_small_placement_does_no_harm() -> None:
    x = autoregressive(np.random.default_rng(4), 1, 32, 0.0)[0]
    strata = (np.arange(32) % 4).astype(np.int8)
    calm = locate(x, strata)
    x[5] += 1e6
    assert abs(locate(x, strata).value - calm.value) < calm.half_width(0.95)


def test_locate_agrees_with_a_direct_sum_over_the_ordered_rounds() -> None:
    x = np.random.default_rng(6).normal(size=10)
    # ten rounds, weight 0 below a tenth, rising to 1 at two tenths: cells 0, 1/2, 1, ..., 1, 1/2, 0
    expected = np.sort(x) @ [0, 0.5, 1, 1, 1, 1, 1, 1, 0.5, 0] / 7
    assert locate(x, np.zeros(10, np.int8)).value == pytest.approx(expected)


@pytest.mark.parametrize("n", range(8))
def test_too_few_rounds_give_a_value_and_no_interval(n: int) -> None:
    found = locate(np.arange(n, dtype=float), np.zeros(n, np.int8))
    assert found.half_width(0.95) == math.inf
    assert math.isnan(found.value) if n == 0 else found.value == pytest.approx((n - 1) / 2)


def test_all_rounds_tied_gives_the_step_of_the_clock_as_half_width() -> None:
    found = locate(np.ones(50), np.zeros(50, np.int8))
    assert (found.value, found.error, found.half_width(0.95)) == (1.0, 0.0, math.inf)
    assert replace(found, quantum=0.01).half_width(0.95) == 0.01


def test_independent_locations_subtract_with_both_errors() -> None:
    apart = Location(3.0, 0.3, 40.0, 100).minus(Location(1.0, 0.4, 10.0, 50))
    assert (apart.value, apart.error) == (2.0, pytest.approx(0.5))
    assert 10 < apart.freedom < 50
    assert Location(1.0, math.inf, 1.0, 1).minus(apart).half_width(0.95) == math.inf


def test_the_minimum_detectable_effect_is_seen_in_nine_of_ten_runs() -> None:
    x = autoregressive(np.random.default_rng(8), 2000, 300, 0.3)
    least = np.median([locate(row, np.zeros(300, np.int8)).detectable(0.95) for row in x[:200]])
    values, half = chosen(x + least)
    assert 0.86 <= np.mean(values - half > 0) <= 0.94


@pytest.mark.parametrize("q", [0.5, 0.9, 0.99, 0.999])
def test_the_interval_of_a_percentile_holds_it(q: float) -> None:
    generator, held, known = np.random.default_rng(9), 0, -math.log(1 - q)
    for _ in range(400):
        found = quantile_interval(generator.exponential(size=6000), q)
        assert isinstance(found, Estimate)
        held += found.low <= known <= found.high
    assert 0.93 <= held / 400 <= 0.995


def test_samples_in_spells_count_for_fewer() -> None:
    z = autoregressive(np.random.default_rng(10), 300, 4000, 0.9)
    free = np.random.default_rng(11).standard_normal(4000)
    known, found = float(ndtri(0.9)), [quantile_interval(row, 0.9) for row in z]
    bounds = [e for e in found if isinstance(e, Estimate)]
    assert len(bounds) == 300
    assert np.mean([e.low <= known <= e.high for e in bounds]) >= 0.93
    alone = quantile_interval(free, 0.9)
    assert isinstance(alone, Estimate)
    assert np.median([e.high - e.low for e in bounds]) > 1.5 * (alone.high - alone.low)


def test_a_sample_too_small_for_its_percentile_is_refused_with_the_size_that_would_do() -> None:
    generator = np.random.default_rng(12)
    for q in (0.5, 0.9, 0.99, 0.999):
        refused = quantile_interval(generator.random(5), q)
        assert isinstance(refused, Refused)
        assert f"{refused.needed} needed" in refused.reason
        assert isinstance(quantile_interval(generator.random(refused.needed - 1), q), Refused)
        assert isinstance(quantile_interval(generator.random(2 * refused.needed), q), Estimate)
    assert isinstance(quantile_interval(np.empty(0), 0.5), Refused)
    assert isinstance(quantile_interval(np.array([1.0, math.nan] * 50), 0.5), Refused)


def test_the_largest_sample_bounds_the_maximum_from_below_only() -> None:
    assert quantile_interval(np.array([1.0, 5.0, 2.0]), 1.0) == Estimate(
        5.0, 5.0, math.inf, "sample", 3, 0.95
    )
