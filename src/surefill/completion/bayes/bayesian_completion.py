"""What :class:`BayesianFactorModel` returns: the posterior of the factors of all rows and columns."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefill.arrays import Array, IntArray, is_grid, row_blocks
from surefill.completion.bayes.dated import DatedFactors
from surefill.completion.bayes.factor_posterior import FactorPosterior
from surefill.completion.bayes.variational import VariationalRegression
from surefill.completion.factored_completion import FactoredCompletion
from surefill.completion.grouped_regression import as_features, merged, reindexed
from surefill.data import Observations, UnitMap
from surefill.data.compact import piecewise
from surefill.errors import InputError
from surefill.kernels.least_squares import biased_forms
from surefill.kernels.packing import pack_forms
from surefill.loop import Status
from surefill.registry import storable

LEAST_AT_ONCE = 1 << 16
"""Lines of covariance matrices that are factored at once: some megabytes."""

ROUNDING = 1e-6
"""By which share least variances are lowered: covariances may be in single precision."""


@storable
@dataclass(frozen=True, eq=False)
class PosteriorCovariances:
    """The covariance of (b_g, p_g) of each group given the others, and last the prior's: computed when first asked for.

    One pass over the observations finds them, as costly as a sweep, and they take O(groups x rank^2) memory; many fits
    (restarts, fits that are compared) are asked for values only. Saving asks for them.
    """

    matrices: Array

    @classmethod
    def deferred(cls, compute: Callable[[], Array], observations: Observations) -> Self:
        """What ``compute`` will return; ``observations`` are those it goes over."""
        made = cls.__new__(cls)
        object.__setattr__(made, "_compute", compute)
        object.__setattr__(made, "observations", observations)
        return made

    def __getattr__(self, name: str) -> Any:
        # Only called for what is not set: ``matrices`` until they are computed, ``observations`` from then on.
        known = vars(self)
        if name == "observations":
            return known["_seen"]() if "_seen" in known else None
        seen, compute = known.get("observations"), known.get("_compute")
        if name != "matrices" or (compute is None and name not in known):
            raise AttributeError(name)
        if compute is not None:  # else another thread has computed them meanwhile
            # The observations are still known, but not kept in memory for it: of very many cells they are large.
            known |= {"matrices": compute(), "_seen": weakref.ref(seen)}
            known.pop("_compute", None)
            known.pop("observations", None)
        return known["matrices"]

    def __getstate__(self) -> dict[str, Any]:
        """All but the reference to observations that are elsewhere, for copies and other processes."""
        return {name: value for name, value in vars(self).items() if name != "_seen"}

    def match(self, mean: Array) -> bool:
        """Whether they are finite and of the size of the means; taken for granted until computed."""
        if "matrices" not in vars(self):
            return True
        return self.matrices.shape == (*mean.shape, mean.shape[1]) and bool(np.isfinite(self.matrices).all())


@storable
@dataclass(frozen=True, eq=False)
class BayesianFactorCompletion(FactoredCompletion):
    """u_ij = mean + b_i + c_j + p_i . q_j on [-1, 1], clipped to it and given in the user's units, at the posterior
    means of (b_i, p_i) and (c_j, q_j).

    Attributes
    ----------
    noise : the variance of a draw around u_ij where row and column have noise precision 1, on [-1, 1].
    rows, cols : posterior means and variances, and what was learnt of the prior and of the noise precisions.
    row_covariances : the covariance of (b_i, p_i) of each row given the columns, and last the prior's; None where only
        values are kept. They are computed when first asked for and take O(m rank^2) memory, all else O((m + n) rank).
    col_covariances : the same for columns.
    dated : a posterior that knows when cells were drawn, for values at a time; None where the fit had no times, or they
        were of no use.

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

    kind: ClassVar[str] = "Bayesian factors"

    shape: tuple[int, int]
    unit: UnitMap
    mean: float
    noise: float
    status: Status
    rows: FactorPosterior
    cols: FactorPosterior
    row_covariances: PosteriorCovariances | None = None
    col_covariances: PosteriorCovariances | None = None
    dated: DatedFactors | None = None

    def __post_init__(self) -> None:
        x, y = self.rows, self.cols
        fits = len(x.implicit) == len(y.mean) and len(y.implicit) == len(x.mean) and x.mean.shape[1] == y.mean.shape[1]
        for posterior, covariances in ((x, self.row_covariances), (y, self.col_covariances)):
            fits = fits and (covariances is None or covariances.match(posterior.mean))
        if not (fits and 0 < self.noise < np.inf):
            raise InputError("the rows and columns of a factor completion must fit together, and its noise be above 0.")

    def row_table(self) -> tuple[IntArray, Array]:
        """Ids and posterior means of the rows."""
        return self.rows.ids, self.rows.mean

    def col_table(self) -> tuple[IntArray, Array]:
        """Ids and posterior means of the columns."""
        return self.cols.ids, self.cols.mean

    def at(self, rows: ArrayLike, cols: ArrayLike, times: ArrayLike | None = None) -> NDArray[np.float64]:
        """Values at the pairs (rows[t], cols[t]): at these ``times`` where given, else at no date in particular.

        Where the fit had no times, or they were of no use to it, they make no difference.
        """
        if times is None or self.dated is None:
            return super().at(rows, cols)
        i, j, when = np.broadcast_arrays(np.asarray(rows), np.asarray(cols), np.asarray(times, dtype=np.float64))
        return self._in_units(self.dated.at(i, j, when))

    def variance(self, rows: ArrayLike, cols: ArrayLike) -> NDArray[np.float64]:
        """noise + f_j' S_i f_j + g_i' T_j g_i with f_j = (1, q_j), g_i = (1, p_i) and their covariances S_i, T_j:

        the variance of a new draw at the pairs (rows[t], cols[t]) if its row and column have noise precision 1, in
        squared units. It is the model's, before values are clipped to the bounds; rows and columns are taken as
        independent, which understates it where little was seen.
        """
        i, j, S, T = self._located_with_covariances(rows, cols)
        if is_grid(i, j):
            forms = self._packed_rows(i[:, 0]) @ self._packed_cols[j[0]].T
            return np.asarray(np.add(forms, self.unit.squared_error_from_unit(self.noise), out=forms))
        x, y = self.rows.mean, self.cols.mean
        forms = piecewise(lambda i, j: biased_forms(y, S, j, i) + biased_forms(x, T, i, j), i, j)
        return self.unit.squared_error_from_unit(self.noise + forms)

    def variance_parts(self, rows: ArrayLike, cols: ArrayLike) -> tuple[Array, Array]:
        """f_j' S_i f_j and g_i' T_j g_i of :meth:`variance`: what the row's and the column's uncertainty add to it."""
        i, j, S, T = self._located_with_covariances(rows, cols)
        if is_grid(i, j):
            left, right = self._packed_rows(i[:, 0]), self._packed_cols[j[0]]
            size = left.shape[1] // 2
            return left[:, :size] @ right[:, :size].T, left[:, size:] @ right[:, size:].T
        x, y = self.rows.mean, self.cols.mean
        of_row = piecewise(lambda i, j: biased_forms(y, S, j, i), i, j)
        of_col = piecewise(lambda i, j: biased_forms(x, T, i, j), i, j)
        return self.unit.squared_error_from_unit(of_row), self.unit.squared_error_from_unit(of_col)

    def _located_with_covariances(self, rows: ArrayLike, cols: ArrayLike) -> tuple[IntArray, IntArray, Array, Array]:
        if self.row_covariances is None or self.col_covariances is None:
            raise InputError("this completion was kept for its values only; fit the model again for variances.")
        return *self.locate(rows, cols), self.row_covariances.matrices, self.col_covariances.matrices

    def _packed_rows(self, i: IntArray) -> Array:
        """S_i and g_i g_i' of these rows in squared units: a grid is one product of inner dimension (r + 1)(r + 2)."""
        assert self.row_covariances is not None
        scale, size = float(self.unit.squared_error_from_unit(1.0)), self._packed_cols.shape[1] // 2
        left = np.empty((len(i), 2 * size))
        features = as_features(self.rows.mean[i])
        pack_forms(self.row_covariances.matrices, i, features, scale, left[:, :size], left[:, size:])
        return left

    def least_variances(self) -> tuple[Array, Array]:
        """Of each row and column, and last of those never seen, numbers v_i and v_j with variance >= v_i + v_j:

        noise + min f' S_i f over all f = (1, q), and min g' T_j g, which are Schur complements.
        """
        assert self.row_covariances is not None
        assert self.col_covariances is not None
        of_rows, of_cols = (_least_forms(each.matrices) for each in (self.row_covariances, self.col_covariances))
        return self.unit.squared_error_from_unit(self.noise + of_rows), self.unit.squared_error_from_unit(of_cols)

    @cached_property
    def _packed_cols(self) -> Array:
        """What the rows are multiplied with on grids: f_j f_j' and T_j of each column."""
        assert self.col_covariances is not None
        features, matrices = self.col_features, self.col_covariances.matrices
        size = features.shape[1] * (features.shape[1] + 1) // 2
        right = np.empty((len(features), 2 * size))
        pack_forms(matrices, np.arange(len(features)), features, 1.0, right[:, size:], right[:, :size])
        return right

    def row_posterior(self, observations: Observations) -> Array:
        """The covariance of (b_i, p_i) of each row; last the prior's."""
        if self.row_covariances is not None and self.row_covariances.observations is observations:
            return self.row_covariances.matrices
        return row_covariances(self, observations)

    def col_posterior(self, observations: Observations) -> Array:
        """The covariance of (c_j, q_j) of each column; last the prior's."""
        if self.col_covariances is not None and self.col_covariances.observations is observations:
            return self.col_covariances.matrices
        return col_covariances(self, observations)

    def with_covariances(self, observations: Observations) -> Self:
        """The same with the covariances that its rows and columns have given ``observations``, once asked for."""
        return replace(self, row_covariances=self._of_rows(observations), col_covariances=self._of_cols(observations))

    def with_covariances_now(self, observations: Observations) -> Self:
        """The same with these covariances computed now, so that ``observations`` need not be kept for them."""
        # Columns first: their regressions take a copy of the cells, and the covariances of rows are larger.
        of_cols, of_rows = (each(self, observations) for each in (col_covariances, row_covariances))
        covariances = PosteriorCovariances(of_rows), PosteriorCovariances(of_cols)
        return replace(self, row_covariances=covariances[0], col_covariances=covariances[1])

    def with_own_covariances(self) -> Self:
        """The same, with covariances that are computed for it alone and forgotten with it, where they can be again."""
        seen = None if self.row_covariances is None else self.row_covariances.observations
        return self if seen is None else self.with_covariances(seen)

    def with_unseen(self, observations: Observations) -> Self:
        """The same with the rows and columns of which only features are known."""
        rows, cols = self.rows.with_unseen(observations.row_features), self.cols.with_unseen(observations.col_features)
        return replace(
            self,
            rows=rows.with_implicit_reindexed(self.cols.ids, cols.ids),
            cols=cols.with_implicit_reindexed(self.rows.ids, rows.ids),
        )

    def values_only(self) -> Self:
        """The same without covariances, much smaller to keep; ``variance`` is refused."""
        return replace(self, row_covariances=None, col_covariances=None)

    def _of_rows(self, observations: Observations) -> PosteriorCovariances:
        return PosteriorCovariances.deferred(partial(row_covariances, self.values_only(), observations), observations)

    def _of_cols(self, observations: Observations) -> PosteriorCovariances:
        return PosteriorCovariances.deferred(partial(col_covariances, self.values_only(), observations), observations)

    def _with_rows(self, observations: Observations, keep: bool) -> Self:
        rows = self._row_regression(observations).solve_new_groups(self.rows, self.cols, self.noise)
        alone = replace(
            self.values_only(),
            shape=observations.shape,
            rows=rows,
            cols=self.cols.with_implicit_reindexed(self.rows.ids, rows.ids),
        )
        if not keep:
            alone = alone.with_unseen(observations)
            covariances = None if self.row_covariances is None else alone._of_rows(observations)
            dated = None if self.dated is None else self.dated.fold_in(observations, self.mean, self.unit)
            return replace(alone, row_covariances=covariances, col_covariances=self.col_covariances, dated=dated)
        all_rows = self.rows.merged(rows)
        return replace(
            self,
            shape=observations.shape,
            rows=all_rows,
            dated=None,
            cols=self.cols.with_implicit_reindexed(self.rows.ids, all_rows.ids),
            row_covariances=_merged(self.rows.ids, self.row_covariances, rows.ids, alone._of_rows(observations)),
        )

    def _with_cols(self, observations: Observations, keep: bool) -> Self:
        cols = self._col_regression(observations).solve_new_groups(self.cols, self.rows, self.noise)
        alone = replace(
            self.values_only(),
            shape=observations.shape,
            cols=cols,
            rows=self.rows.with_implicit_reindexed(self.cols.ids, cols.ids),
        )
        if not keep:
            covariances = None if self.col_covariances is None else alone._of_cols(observations)
            return replace(alone, col_covariances=covariances, row_covariances=self.row_covariances, dated=None)
        all_cols = self.cols.merged(cols)
        return replace(
            self,
            shape=observations.shape,
            cols=all_cols,
            dated=None,
            rows=self.rows.with_implicit_reindexed(self.cols.ids, all_cols.ids),
            col_covariances=_merged(self.cols.ids, self.col_covariances, cols.ids, alone._of_cols(observations)),
        )

    def _row_regression(self, observations: Observations) -> VariationalRegression:
        plain = VariationalRegression.per_row(observations, self.cols.ids, self.mean, self.unit)
        return plain.with_features(observations.row_features, self.rows.scale)

    def _col_regression(self, observations: Observations) -> VariationalRegression:
        plain = VariationalRegression.per_col(observations, self.rows.ids, self.mean, self.unit)
        return plain.with_features(observations.col_features, self.cols.scale)


