"""How often this machine, now, is wrong: rates of false alarms, coverage and detection out of many
comparisons.

Pure arithmetic on the estimates that a series of comparisons gave: pairs of identical slots (A/A), and pairs
in which one slot was slowed by a known amount. Every rate carries its exact (Clopper-Pearson) 95 % interval,
so that a bound is only said to be met where the number of comparisons can tell.
"""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np
from scipy.special import betaincinv

from dispatchlab.intervals import Estimate


@dataclass(frozen=True)
class Rate:
    """hits out of trials: the share, and its exact binomial interval. Without trials: nan within [0, 1]."""

    hits: int
    trials: int
    value: float
    low: float
    high: float
    confidence: float


@dataclass(frozen=True)
class Compared:
    """All comparisons with one injected effect.

    effect: what was added to the first slot as a fraction of its time (0.01 = 1 % slower; 0 = A/A).
    estimates: the ratio of each comparison with its interval. seconds: measuring time of one comparison.
    injected: what each comparison really added, where that was measured; else it is `effect`.
    """

    effect: float
    seconds: float
    estimates: tuple[Estimate, ...]
    injected: tuple[float, ...] = ()


@dataclass(frozen=True)
class Outcome:
    """What the comparisons with one effect show.

    different: intervals that exclude 1 (A/A: the false positives; else: the power). wrong_way: those of them
    on the other side than the effect (A/A: none can be). covered: intervals that hold 1 + what was added. half_width:
    median half width of the log-ratio interval, spread: standard deviation of the log-ratios (nan for fewer
    than two).
    """

    effect: float
    seconds: float
    different: Rate
    wrong_way: Rate
    covered: Rate
    half_width: float
    spread: float


@dataclass(frozen=True)
class Calibration:
    """The outcomes, smallest effect first, the shortest measuring time first within one effect; coverage pooled over all of
    them; and how often the same source, compiled a second time, was called faster or slower (verdicts, not intervals)."""

    confidence: float
    outcomes: tuple[Outcome, ...]
    coverage: Rate
    copies: Rate

    def as_dict(self) -> dict[str, object]:
        """Plain dicts, lists and numbers; what is nan or infinite becomes None, as strict JSON needs."""
        plain = _plain(asdict(self))
        assert isinstance(plain, dict)
        return plain


def rate(hits: int, trials: int, confidence: float = 0.95) -> Rate:
    """hits out of trials with the Clopper-Pearson interval (Biometrika 26 (1934) 404-413)."""
    if trials == 0:
        return Rate(0, 0, math.nan, 0.0, 1.0, confidence)
    tail = (1.0 - confidence) / 2
    low = float(betaincinv(hits, trials - hits + 1, tail)) if hits else 0.0
    high = float(betaincinv(hits + 1, trials - hits, 1.0 - tail)) if hits < trials else 1.0
    return Rate(hits, trials, hits / trials, low, high, confidence)


def outcome(compared: Compared) -> Outcome:
    """Count the comparisons of one effect. One without an interval counts as covering and as not
    different."""
    low, value, high = (
        np.array([getattr(e, field) for e in compared.estimates]) for field in ("low", "value", "high")
    )
    slower, faster = low > 1.0, high < 1.0
    trials = len(compared.estimates)
    truth = 1.0 + np.array(compared.injected or [compared.effect] * trials)
    wrong = faster if compared.effect > 0 else slower if compared.effect < 0 else np.zeros(trials, bool)
    bounded = np.isfinite(value) & np.isfinite(high) & (low > 0) & (value > 0)
    widths = np.log(high[bounded] / low[bounded]) / 2
    return Outcome(
        compared.effect,
        compared.seconds,
        different=rate(int(np.sum(slower | faster)), trials),
        wrong_way=rate(int(np.sum(wrong)), trials),
        covered=rate(int(np.sum((low <= truth) & (truth <= high))), trials),
        half_width=float(np.median(widths)) if widths.size else math.nan,
        spread=float(np.std(np.log(value[bounded]), ddof=1)) if widths.size > 1 else math.nan,
    )


def calibrate(comparisons: Sequence[Compared], confidence: float, copies: Sequence[bool] = ()) -> Calibration:
    """Summarise comparisons whose estimates all have this confidence; copies: whether each comparison of an arm with its
    copy called them different."""
    outcomes = sorted(map(outcome, comparisons), key=lambda o: (abs(o.effect), o.effect, o.seconds))
    held, trials = (sum(getattr(o.covered, field) for o in outcomes) for field in ("hits", "trials"))
    return Calibration(confidence, tuple(outcomes), rate(held, trials), rate(sum(copies), len(copies)))


def _plain(value: object) -> object:
    if isinstance(value, dict):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(each) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
