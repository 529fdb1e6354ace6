"""Variational updates of the Bayesian factor model: the posterior of all rows given the columns, or the reverse.

With f_t = (1, q_j) for an entry t of row i, x_i = (b_i, p_i), noise variance s2 / (s_i t_j), the prior
x_i ~ N(m_i, (s_i L)^-1), and everything else held fixed, the best q(x_i) = N(x_i, diag(v_i)) is

    x_i = (F + E + s2 L)^-1 (sum_t w_t (r_t - c_j) f_t + s2 L m_i),     v_ia = s2 / (E s_i (F + E + s2 L)_aa)
    F = sum_t w_t E[f_t] E[f_t]',   E = diag(sum_t w_t Var f_t),   w_t = c_t E t_j:

the row's ridge regression, its penalty the uncertainty of the columns it was seen at. Columns likewise. The noise
precision s_i of a row is learnt as :mod:`surefill.completion.bayes.noise_precision` says; it does not change the row's
own regression, but what the columns learn from the row.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, Self

import numpy as np

from surefill.arrays import Array, Floats, IntArray, read_only, row_blocks
from surefill.completion.bayes.factor_posterior import (
    IMPLICIT_PENALTY,
    PRIOR_VARIANCE,
    START_PRECISION,
    START_SPREAD,
    FactorPosterior,
    log_variances,
    squared,
)
from surefill.completion.bayes.noise_precision import NoisePrecision
from surefill.completion.grouped_regression import reindexed
from surefill.data import COMPACT_CELLS, Features, Groups, Observations, UnitMap
from surefill.data.features import FeatureScale
from surefill.data.groups import compact_positions
from surefill.kernels.factor_updates import (
    GroupedEntries,
    GroupPosterior,
    GroupPrior,
    invert_updates,
    regressors_of,
    update_groups,
)
from surefill.kernels.gram import whole_lanes
from surefill.kernels.line_sums import sum_lines
from surefill.parallel import over_ranges

LEAST_NOISE: dict[Any, float] = {np.float64: 1e-8, np.float32: 1e-6}
"""Noise variance, on [-1, 1], added to every draw: data without noise would make the bound infinite, and errors that
come from sums in single precision are known to about 10^-7 of the values' squares."""

NEW_GROUP_STEPS = 4
"""Turns between factors and noise precisions of groups that were not fitted: each brings them some fifty times closer
to where they settle; after four they are within 10^-8 posterior standard deviations (simulated, two noise levels)."""

TINY = float(np.finfo(float).tiny)
"""Keeps 0 / 0 at 0 where implicit factors have arrived."""


@dataclass(frozen=True, eq=False)
class PosteriorUpdate:
    """The groups' new posterior, and e_g of each group, s2 times the errors of its noise precision."""

    posterior: FactorPosterior
    errors: Array

    @property
    def error(self) -> float:
        """The expected squared error of all entries, each weighed by its noise precisions."""
        return float(self.posterior.noise_precision.mean[:-1] @ self.errors)


