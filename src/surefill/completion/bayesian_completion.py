"""What :class:`BayesianFactorModel` returns: beliefs about the factors of both sides."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefill.completion.factored import Factored
from surefill.completion.side import Array
from surefill.completion.variational import Belief, VariationalSide
from surefill.data import Observations, UnitMap
from surefill.data.groups import IntArray
from surefill.errors import InputError
from surefill.kernels.group_sums import product_variances
from surefill.loop import Status


@dataclass(frozen=True, eq=False)
class BayesianFactorCompletion(Factored):
    """u_ij = mean + b_i + c_j + p_i . q_j on [-1, 1], cut to it and given in the user's units, at the means of
    (b_i, p_i) and (c_j, q_j); ``rows`` and ``cols`` hold these, their variances and what was learnt of their prior.

    ``noise`` is the variance of a draw around u_ij, on [-1, 1].
    """

    shape: tuple[int, int]
    unit: UnitMap
    mean: float
    noise: float
    status: Status
    rows: Belief
    cols: Belief

    def __post_init__(self) -> None:
        linked = len(self.rows.link) == len(self.cols.mean) and len(self.cols.link) == len(self.rows.mean)
        if not linked or self.rows.mean.shape[1] != self.cols.mean.shape[1] or not self.noise > 0:
            raise InputError("the two sides of a factor completion must fit together, and its noise be above 0.")

    def row_table(self) -> tuple[IntArray, Array]:
        """Ids and means of the rows."""
        return self.rows.ids, self.rows.mean

    def col_table(self) -> tuple[IntArray, Array]:
        """Ids and means of the columns."""
        return self.cols.ids, self.cols.mean

    def variance(self, rows: ArrayLike, cols: ArrayLike) -> NDArray[np.float64]:
        """The variance of a new draw at the pairs (rows[t], cols[t]), in squared units: noise and what is not known.

        Under the model, before values are cut to the bounds, and with all factors independent; O(rank) per entry.
        """
        x, y = self.rows, self.cols
        unknown = product_variances(x.mean, x.variance, y.mean, y.variance, *self.locate(rows, cols))
        return self.unit.squared_error_from_unit(self.noise + unknown)

    def row_posterior(self, observations: Observations) -> Array:
        """The covariance of (b_i, p_i) of each row; last the prior's."""
        return self._row_side(observations).covariances(self.rows, self.cols, self.noise)

    def col_posterior(self, observations: Observations) -> Array:
        """The covariance of (c_j, q_j) of each column; last the prior's."""
        return self._col_side(observations).covariances(self.cols, self.rows, self.noise)

    def _with_rows(self, observations: Observations, keep: bool) -> Self:
        rows = self._row_side(observations).solve(self.rows, self.cols, self.noise).belief
        rows = self.rows.overlaid(rows) if keep else rows
        cols = self.cols.linked_to(self.rows.ids, rows.ids)
        return replace(self, shape=observations.shape, rows=rows, cols=cols)

    def _with_cols(self, observations: Observations, keep: bool) -> Self:
        cols = self._col_side(observations).solve(self.cols, self.rows, self.noise).belief
        cols = self.cols.overlaid(cols) if keep else cols
        rows = self.rows.linked_to(self.cols.ids, cols.ids)
        return replace(self, shape=observations.shape, rows=rows, cols=cols)

    def _row_side(self, observations: Observations) -> VariationalSide:
        return VariationalSide.of_rows(observations, self.cols.ids, self.residual(observations))

    def _col_side(self, observations: Observations) -> VariationalSide:
        return VariationalSide.of_cols(observations, self.rows.ids, self.residual(observations))
