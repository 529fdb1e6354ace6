"""What :class:`BayesianFactorModel` returns: beliefs about the factors of both sides."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefill.arrays import Array, IntArray
from surefill.completion.bayes.variational import Belief, VariationalSide
from surefill.completion.factored_completion import Factored
from surefill.completion.grouped_regression import overlaid
from surefill.data import Observations, UnitMap
from surefill.errors import InputError
from surefill.kernels.least_squares import quadratic_forms
from surefill.loop import Status
from surefill.registry import storable


@storable
@dataclass(frozen=True, eq=False)
class BayesianFactorCompletion(Factored):
    """u_ij = mean + b_i + c_j + p_i . q_j on [-1, 1], cut to it and given in the user's units, at the means of
    (b_i, p_i) and (c_j, q_j); ``rows`` and ``cols`` hold these, their variances and what was learnt of their prior.

    ``noise`` is the variance of a draw around u_ij where row and column are as noisy as most, on [-1, 1];
    ``row_covariance`` has the covariance of (b_i, p_i) given the columns for each row, and last the prior's,
    ``col_covariance`` the same for columns. These take O((m + n) rank^2) memory, all else O((m + n) rank).

    Examples
    --------
    >>> import surefill as sf
    >>> sim = sf.datasets.make_low_rank((30, 20), rank=2, n_draws=400, noise=0.1, random_state=0)
    >>> completion = sf.completion.BayesianFactorModel(rank=3).fit(sim.observations)
    >>> completion.at([0, 1], [2, 3]).shape
    (2,)
    >>> bool((completion.variance([0, 1], [2, 3]) > 0).all())
    True
    """

    shape: tuple[int, int]
    unit: UnitMap
    mean: float
    noise: float
    status: Status
    rows: Belief
    cols: Belief
    row_covariance: Array
    col_covariance: Array

    def __post_init__(self) -> None:
        x, y = self.rows, self.cols
        fits = len(x.link) == len(y.mean) and len(y.link) == len(x.mean) and x.mean.shape[1] == y.mean.shape[1]
        for side, covariance in ((x, self.row_covariance), (y, self.col_covariance)):
            fits = fits and covariance.shape == (*side.mean.shape, side.mean.shape[1])
            fits = fits and bool(np.isfinite(covariance).all())
        if not (fits and 0 < self.noise < np.inf):
            raise InputError("the two sides of a factor completion must fit together, and its noise be above 0.")

    def row_table(self) -> tuple[IntArray, Array]:
        """Ids and means of the rows."""
        return self.rows.ids, self.rows.mean

    def col_table(self) -> tuple[IntArray, Array]:
        """Ids and means of the columns."""
        return self.cols.ids, self.cols.mean

    def variance(self, rows: ArrayLike, cols: ArrayLike) -> NDArray[np.float64]:
        """noise + f_j' S_i f_j + g_i' T_j g_i with f_j = (1, q_j), g_i = (1, p_i) and their covariances S_i, T_j:

        the variance of a new draw at the pairs (rows[t], cols[t]) if its row and column are as noisy as most, in
        squared units. It is the model's, before values are cut to the bounds; rows and columns are taken as
        independent, which understates it where little was seen.
        """
        i, j = self.locate(rows, cols)
        of_row = quadratic_forms(self.col_features, self.row_covariance, j, i)
        of_col = quadratic_forms(self.row_features, self.col_covariance, i, j)
        return self.unit.squared_error_from_unit(self.noise + of_row + of_col)

    def row_posterior(self, observations: Observations) -> Array:
        """The covariance of (b_i, p_i) of each row; last the prior's."""
        return self._row_side(observations).covariances(self.rows, self.cols, self.noise)

    def col_posterior(self, observations: Observations) -> Array:
        """The covariance of (c_j, q_j) of each column; last the prior's."""
        return self._col_side(observations).covariances(self.cols, self.rows, self.noise)

    def _with_rows(self, observations: Observations, keep: bool) -> Self:
        side = self._row_side(observations)
        rows = side.settle(self.rows, self.cols, self.noise)
        covariance = side.covariances(rows, self.cols, self.noise)
        if keep:
            covariance = overlaid(self.rows.ids, self.row_covariance, rows.ids, covariance)[1]
            rows = self.rows.overlaid(rows)
        cols = self.cols.linked_to(self.rows.ids, rows.ids)
        return replace(self, shape=observations.shape, rows=rows, cols=cols, row_covariance=covariance)

    def _with_cols(self, observations: Observations, keep: bool) -> Self:
        side = self._col_side(observations)
        cols = side.settle(self.cols, self.rows, self.noise)
        covariance = side.covariances(cols, self.rows, self.noise)
        if keep:
            covariance = overlaid(self.cols.ids, self.col_covariance, cols.ids, covariance)[1]
            cols = self.cols.overlaid(cols)
        rows = self.rows.linked_to(self.cols.ids, cols.ids)
        return replace(self, shape=observations.shape, rows=rows, cols=cols, col_covariance=covariance)

    def _row_side(self, observations: Observations) -> VariationalSide:
        return VariationalSide.of_rows(observations, self.cols.ids, self.residual(observations))

    def _col_side(self, observations: Observations) -> VariationalSide:
        return VariationalSide.of_cols(observations, self.rows.ids, self.residual(observations))
