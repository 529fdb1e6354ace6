"""What answers would teach a Bayesian factor model, before they are given: rank-one updates of its posterior.

The posterior of row i has covariance S_i, that of column j T_j; f_j = (1, q_j), g_i = (1, p_i). With rows and columns
taken as independent, as :meth:`BayesianFactorCompletion.variance` takes them, an answer at (i, j) has variance

    d = noise + f_j' S_i f_j + g_i' T_j g_i

and, whatever it is, leaves

    S_i - S_i f_j f_j' S_i / d,     T_j - T_j g_i g_i' T_j / d.

Summed over the cells of row i and column j with weights w, variances fall by

    (f_j' S_i F_i S_i f_j + g_i' T_j G_j T_j g_i) / d,    F_i = sum_j w_ij f_j f_j',  G_j = sum_i w_ij g_i g_i':

O(rank^2) per candidate once the F and G are known. The noise is that of noise precision 1, for rows and columns alike:
asking more where noise was estimated to be low raised the error on Jester (docs/benchmarks.md).

An answer also tells how noisy its row and column are. With a_i = (k + c) / 2 the shape of the noise precision's gamma
posterior (:mod:`surefill.completion.bayes.noise_precision`), the variance of its logarithm falls from psi_1(a_i) to
psi_1(a_i + 1/2), which counts for u_i = sum_j u_ij.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import polygamma

from surefill.arrays import Array, Indices, IntArray, row_blocks
from surefill.completion import BayesianFactorCompletion
from surefill.data.groups import locate
from surefill.errors import InputError
from surefill.kernels.least_squares import quadratic_forms

CellWeights = Callable[[Indices, Indices], tuple[Array, Array]]
"""At the cells (rows[t], cols[t]): w, what a unit of variance counts for, and u, what one of log noise does."""

LEAST_LINES, SUMMED_CELLS = 256, 1_000_000
"""Columns (or rows) that the sums of a row (or column) run over: all in tables of up to a million cells; else a million
cells drawn for all rows, and at least 256 for each: sums that are off by about a sixteenth change few choices."""


@dataclass(eq=False)
class LinePosteriors:
    """Rows (or columns) that may be asked: their posteriors, features, weighted sums F (or G) and u.

    ``gains`` has S F S of each, ``noise_gains`` what an answer tells of its noise; both follow the posteriors.
    """

    covariances: Array
    noise_shapes: Array
    features: Array
    sums: Array
    noise_weights: Array

    def __post_init__(self) -> None:
        self.gains = self.covariances @ self.sums @ self.covariances
        self.noise_gains = self.noise_weights * _noise_reduction(self.noise_shapes)

    def learn(self, line: int, across: Array, d: float) -> None:
        """S - S f f' S / d for the line, f the features of what it was asked about; one draw more for its noise."""
        S = self.covariances[line]
        direction = S @ across
        S -= np.outer(direction, direction) / d
        self.gains[line] = S @ self.sums[line] @ S
        self.noise_shapes[line] += 0.5
        self.noise_gains[line] = self.noise_weights[line] * _noise_reduction(self.noise_shapes[line])