def _least_forms(matrices: Array) -> Array:
    """min f' S f over f = (1, q): S_00 less what the other coordinates explain of it, the last pivot of S reversed."""
    least = np.zeros(len(matrices))
    for part in row_blocks(len(matrices), matrices.shape[1], LEAST_AT_ONCE):
        with suppress(np.linalg.LinAlgError):  # not positive beyond rounding: 0 stays
            least[part] = np.linalg.cholesky(matrices[part, ::-1, ::-1].astype(np.float64))[:, -1, -1] ** 2
    return least * (1 - ROUNDING)


def row_covariances(completion: BayesianFactorCompletion, observations: Observations) -> Array:
    """The covariance of (b_i, p_i) of each row of ``observations`` given the columns; last the prior's."""
    c = completion
    found = c._row_regression(observations).covariances(c.rows, c.cols, c.noise)
    return _for_all(observations.by_row.ids, found, c.rows.ids)


def col_covariances(completion: BayesianFactorCompletion, observations: Observations) -> Array:
    """The covariance of (c_j, q_j) of each column of ``observations`` given the rows; last the prior's."""
    c = completion
    found = c._col_regression(observations).covariances(c.cols, c.rows, c.noise)
    return _for_all(observations.by_col.ids, found, c.cols.ids)


def _for_all(seen: IntArray, covariances: Array, ids: IntArray) -> Array:
    """The covariances of the groups ``ids``: those of which only features are known have the prior's, the last."""
    return covariances if len(ids) == len(seen) else reindexed(seen, covariances, ids)


def _merged(
    ids: IntArray, old: PosteriorCovariances | None, new_ids: IntArray, new: PosteriorCovariances
) -> PosteriorCovariances | None:
    """The covariances of both, the new ones where both have some; computed now, so that updates do not pile up."""
    return None if old is None else PosteriorCovariances(merged(ids, old.matrices, new_ids, new.matrices)[1])