@dataclass(frozen=True, eq=False)
class VariationalRegression:
    """The variational updates of all rows (or all columns), and what they teach about the prior and the noise.

    Entries are in the groups' order: ``values`` in the user's units, of which r_t = (values_t - shift) scale,
    ``other`` the position of the entry's column (or row) in the table of those. ``counts`` and ``scatter``, squared
    deviations of an entry's draws from their mean on [-1, 1], have one item per entry, or one for all. Tables and sums
    are in single precision from :data:`COMPACT_CELLS` entries on, sums of sums in double precision always.
    """

    groups: Groups
    other: IntArray
    values: Floats
    counts: Floats
    scatter: Floats
    shift: float
    scale: float
    features: Floats | None = None
    feature_scale: FeatureScale | None = None

    def with_features(self, features: Features | None, scale: FeatureScale | None) -> Self:
        """The same with the features of the groups, standardised by ``scale``; without either, as it is."""
        if features is None or scale is None:
            return self
        table: Floats = scale.standardised(features)[self.groups.ids].astype(self.dtype)
        return replace(self, features=table, feature_scale=scale)

    @classmethod
    def per_row(cls, observations: Observations, col_ids: IntArray, mean: float, unit: UnitMap) -> Self:
        """One regression per row, on the columns ``col_ids``; ``mean``, on [-1, 1], and ``unit`` are the model's."""
        return cls._of(observations, observations.by_row, observations.cols, col_ids, mean, unit)

    @classmethod
    def per_col(cls, observations: Observations, row_ids: IntArray, mean: float, unit: UnitMap) -> Self:
        """One regression per column, on the rows ``row_ids``."""
        return cls._of(observations, observations.by_col, observations.rows, row_ids, mean, unit)

    @classmethod
    def _of(
        cls, observations: Observations, groups: Groups, other: IntArray, ids: IntArray, mean: float, unit: UnitMap
    ) -> Self:
        dtype: Any = np.float32 if len(observations) >= COMPACT_CELLS else np.float64
        values = _one_kind(groups.take(observations.values), dtype)
        counts = _one_or_each(observations.counts, groups, dtype)
        scatter = _one_or_each(observations.scatter, groups, dtype) / dtype(unit.half_width**2)
        shift = unit.centre + mean * unit.half_width
        position = _one_kind(compact_positions(ids, groups.take(other)), np.int32)
        return cls(groups, position, values, counts, scatter, dtype(shift), dtype(1 / unit.half_width))

    @property
    def dtype(self) -> Any:
        """The kind of numbers that tables have."""
        return self.values.dtype.type

    def start(self, rank: int, n_other: int, rng: np.random.Generator) -> FactorPosterior:
        """Small random factors around a small random centre, no biases, no implicit factors, equal noise."""
        ids, width = self.groups.ids, rank + 1
        mean: Floats = np.zeros((len(ids) + 1, width), self.dtype)
        mean[:-1, 1:] = rng.normal(0, START_SPREAD, (len(ids), rank))
        intercept = np.append(0.0, rng.normal(0, START_SPREAD, rank))
        variance, precision = np.full_like(mean, PRIOR_VARIANCE / 10), START_PRECISION * np.eye(width)
        no_implicit: Floats = np.zeros((n_other + 1, width), self.dtype)
        noise_precision = NoisePrecision.unknown(self.draws + width)
        weights = None if self.features is None else np.zeros((self.features.shape[1], width))
        learnt = precision, intercept, no_implicit, noise_precision, weights
        return FactorPosterior(ids, mean, variance, *learnt, scale=self.feature_scale)

    def solve(
        self,
        prior: FactorPosterior,
        prior_means: Floats,
        fixed: FactorPosterior,
        noise: float,
        noise_precision: NoisePrecision,
    ) -> PosteriorUpdate:
        """The best posterior of the groups under ``prior``, given the others' ``fixed`` and the noise precisions."""
        return self.solve_on(prior, prior_means, self.lines_of(fixed), noise, noise_precision)

    def solve_on(
        self, prior: FactorPosterior, prior_means: Floats, lines: Floats, noise: float, noise_precision: NoisePrecision
    ) -> PosteriorUpdate:
        """As :meth:`solve`, given all that is known of the others as :meth:`lines_of` has it."""
        kernel = partial(self.over, update_groups, self.entries, lines)
        return self.updated_by(kernel, prior, prior_means, noise, noise_precision)

    def updated_by(
        self,
        kernel: Callable[..., None],
        prior: FactorPosterior,
        prior_means: Floats,
        noise: float,
        noise_precision: NoisePrecision,
    ) -> PosteriorUpdate:
        """The posterior that ``kernel`` writes for all groups, with its errors and its part of the lower bound."""
        P, size = noise * prior.precision, (len(self.groups) + 1, prior.mean.shape[1])
        mean: Floats = np.zeros(size, self.dtype)
        variance, errors = np.empty_like(mean), np.empty(len(self.groups))
        variance[-1] = np.diag(np.linalg.inv(prior.precision))
        pull = prior_means @ P.astype(self.dtype)
        of_groups = GroupPrior(P, pull, noise_precision.mean, noise, LEAST_NOISE[self.dtype])
        kernel(of_groups, GroupPosterior(mean, variance, errors))
        ids = self.groups.ids
        posterior = replace(prior, ids=ids, mean=mean, variance=variance, noise_precision=noise_precision)
        return PosteriorUpdate(posterior, errors)

    def solve_new_groups(self, prior: FactorPosterior, fixed: FactorPosterior, noise: float) -> FactorPosterior:
        """The posterior of groups that were not fitted, of factors and of noise precisions by turns."""
        width, strength = prior.mean.shape[1], prior.noise_precision.strength
        noise_precision = NoisePrecision.unknown(self.draws + width, strength)
        prior_means = self.prior_means(prior)
        for _ in range(NEW_GROUP_STEPS):
            update = self.solve(prior, prior_means, fixed, noise, noise_precision)
            strayed = self.strayed(update.posterior, prior_means)
            noise_precision = noise_precision.updated(update.errors / noise + strayed)
        return self.solve(prior, prior_means, fixed, noise, noise_precision).posterior

    def covariances(self, prior: FactorPosterior, fixed: FactorPosterior, noise: float) -> Floats:
        """s2 (F + E + s2 L)^-1 / s_g of each group, and last the prior's L^-1."""
        s, P = reindexed(prior.ids, prior.noise_precision.mean, self.groups.ids), noise * prior.precision
        inverse: Floats = np.empty((len(self.groups) + 1, *P.shape), self.dtype)
        self.over(invert_updates, self.entries, self.lines_of(fixed), s, P, inverse)
        inverse[-1] = np.linalg.inv(P)
        inverse *= self.dtype(noise)
        return inverse

    def over(self, kernel: Callable[..., None], *arguments: Any) -> None:
        """Run ``kernel(first, last, *arguments)`` over all groups, on all cores."""
        over_ranges(lambda first, last: kernel(first, last, *arguments), self.groups.starts)

    @property
    def entries(self) -> GroupedEntries:
        """The entries of all groups, as kernels take them."""
        weights = self.counts, self.scatter
        return GroupedEntries(self.groups.starts, self.other, self.values, *weights, self.shift, self.scale)

    def lines_of(self, fixed: FactorPosterior) -> Floats:
        """What entries gather of the others: a line of :func:`regressors_of` for each."""
        return regressors_of(fixed.mean, fixed.variance, fixed.noise_precision.mean, self.dtype)

    @cached_property
    def draws(self) -> Array:
        """How many draws each group has."""
        if len(self.counts) == 1:
            return self.groups.sizes * np.float64(self.counts[0])
        return np.asarray(np.add.reduceat(self.counts, self.groups.starts[:-1], dtype=np.float64))

    def totals(self, table: Floats, dtype: Any = None) -> Floats:
        """sum_t table[other_t] over the entries t of each group, summed in double precision, given as ``dtype``."""
        k = table.shape[1]
        lines: Floats = np.zeros((len(table), whole_lanes(k)), self.dtype)
        total: Floats = np.empty((len(self.groups), k), dtype or self.dtype)
        lines[:, :k] = table
        self.over(sum_lines, self.groups.starts, self.other, lines, total)
        return total

    def prior_means(self, prior: FactorPosterior) -> Floats:
        """m_g of each group."""
        means = prior.intercept.astype(self.dtype) + self.implicit_means(prior.implicit)
        if self.features is None or prior.weights is None:
            return means
        return np.asarray(means + self.features @ prior.weights.astype(self.dtype))

    def implicit_means(self, implicit: Floats) -> Floats:
        """sum of implicit_h over the h that a group was seen at / sqrt(n_g)."""
        return self.totals(implicit) / self.root_sizes

    def with_learnt_prior(
        self, posterior: FactorPosterior, prior_means: Floats, across: VariationalRegression
    ) -> tuple[FactorPosterior, Floats]:
        """``posterior`` with better prior means, its m_g, and the best precision; ``across`` regresses the others."""
        refitted, prior_means = self._fitted_prior_means(posterior, prior_means, across)
        refitted = _with_best_ridge(refitted)
        return refitted.with_best_precision(self._scatter(refitted, prior_means), len(self.groups)), prior_means

    def strayed(self, posterior: FactorPosterior, prior_means: Floats) -> Array:
        """d_g = E (x_g - m_g)' L (x_g - m_g) of each group: what its factors add to the errors of its s_g."""
        x, v, L = posterior.mean, posterior.variance, posterior.precision
        total = np.empty(len(self.groups))
        for rows in row_blocks(*prior_means.shape):
            away = np.subtract(x[:-1][rows], prior_means[rows], dtype=np.float64)
            total[rows] = np.einsum("ga,ga->g", away @ L, away) + v[:-1][rows] @ np.diag(L)
        return total

    def bound(self, posterior: FactorPosterior, prior_means: Floats) -> float:
        """The groups' part of the lower bound on the evidence, but for what the errors take from it."""
        scatter, n_groups = self._scatter(posterior, prior_means), len(self.groups)
        of_factors = posterior.bound(scatter, n_groups, log_variances(posterior))
        return of_factors + posterior.noise_precision.bound

    def _scatter(self, posterior: FactorPosterior, prior_means: Floats) -> Array:
        """What the precision is learnt from: the scatter of the groups, and of the prior's own parameters."""
        of_implicit = squared(posterior.implicit[:-1], posterior.implicit[-1])
        return self.scatter_of_groups(posterior, prior_means) + posterior.scatter_of_prior(of_implicit)

    def scatter_of_groups(self, posterior: FactorPosterior, prior_means: Floats) -> Array:
        """E sum_g s_g (x_g - m_g)(x_g - m_g)'."""
        s = posterior.noise_precision.mean[:-1]
        return np.diag(s @ posterior.variance[:-1]) + squared(posterior.mean[:-1], prior_means, s)

    def _fitted_prior_means(
        self, posterior: FactorPosterior, prior_means: Floats, across: VariationalRegression
    ) -> tuple[FactorPosterior, Floats]:
        """Lower sum_g s_g |x_g - m_g|^2 + 3 (sum_h |d_h|^2 + |g_0|^2 + |a|^2): the best a and g_0, then better d_h.

        d_h = implicit_h - g_0, from the implicit factors as they were: one step, the best along the gradient, by
        factor; sweeps go on from it. Gives the new prior and its m_g.
        """
        learnt = posterior.solved_prior(*self.prior_sums(posterior, prior_means))
        pull, d = self.implicit_pull(posterior, prior_means, learnt), posterior.implicit - posterior.implicit[-1]
        gradient = with_zeros(across.totals(with_zeros(pull))) - self.dtype(IMPLICIT_PENALTY) * d
        of_groups, squares = self.implicit_means(gradient), column_sums(gradient, gradient)
        length = best_length(squares, self.curvature_along(posterior, of_groups)).astype(self.dtype)
        implicit = d + length * gradient + learnt[1].astype(self.dtype)
        means = self.moved_means(posterior, prior_means, learnt, length * of_groups)
        return posterior.with_prior(learnt, implicit), means

    def prior_sums(self, posterior: FactorPosterior, prior_means: Floats) -> tuple[Array, Array]:
        """F' S F and F' S (x - i), sums over groups: F their (1, sqrt(n_g), f_g), i what implicit factors explain."""
        F, s, x = self._size_regressors(posterior), self._weights_of(posterior), posterior.mean[:-1]
        return _products(s * F, F), _products(s * F, x - self._implicit_part(posterior, prior_means))

    def implicit_pull(self, posterior: FactorPosterior, prior_means: Floats, learnt: Array) -> Floats:
        """s_g (x_g - m_g) / sqrt(n_g) of each group, where m_g has the ``learnt`` a, g_0 and weights."""
        explained = self._size_regressors(posterior) @ learnt.astype(self.dtype)
        left = posterior.mean[:-1] - explained - self._implicit_part(posterior, prior_means)
        return np.asarray(self._weights_of(posterior) * left / self.root_sizes)

    def curvature_along(self, posterior: FactorPosterior, of_groups: Floats) -> Array:
        """sum_g s_g of_groups_g^2, by factor: how fast the cost bends where m_g moves by ``of_groups``."""
        return column_sums(self._weights_of(posterior) * of_groups, of_groups)

    def moved_means(self, posterior: FactorPosterior, prior_means: Floats, learnt: Array, step: Floats) -> Floats:
        """m_g with the ``learnt`` a, g_0 and weights, and moved by ``step``."""
        explained = self._size_regressors(posterior) @ learnt.astype(self.dtype)
        return np.asarray(self._implicit_part(posterior, prior_means) + step + explained)

    def _size_regressors(self, posterior: FactorPosterior) -> Floats:
        by_size: Floats = np.column_stack([np.ones_like(self.root_sizes), self.root_sizes])
        if self.features is None or posterior.weights is None:
            return by_size
        return np.column_stack([by_size, self.features])

    def _implicit_part(self, posterior: FactorPosterior, prior_means: Floats) -> Floats:
        return np.asarray(prior_means - self._size_regressors(posterior) @ posterior.coefficients.astype(self.dtype))

    def _weights_of(self, posterior: FactorPosterior) -> Floats:
        return posterior.noise_precision.mean[:-1, None].astype(self.dtype)

    @cached_property
    def root_sizes(self) -> Floats:
        """sqrt(n_g) of each group, as a column."""
        return np.sqrt(self.groups.sizes, dtype=self.dtype)[:, None]