class Lookahead:
    """The posterior of the rows and columns of candidate cells as it will be once some of these are answered.

    Parameters
    ----------
    completion : the model and what it has seen.
    rows, cols : the candidate cells.
    weights : what less variance and less doubt about the noise count for, cell by cell.
    target_rows : rows whose cells count, all when None.
    random_state : seed of the cells that sums run over where there are too many.

    Examples
    --------
    >>> import numpy as np
    >>> import surefill as sf
    >>> seen = sf.datasets.make_low_rank((30, 20), rank=2, n_draws=200, noise=0.1, random_state=0).observations
    >>> completion = sf.completion.BayesianFactorModel(rank=2).fit(seen)
    >>> rows, cols = np.array([0, 0, 1]), np.array([3, 4, 3])
    >>> ahead = sf.active.Lookahead(completion, rows, cols, lambda i, j: (np.ones(len(i)), np.zeros(len(i))))
    >>> before = ahead.utilities()
    >>> ahead.learn(0)
    >>> bool((ahead.utilities() < before).all())
    True
    """

    def __init__(
        self,
        completion: BayesianFactorCompletion,
        rows: Indices,
        cols: Indices,
        weights: CellWeights,
        target_rows: Indices | None = None,
        random_state: int = 0,
    ) -> None:
        if completion.row_covariances is None or completion.col_covariances is None:
            raise InputError("this completion was kept for its values only; fit the model again for its posterior.")
        self.unit, self.noise = completion.unit, completion.noise
        (row_ids, self.row), (col_ids, self.col) = (np.unique(ids, return_inverse=True) for ids in (rows, cols))
        (m, n), rng = completion.shape, np.random.default_rng(random_state)
        targets = np.arange(m) if target_rows is None else np.unique(target_rows)
        f = FeatureSample.drawn(np.arange(n), len(row_ids), completion.cols.ids, completion.col_features, rng)
        g = FeatureSample.drawn(targets, len(col_ids), completion.rows.ids, completion.row_features, rng)
        i, j = completion.locate(row_ids, col_ids)
        self.rows = LinePosteriors(
            completion.row_covariances.matrices[i],
            completion.rows.noise_precision.shape[i],
            completion.row_features[i],
            *f.sums(row_ids, only_where(lambda i, _: np.isin(i, targets), weights)),
        )
        self.cols = LinePosteriors(
            completion.col_covariances.matrices[j],
            completion.cols.noise_precision.shape[j],
            completion.col_features[j],
            *g.sums(col_ids, lambda cols, rows: weights(rows, cols)),
        )

    def variances(self, which: Indices | slice = slice(None)) -> Array:
        """d of candidates, in squared units."""
        return self.unit.squared_error_from_unit(self._answer_variance(self.row[which], self.col[which]))

    def utilities(self, which: Indices | slice = slice(None)) -> Array:
        """By how much an answer at each candidate lowers the weighted sum of variances, in squared units."""
        i, j = self.row[which], self.col[which]
        of_row = quadratic_forms(self.cols.features, self.rows.gains, j, i)
        of_col = quadratic_forms(self.rows.features, self.cols.gains, i, j)
        of_noise = self.rows.noise_gains[i] + self.cols.noise_gains[j]
        return self.unit.squared_error_from_unit((of_row + of_col) / self._answer_variance(i, j)) + of_noise

    def learn(self, candidate: int) -> None:
        """Update the posterior of the candidate's row and column by an answer there."""
        i, j = self.row[[candidate]], self.col[[candidate]]
        d = float(self._answer_variance(i, j)[0])
        self.rows.learn(int(i[0]), self.cols.features[j[0]], d)
        self.cols.learn(int(j[0]), self.rows.features[i[0]], d)

    def _answer_variance(self, i: Indices, j: Indices) -> Array:
        of_row = quadratic_forms(self.cols.features, self.rows.covariances, j, i)
        return self.noise + of_row + quadratic_forms(self.rows.features, self.cols.covariances, i, j)


@dataclass(frozen=True, eq=False)
class FeatureSample:
    """The columns (or rows) that the sums of a row (or column) run over, and how many they stand for."""

    ids: Indices
    features: Array
    size: int

    @classmethod
    def drawn(
        cls, ids: Indices, n_lines: int, known: IntArray, features: Array, rng: np.random.Generator
    ) -> FeatureSample:
        """All of ``ids``, or as many at random as a sum for each of ``n_lines`` can afford."""
        most = max(LEAST_LINES, SUMMED_CELLS // n_lines)
        taken = ids if len(ids) <= most else np.sort(rng.choice(ids, most, replace=False))
        return cls(taken, features[locate(known, taken)], len(ids))

    def sums(self, lines: Indices, weights: CellWeights) -> tuple[Array, Array]:
        """sum_j w_ij f_j f_j' and sum_j u_ij of each line i, scaled to all that the drawn ones stand for."""
        n, k = self.features.shape
        squares = (self.features[:, :, None] * self.features[:, None, :]).reshape(n, k * k)
        sums, noise = np.empty((len(lines), k * k)), np.empty(len(lines))
        for part in row_blocks(len(lines), n):
            ids = lines[part]
            w, u = (each.reshape(len(ids), n) for each in weights(np.repeat(ids, n), np.tile(self.ids, len(ids))))
            sums[part], noise[part] = w @ squares, u.sum(axis=1)
        scale = self.size / n
        return scale * sums.reshape(len(lines), k, k), scale * noise


def only_where(wanted: Callable[[Indices, Indices], NDArray[np.bool_]], weights: CellWeights) -> CellWeights:
    """The same weights, 0 at cells that are not wanted.

    Examples
    --------
    >>> import numpy as np
    >>> import surefill as sf
    >>> weights = only_where(lambda i, j: i == 0, sf.active.every_cell)
    >>> weights(np.array([0, 1]), np.array([2, 2]))[0]
    array([1., 0.])
    """

    def masked(rows: Indices, cols: Indices) -> tuple[Array, Array]:
        w, u = weights(rows, cols)
        chosen = wanted(rows, cols)
        return w * chosen, u * chosen

    return masked


def by_column(columns: Array, weights: CellWeights) -> CellWeights:
    """The same weights times those of the cells' columns.

    Examples
    --------
    >>> import numpy as np
    >>> import surefill as sf
    >>> weights = by_column(np.array([1.0, 3.0]), sf.active.every_cell)
    >>> weights(np.array([0, 0]), np.array([0, 1]))[0]
    array([1., 3.])
    """

    def weighted(rows: Indices, cols: Indices) -> tuple[Array, Array]:
        w, u = weights(rows, cols)
        return w * columns[cols], u * columns[cols]

    return weighted


def _noise_reduction(shape: Array) -> Array:
    """psi_1(a) - psi_1(a + 1/2)."""
    return np.asarray(polygamma(1, shape) - polygamma(1, shape + 0.5))
