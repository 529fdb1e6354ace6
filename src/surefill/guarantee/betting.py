"""Evidence that a mean loss is below a tolerance, gathered by betting on it.

Bet a fixed share b of one's capital on every held-out entry losing less than the tolerance. With losses l in
[0, L], a weight w in (0, 1] per entry and gains g = w (tolerance - l), the capital after n entries is

    K(b) = prod_t (1 + b g_t),      0 <= b < 1 / (L - tolerance),   so that every factor is positive.

Where the weighted mean loss is at least the tolerance, E K(b) <= 1 for each b, and so for a mean over several b; by
Markov's inequality it reaches 1 / delta with probability at most delta. That holds for entries drawn independently,
for entries that are each seen or not by a coin of their own, and for a sample of fixed size without replacement; the
proofs are in docs/mathematics.md, "The promise". No variance is needed, the capital adapts to it, as in Waudby-Smith
and Ramdas, "Estimating means of bounded random variables by betting" (2024), whose bets that depend on the past are not
used here because the last two ways of drawing would not allow them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from surefill.arrays import Array
from surefill.losses import SQUARED, Loss

STEPS = (0.5, 1.0, 2.0)
"""Multiples of the best bet whose capitals are averaged."""

LARGEST_BET = 0.95
"""Largest bet, as a share of the one at which the largest loss would take all capital."""

TINY = 1e-300
"""Keeps a bet finite where no variance is expected."""


def choose_bets(
    tolerance: float,
    largest_loss: float,
    n: int,
    delta: float,
    mean_square_weight: float = 1.0,
    loss: Loss = SQUARED,
) -> Array:
    """Bets around the best one, b = sqrt(2 log(1/delta) / (n Var g)), where l is the loss of a normal error.

    A squared one of mean tolerance has variance 2 tolerance^2. Half and twice this bet guard against other
    shapes and against sets that hold but a part of the n entries. Nothing here depends on how the entries turned out.
    """
    variance = float(loss.variance(tolerance)) * mean_square_weight
    bets = np.array(STEPS) * np.sqrt(2 * np.log(1 / delta) / max(max(n, 1) * variance, TINY))
    most = LARGEST_BET / (largest_loss - tolerance) if largest_loss > tolerance else np.inf
    return np.asarray(np.minimum(bets, most))


def running_log_capital(gains: Array, bets: Array) -> Array:
    """log of mean_b K(b) after 0, 1, ..., n entries."""
    steps = np.log1p(np.multiply.outer(bets, gains))
    paths = np.concatenate([np.zeros((len(bets), 1)), np.cumsum(steps, axis=1)], axis=1)
    return np.asarray(np.logaddexp.reduce(paths, axis=0) - np.log(len(bets)))


def fallback_rejections(log_capital: Array, levels: Array) -> NDArray[np.bool_]:
    """Which of a sequence of hypotheses are rejected, with at most sum(levels) for the chance of any false rejection.

    Hypothesis j has a level of its own and inherits that of its predecessor where that one was rejected (the fallback
    procedure of Wiens and Dmitrienko, 2005, valid under any dependence). All weight on the first is testing in a
    fixed sequence.
    """
    rejected, inherited = np.zeros(len(levels), dtype=bool), 0.0
    for j, own in enumerate(levels):
        level = inherited + own
        rejected[j] = level > 0 and log_capital[j] >= -np.log(level)
        inherited = level if rejected[j] else 0.0
    return rejected
