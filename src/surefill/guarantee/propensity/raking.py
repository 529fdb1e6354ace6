"""Weights of cells held out, made to add up to the cells there are in every row and every column.

A cell of O2 stands for 1 / h of the cells outside O1, h its chance of being in O2. How many cells there are outside O1
in a row or a column is known, so that there the weights should add up to it: sum_{x in O2, line} f_x / h_x = cells,
with f_x = a_i b_j the product of a factor of the row and one of the column (raking, Deming and Stephan 1940). Without
it columns that are rarer than their cells in O1 let one think, where errors may be larger, count too little: given
the counts of O1 no model of them can tell these columns from others. Lines of few cells are drawn towards the factor 1
by ``PRIOR`` cells of their own expected weight.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from surefill.arrays import Array, IntArray
from surefill.data import Observations
from surefill.guarantee.propensity.base import MOST_LIKELY
from surefill.kernels.line_sums import weighted_sums
from surefill.registry import storable

PRIOR = 5.0
"""A line with five cells in O2 is moved half of the way: then chance adds some 5% to the variance of its weights."""

SWEEPS = 30
"""Of the alternation between rows and columns; it converges geometrically, by a factor of ten in a few sweeps."""


@storable
@dataclass(frozen=True, eq=False)
class MarginRaking:
    """h' = h / (a_i b_j), with h the chance that a cell outside O1, a ``share`` of what was observed, is in O2.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> chance = np.repeat([0.1, 0.4], 50)
    >>> rows, cols = np.nonzero(rng.random((200, 100)) < chance)
    >>> seen, first = Observations(rows, cols, np.zeros(len(rows)), (200, 100)), rng.random(len(rows)) < 0.5
    >>> one, two = seen.select(first), seen.select(~first)
    >>> raking = MarginRaking.of(np.full(len(two), 0.25), one, two, 0.5)
    >>> raking.corrected(np.full(2, 0.25), [0, 0], [0, 99]).round(1)
    array([0.1, 0.4])
    """

    row_factor: Array
    col_factor: Array
    share: float

    @classmethod
    def of(cls, chances: Array, fitted_on: Observations, held_out: Observations, share: float) -> Self:
        """From the modelled chances p of the cells of O2, ``held_out``; ``fitted_on`` is O1."""
        weight = 1 / _held_out_chance(chances, share)
        (m, n), i, j = fitted_on.shape, held_out.rows, held_out.cols
        row_cells = n - np.bincount(fitted_on.rows, minlength=m)
        col_cells = m - np.bincount(fitted_on.cols, minlength=n)
        row_prior, col_prior = PRIOR * _typical(weight, i, m), PRIOR * _typical(weight, j, n)
        a, b = np.ones(m), np.ones(n)
        for _ in range(SWEEPS):
            a = (row_cells + row_prior) / (weighted_sums(i, j, weight, b, m) + row_prior)
            b = (col_cells + col_prior) / (weighted_sums(j, i, weight, a, n) + col_prior)
        return cls(a, b, share)

    def corrected(self, chances: Array, rows: ArrayLike, cols: ArrayLike) -> Array:
        """p' of the cells (rows[t], cols[t]), of which a model says p."""
        factor = self.row_factor[np.asarray(rows)] * self.col_factor[np.asarray(cols)]
        h = np.minimum(_held_out_chance(chances, self.share) / factor, _held_out_chance(MOST_LIKELY, self.share))
        return np.asarray(h / ((1 - self.share) + self.share * h))


def _held_out_chance(p: Array | float, share: float) -> Array:
    """The chance that a cell outside O1 is in O2."""
    return np.asarray((1 - share) * p / (1 - share * p))


def _typical(weight: Array, line: IntArray, n_lines: int) -> Array:
    """The mean weight of the cells in each line; that of all cells in lines without any."""
    count = np.bincount(line, minlength=n_lines)
    return np.where(count > 0, np.bincount(line, weight, n_lines) / np.maximum(count, 1), weight.mean())
