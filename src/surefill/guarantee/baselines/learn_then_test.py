"""Learn then test (Angelopoulos, Bates, Candes, Jordan, Lei, 2021) with the Hoeffding-Bentkus p-value."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import xlogy
from scipy.stats import binom

from surefill.arrays import Array
from surefill.guarantee.baselines.cells import Candidates, HeldOut, Kept, running

SETS_TESTED = 200
"""Nested sets that are gone through: half a percent of the candidates apart."""

STARTS = ((0.5, 0.1), (1.0, 0.9))
"""Where tests start, as shares of the set of most expected evidence, and the share of delta of each."""


def hoeffding_bentkus(mean: ArrayLike, n: ArrayLike, bound: float) -> Array:
    """p-values of "E Z >= bound" from the mean of n independent Z in [0, 1].

        p = min( exp(-n h(mean, bound)),  e P(Binomial(n, bound) <= ceil(n mean)) ),   1 where mean >= bound,

    h(a, b) = a log(a / b) + (1 - a) log((1 - a) / (1 - b)); Proposition 4 of "Learn then test".

    Examples
    --------
    >>> hoeffding_bentkus([0.04, 0.1, 0.3], 50, 0.2).round(3)
    array([0.003, 0.131, 1.   ])
    """
    a, size = np.minimum(np.asarray(mean, dtype=np.float64), bound), np.asarray(n)
    divergence = xlogy(a, a / bound) + xlogy(1 - a, (1 - a) / (1 - bound))
    tail = np.e * binom.cdf(np.ceil(size * a - 1e-9), size, bound)
    return np.where(np.asarray(mean) >= bound, 1.0, np.minimum(np.minimum(np.exp(-size * divergence), tail), 1.0))


def learn_then_test(
    held_out: HeldOut, candidates: Candidates, tolerance: float, delta: float, largest_loss: float
) -> Kept:
    """The largest {j : s_j <= t} that fixed-sequence tests by the Hoeffding-Bentkus p-value allow.

    "The mean loss over the candidates of the set is at least the tolerance" says of the calibration cells in the set
    that E w (L - tolerance) >= 0, hence with W the largest weight in the set

        Z = (w (L - tolerance) / W + tolerance) / B  in [0, 1],     E Z >= tolerance / B.

    Tests start where the candidates' risks lead one to expect most evidence, and go on to larger sets while they
    reject.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> risk = rng.uniform(0.1, 1.0, 1000)
    >>> held_out = HeldOut(risk, np.minimum(risk * rng.chisquare(1, 1000), 4.0), np.ones(1000))
    >>> kept = learn_then_test(held_out, Candidates(risk, np.ones(1000)), 0.4, 0.1, 4.0)
    >>> round(float(kept.mean()), 1), float(held_out.loss[kept].mean()) < 0.4
    (0.5, True)
    """
    if len(candidates) == 0 or len(held_out) == 0 or tolerance >= largest_loss:
        return np.full(len(candidates), len(candidates) > 0 and tolerance >= largest_loss)
    ranked = np.sort(candidates.risk)
    ends = np.unique(np.linspace(0, len(ranked) - 1, SETS_TESTED + 1).round().astype(int)[1:])
    thresholds = np.unique(ranked[ends])
    largest_weight = np.maximum(
        running(np.maximum, candidates.risk, candidates.weight, thresholds),
        running(np.maximum, held_out.risk, held_out.weight, thresholds),
    )
    n = running(np.add, held_out.risk, np.ones(len(held_out)), thresholds)
    gain = running(np.add, held_out.risk, held_out.weight * (held_out.loss - tolerance), thresholds)
    mean = (gain / np.maximum(n, 1) / largest_weight + tolerance) / largest_loss
    p_values = hoeffding_bentkus(mean, n, tolerance / largest_loss)
    evidence = _expected_evidence(candidates, thresholds, largest_weight, tolerance, largest_loss)
    sizes = np.searchsorted(ranked, thresholds, side="right")
    levels = _starting_levels(sizes, int(np.argmax(evidence)), delta)
    rejected = np.flatnonzero(fallback_rejections(-np.log(np.maximum(p_values, 1e-300)), levels))
    return np.asarray(candidates.risk <= (thresholds[rejected[-1]] if rejected.size else -np.inf))


def fallback_rejections(evidence: Array, levels: Array) -> NDArray[np.bool_]:
    """Which of a sequence of hypotheses are rejected, with at most sum(levels) for the chance of any false rejection.

    Hypothesis j has a level of its own and inherits that of its predecessor where that one was rejected (the fallback
    procedure of Wiens and Dmitrienko, 2005, valid under any dependence). All weight on the first is testing in a
    fixed sequence.
    """
    rejected, inherited = np.zeros(len(levels), dtype=bool), 0.0
    for j, own in enumerate(levels):
        level = inherited + own
        rejected[j] = level > 0 and evidence[j] >= -np.log(level)
        inherited = level if rejected[j] else 0.0
    return rejected


def thinned(held_out: HeldOut, candidates: Candidates, random_state: int = 0) -> tuple[HeldOut, Candidates]:
    """Calibration cells kept with probability w / W, W the largest weight: a sample like the candidates, all weights 1.

    What is left of n cells is about n mean(w) / W, but their losses are not scaled down, which costs the same factor
    twice (Park, Dobriban, Lee, Bastani, "PAC prediction sets under covariate shift", 2022).

    Examples
    --------
    >>> import numpy as np
    >>> cells = HeldOut(np.zeros(1000), np.zeros(1000), np.repeat([1.0, 0.1], 500))
    >>> sample, _ = thinned(cells, Candidates(np.zeros(1), np.ones(1)))
    >>> 530 < len(sample) < 570
    True
    """
    largest = max(held_out.weight.max(initial=0.0), candidates.weight.max(initial=0.0))
    taken = np.random.default_rng(random_state).random(len(held_out)) * largest < held_out.weight
    ones = np.ones(len(held_out))
    sample = HeldOut(held_out.risk[taken], held_out.loss[taken], ones[taken])
    return sample, Candidates(candidates.risk, np.ones(len(candidates)))


def _expected_evidence(
    candidates: Candidates, thresholds: Array, largest_weight: Array, tolerance: float, largest_loss: float
) -> Array:
    """n h(E Z, tolerance / B) up to a factor, if losses are as risks say; cells are held out in proportion to 1 / w."""
    n = running(np.add, candidates.risk, 1 / candidates.weight, thresholds)
    gain = running(np.add, candidates.risk, candidates.risk - tolerance, thresholds) / n / largest_weight
    bound = tolerance / largest_loss
    mean = np.clip((gain + tolerance) / largest_loss, 0.0, bound)
    return np.asarray(n * (xlogy(mean, mean / bound) + xlogy(1 - mean, (1 - mean) / (1 - bound))))


def _starting_levels(sizes: NDArray[np.int64], best: int, delta: float) -> Array:
    levels = np.zeros(len(sizes))
    for part, share in STARTS:
        levels[min(int(np.searchsorted(sizes, part * sizes[best])), len(sizes) - 1)] += share * delta
    return levels
