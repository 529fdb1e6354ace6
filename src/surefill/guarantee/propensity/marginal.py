"""The marginal model of the pattern: chances of being observed by row and column alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, logit

from surefill.arrays import Array
from surefill.data import Observations
from surefill.guarantee.propensity.base import MOST_LIKELY
from surefill.guarantee.propensity.line_chances import LineClasses
from surefill.registry import storable

MARGIN_ACCURACY = 1e-7
"""Relative error at which margins count as matched."""

MOST_ROUNDS = 100
"""Rounds over rows and columns; 5 to 10 suffice unless margins are those of no matrix of chances."""

LONGEST_STEP = 2.0
"""Largest change of a line's log odds in one round."""


@storable
@dataclass(frozen=True, eq=False)
class MarginalPropensity:
    """logit p_ij = a_i + b_j, capped at p = 0.95, with posterior means of the margins matched.

        sum_j p_ij = n E[rho_i | r_i],   sum_i p_ij = m E[rho_j | c_j]

    r_i and c_j are the cells seen of row i and column j; E[rho | count] is the chance of a line that was seen so often
    (:mod:`surefill.guarantee.propensity.line_chances`). Of all chances with these margins, p has the largest entropy.
    Odds multiply, so that p stays below 1 where most cells are seen, and is the product of rates where few are.

    Examples
    --------
    >>> seen = Observations([0, 0, 1, 1], [0, 1, 0, 1], [1.0, 2.0, 3.0, 4.0], shape=(4, 4))
    >>> chances = MarginalPropensity.of(seen, share=1.0).at([0, 0, 2], [0, 2, 2])
    >>> bool(chances[0] > chances[1] > chances[2] > 0)
    True
    """

    row_logit: Array
    col_logit: Array

    @classmethod
    def of(cls, locations: Observations, share: float) -> MarginalPropensity:
        """From the locations of a random ``share`` of all observed cells; O(N) time, whatever the shape."""
        m, n = locations.shape
        rows, cols = LineClasses.of(locations.rows, m), LineClasses.of(locations.cols, n)
        a, b = class_log_odds(rows, cols, share)
        return cls(a[rows.of_line], b[cols.of_line])

    def logit_at(self, rows: ArrayLike, cols: ArrayLike) -> Array:
        """a_i + b_j at the cells (rows[t], cols[t])."""
        return np.asarray(self.row_logit[np.asarray(rows)] + self.col_logit[np.asarray(cols)])

    def at(self, rows: ArrayLike, cols: ArrayLike) -> Array:
        """Probabilities at the cells (rows[t], cols[t])."""
        return np.asarray(np.minimum(expit(self.logit_at(rows, cols)), MOST_LIKELY))


def class_log_odds(rows: LineClasses, cols: LineClasses, share: float) -> tuple[Array, Array]:
    """a and b of classes of rows and of columns: all that is needed of lines is how many were seen how often."""
    m, n, n_cells = rows.sizes.sum(), cols.sizes.sum(), float(cols.sizes @ cols.counts)
    total = min(n_cells / share, MOST_LIKELY * m * n)
    row_total = _scaled(n * rows.mean_chances(int(n), share), rows.sizes, total, MOST_LIKELY * n)
    col_total = _scaled(m * cols.mean_chances(int(m), share), cols.sizes, total, MOST_LIKELY * m)
    return _match_margins(row_total, rows.sizes, col_total, cols.sizes)


def _scaled(totals: Array, sizes: Array, total: float, largest: float) -> Array:
    """Margins of classes of lines that add up to ``total``, none above ``largest``."""
    for _ in range(MOST_ROUNDS):
        totals = np.minimum(totals * total / (sizes @ totals), largest)
        if np.isclose(sizes @ totals, total, rtol=MARGIN_ACCURACY):
            break
    return totals


def _match_margins(rows: Array, row_sizes: Array, cols: Array, col_sizes: Array) -> tuple[Array, Array]:
    """a, b with sum over columns of expit(a + b) = ``rows`` and over rows = ``cols``, by Newton steps in turn.

    A class stands for ``sizes`` equal lines.
    """
    m, n = row_sizes.sum(), col_sizes.sum()
    middle = logit(row_sizes @ rows / (m * n)) / 2
    a, b = logit(rows / n) - middle, logit(cols / m) - middle
    for _ in range(MOST_ROUNDS):
        a_step, row_error = _newton(expit(a[:, None] + b), col_sizes, rows)
        a = a + a_step
        b_step, col_error = _newton(expit(a[:, None] + b).T, row_sizes, cols)
        b = b + b_step
        if max(row_error, col_error) < MARGIN_ACCURACY:
            break
    return a, b


def _newton(chances: Array, other_sizes: Array, totals: Array) -> tuple[Array, float]:
    """The step of log(sum of a line's chances) = log(its total), and the largest relative error before it."""
    found = chances @ other_sizes
    slope = found - chances**2 @ other_sizes
    step = np.log(totals / found) * found / slope
    return np.clip(step, -LONGEST_STEP, LONGEST_STEP), float(np.abs(found / totals - 1).max())