def best_length(squares: Array, curvature: Array) -> Array:
    """The best step along the gradient, of these squares, by factor; ``curvature`` is that of the groups alone."""
    return squares / np.maximum(curvature + IMPLICIT_PENALTY * squares, TINY)


def with_zeros(table: Floats) -> Floats:
    """The table with a last line of zeros, for groups unknown."""
    return np.vstack([table, np.zeros((1, table.shape[1]), table.dtype)])


def _with_best_ridge(posterior: FactorPosterior) -> FactorPosterior:
    """The precision of the features' weights that raises the bound most, learnt from them and one pseudo-weight."""
    W = posterior.weights
    if W is None:
        return posterior
    size = float(np.sum(posterior.precision * (W.T @ W)))
    return replace(posterior, ridge=(W.size + 1) / (size + 1 / IMPLICIT_PENALTY))


def _one_kind(array: Any, dtype: type) -> Any:
    """The array as ``dtype``, not to be written to: kernels are compiled for one kind of arrays, shared or not."""
    return read_only(array.astype(dtype, copy=False))


def _one_or_each(array: Any, groups: Groups, dtype: type) -> Floats:
    """One number where all are alike, else those of the entries in the groups' order."""
    same = array.strides == (0,) or (array == array[0]).all()
    return array[:1].astype(dtype) if same else groups.take(array).astype(dtype)


def _products(left: Floats, right: Floats) -> Array:
    """L' R in double precision."""
    return np.asarray(np.einsum("gb,ga->ba", left, right, dtype=np.float64))


def column_sums(left: Floats, right: Floats) -> Array:
    """sum_g left_ga right_ga of each column a, in double precision."""
    return np.asarray(np.einsum("ga,ga->a", left, right, dtype=np.float64))
