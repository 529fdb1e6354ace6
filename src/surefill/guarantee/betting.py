"""Evidence that a mean loss is below a tolerance, gathered by betting on it.

Stake a share b of one's capital on every calibration cell losing less than the tolerance. With losses l in [0, L],
gains g = tolerance - l, and weights w that make the calibration cells stand for others, the capital is

    K(b) = prod_x (1 + b w_x g_x),                  0 <= b < 1 / (w_x (L_x - tolerance)) for each x: it stays positive,
    K(b) = prod_x (1 + b w_x g_x) exp(-b g_x)       where the promise leaves the calibration cells themselves out.

If the mean loss is at least the tolerance, E K(b) <= 1 for each b (in the second form, whenever that is so of the cells
that were not observed), and so for a mean over several b; by Markov's inequality it reaches 1 / delta with probability
at most delta. That holds for cells drawn independently, for cells that are each seen or not by a coin of their own,
and for a sample of fixed size without replacement; the proofs are in docs/mathematics.md, "The promise". No variance is
needed, the capital adapts to it, as in Waudby-Smith and Ramdas, "Estimating means of bounded random variables by
betting" (2024), whose bets that depend on the past are not used here because two of these ways of drawing would not
allow them.

**Sensitivity.** If being seen may depend on the value by a factor of up to G, gains count G times less and losses
beyond the tolerance G times more: then w_x g_x is at most what the true chance would give, whatever that is.
"""

from __future__ import annotations

import numpy as np

from surefill.arrays import Array

LARGEST_BET = 0.95
"""Largest bet, as a share of the one at which the largest loss would take all capital."""

N_BETS = 8
"""Bets considered: the largest, its half, its quarter, and so on; from 10 calibration cells to 10^5 the best is among
them."""


def robust_gains(gains: Array, sensitivity: float) -> Array:
    """g / G where g > 0, else G g."""
    return np.where(gains > 0, gains / sensitivity, gains * sensitivity)


def running_log_capital(gains: Array, weights: Array, bet: float, leave_out: Array | float = 0.0) -> Array:
    """log K(b) after 0, 1, ..., n cells; ``leave_out`` holds the gains of calibration cells that are left out.

    Minus infinity from where a factor is not positive: such a bet may not be made.
    """
    factors = 1.0 + bet * weights * gains
    steps = np.log(factors, where=factors > 0, out=np.full(factors.shape, -np.inf)) - bet * leave_out
    return np.concatenate([np.zeros(1), np.cumsum(steps)])
